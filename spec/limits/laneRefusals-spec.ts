import { expect } from 'chai';
import { turnLost, turnRefused, turnSuperseded } from '../../lib/limits/laneRefusals.ts';

describe('refusals of a conversation', () => {
  for (const [code, message] of [
    ['queue_full', '7 turns of this conversation are waiting already, and no more may'],
    ['queue_timeout', 'the turn did not start within 7 ms: one before it in its conversation still runs'],
    ['timeout_deadline', 'the deadline, 7 ms after the turn was asked for, passed before it could start'],
  ] as const) {
    it(`say in words what ${code} means`, () => {
      const error = turnRefused({ code, limit: 7, retryAfterMs: 30 });
      expect(error).to.include({ code, message, limit: 7, retryAfterMs: 30, while: 'lane', source: 'local' });
    });
  }

  it('tell a turn that ran from one that waited when a newer one takes over', () => {
    expect(turnSuperseded(false)).to.include({ code: 'superseded', while: 'lane' });
    expect(turnSuperseded(true)).to.include({ code: 'superseded', while: undefined });
    expect(turnSuperseded(true).message).to.equal('a newer turn of the same conversation took over');
  });

  it('say that another turn may have started where a lease ran out', () => {
    const message = 'the lease of the conversation ran out while the turn went on: another may have started';
    expect(turnLost()).to.include({ code: 'lane_lost', message, source: 'local' });
  });
});
