import { expect } from 'chai';
import { LeastTimes } from '../../lib/limits/LeastTimes.ts';

describe('LeastTimes', () => {
  let nowMs = 0;
  const clock = { now: () => nowMs };
  beforeEach(() => (nowMs = 0));

  it('knows the shortest time of each name, and 0 of one it knows nothing of', () => {
    const times = new LeastTimes({}, clock);
    for (const tookMs of [300, 200, 250]) times.note('a', tookMs);
    times.note('b', 50);
    expect([times.of('a'), times.of('b'), times.of('c')]).to.deep.equal([200, 50, 0]);
  });

  it('forgets a time between half a window and a whole one after it', () => {
    const times = new LeastTimes({ windowMs: 100 }, clock);
    times.note('a', 20);
    nowMs = 60;
    times.note('a', 30);
    expect(times.of('a')).to.equal(20);
    nowMs = 100;
    expect(times.of('a')).to.equal(30);
    nowMs = 150;
    expect(times.of('a')).to.equal(0);
  });

  it('forgets everything over a long silence', () => {
    const times = new LeastTimes({ windowMs: 100 }, clock);
    times.note('a', 20);
    nowMs = 1e9;
    expect(times.of('a')).to.equal(0);
  });

  it('keeps no more than so many names', () => {
    const times = new LeastTimes({ maxNames: 2 }, clock);
    for (const name of ['a', 'b', 'c']) times.note(name, 10);
    expect(['a', 'b', 'c'].map((name) => times.of(name))).to.deep.equal([0, 10, 10]);
  });

  it('refuses options out of range', () => {
    expect(() => new LeastTimes({ windowMs: 0 }, clock)).to.throw('windowMs');
    expect(() => new LeastTimes({ maxNames: NaN }, clock)).to.throw('maxNames');
  });
});
