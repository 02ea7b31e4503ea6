import { expect } from 'chai';
import fc from 'fast-check';
import { SlidingSums } from '../../lib/limits/SlidingSums.ts';

describe('SlidingSums', () => {
  it('adds up what came within the window', () => {
    const sums = new SlidingSums(100);
    sums.add(0, 1, 10);
    sums.add(50, 2, 20);

    expect(sums.first(60)).to.equal(3);
    expect(sums.second(60)).to.equal(30);
  });

  it('forgets step by step', () => {
    const sums = new SlidingSums(100);
    sums.add(0, 1, 0);
    sums.add(50, 2, 0);

    expect(sums.first(99)).to.equal(3);
    expect(sums.first(100)).to.equal(2);
    expect(sums.first(150)).to.equal(0);
  });

  it('is empty after a gap as long as the window, and after a longer one', () => {
    const sums = new SlidingSums(100);
    sums.add(5, 1, 1);
    sums.add(105, 1, 1);
    expect(sums.first(105)).to.equal(1);

    expect(sums.first(3_600_000)).to.equal(0);
    expect(sums.second(3_600_000)).to.equal(0);
  });

  it('says how far back it reaches', () => {
    const sums = new SlidingSums(100);

    expect(sums.reachMs(1000)).to.equal(90);
    expect(sums.reachMs(1009)).to.equal(99);
  });

  it('works where the clock starts below zero', () => {
    const sums = new SlidingSums(100);
    sums.add(-1000, 1, 0);
    sums.add(-950, 1, 0);

    expect(sums.first(-950)).to.equal(2);
    expect(sums.first(-900)).to.equal(1);
    expect(sums.first(0)).to.equal(0);
  });

  it('adds to the newest step what a clock that went back tells later, and loses nothing by it', () => {
    const sums = new SlidingSums(100);
    sums.add(50, 1, 1);
    sums.add(20, 2, 2);

    expect([sums.first(10), sums.second(10)]).to.deep.equal([3, 3]);
    expect(sums.first(149)).to.equal(3);
    expect(sums.second(150)).to.equal(0);
  });

  it('counts in each step apart, however often it is asked', () => {
    const sums = new SlidingSums(100);
    for (let nowMs = 0; nowMs < 100; nowMs += 10) sums.add(nowMs, 1, 2);

    expect([sums.first(95), sums.second(95)]).to.deep.equal([10, 20]);
    expect([sums.first(105), sums.second(105)]).to.deep.equal([9, 18]);
    expect([sums.first(175), sums.second(175)]).to.deep.equal([2, 4]);
  });

  it('counts what is younger than nine tenths of the window, and nothing older than the window', () => {
    fc.assert(
      fc.property(
        fc.array(fc.record({ afterMs: fc.nat({ max: 60 }), amount: fc.nat({ max: 9 }) }), { maxLength: 40 }),
        (steps) => {
          const sums = new SlidingSums(100);
          const added: { atMs: number; amount: number }[] = [];
          let nowMs = 0;
          for (const { afterMs, amount } of steps) {
            nowMs += afterMs;
            sums.add(nowMs, amount, 0);
            added.push({ atMs: nowMs, amount });
            const within = (ageMs: number): number =>
              added.reduce((sum, each) => (nowMs - each.atMs < ageMs ? sum + each.amount : sum), 0);
            expect(sums.first(nowMs)).to.be.within(within(90), within(100));
          }
        },
      ),
      { numRuns: 200 },
    );
  });
});
