import { expect } from 'chai';
import { LiveChanges } from '../../../lib/http/live/LiveChanges.ts';
import { eventOf } from './parts.ts';

describe('LiveChanges', () => {
  it('tells of breakers, pauses, limits that were cut, fallbacks and the store, and of nothing else', () => {
    const changes = new LiveChanges();
    const events = [
      eventOf('breaker.changed', 1),
      eventOf('cooldown', 2),
      eventOf('limit.changed', 3),
      eventOf('limit.changed', 4, { from: 6, to: 7 }),
      eventOf('fallback', 5),
      eventOf('call.ended', 6),
      eventOf('store.changed', 7),
    ];
    for (const event of events) changes.hear(event, 1_000 + event.atMs);
    expect(changes.all()).to.deep.equal([
      ...[{ number: 1, wallMs: 1_001, kind: 'breaker', name: 'm', from: 'closed', to: 'open' }].map((change) => ({
        ...change,
        reason: 'failures',
        times: 1,
      })),
      {
        ...{ number: 2, wallMs: 1_002, kind: 'cooldown', name: 'm', from: undefined, to: '2 s' },
        ...{ reason: 'rate_limited', times: 1 },
      },
      { number: 3, wallMs: 1_003, kind: 'limit', name: 'm', from: '8', to: '6', reason: 'rejected', times: 1 },
      { number: 4, wallMs: 1_005, kind: 'fallback', name: 'm', from: 'm', to: 'n', reason: 'server_error', times: 1 },
      { number: 5, wallMs: 1_007, kind: 'store', name: '', from: undefined, to: 'lost', reason: 'TIMEOUT', times: 1 },
    ]);
  });

  it('counts what repeats as one: fallbacks of a minute, pauses and cuts of ten seconds, changes of a breaker of one', () => {
    const changes = new LiveChanges();
    for (const atMs of [0, 999, 1_000, 9_999, 10_000, 59_999, 60_000]) {
      changes.hear(eventOf('breaker.changed', atMs), atMs);
      changes.hear(eventOf('cooldown', atMs), atMs);
      changes.hear(eventOf('fallback', atMs), atMs);
    }
    const timesOf = (kind: string): readonly number[] =>
      changes.all().flatMap((change) => (change.kind === kind ? [change.times] : []));
    expect(timesOf('breaker')).to.deep.equal([2, 1, 2, 2]);
    expect(timesOf('cooldown')).to.deep.equal([4, 1, 2]);
    expect(timesOf('fallback')).to.deep.equal([6, 1]);
  });

  it('shows the latest of what it counts', () => {
    const changes = new LiveChanges();
    changes.hear(eventOf('limit.changed', 0, { from: 10, to: 7 }), 0);
    changes.hear(eventOf('limit.changed', 1, { from: 7, to: 4.9 }), 1);
    expect(changes.all()).to.have.length(1);
    expect(changes.all()[0]).to.include({ from: '10', to: '5', times: 2 });
  });

  it('keeps sixty', () => {
    const changes = new LiveChanges();
    for (let i = 0; i < 1_000; i++) changes.hear(eventOf('cooldown', i, { model: `m${i}` }), i);
    expect(changes.all()).to.have.length(60);
    expect(changes.all().at(-1)).to.include({ number: 1_000, name: 'm999' });
    expect(changes.all()[0]?.number).to.equal(941);
  });
});
