import { expect } from 'chai';
import { SluiceError } from '../../lib/core/errors.ts';
import type { ErrorCode } from '../../lib/core/errors.ts';
import { DROPPED, DROPPED_UNSENT, SUCCESS } from '../../lib/core/outcome.ts';
import type { Outcome } from '../../lib/core/outcome.ts';
import { checkedRefunds, refundFor } from '../../lib/limits/refunds.ts';

const failure = (code: ErrorCode, status?: number): Outcome => ({
  kind: 'failure',
  error: new SluiceError(code, code, { status }),
});

describe('refundFor', () => {
  it('follows from how the attempt ended', () => {
    for (const [outcome, answered, expected] of [
      [SUCCESS, true, 'none'],
      [DROPPED_UNSENT, false, 'all'],
      [DROPPED, false, 'none'],
      [failure('server_error', 500), true, 'tokens'],
      [failure('overloaded', 503), true, 'tokens'],
      [failure('rate_limited', 429), true, 'none'],
      [failure('connection'), false, 'all'],
      [failure('connection'), true, 'none'],
      [failure('connection', 502), false, 'none'],
    ] as const) {
      expect(refundFor(outcome, answered, {})).to.equal(expected);
    }
  });

  it('takes the rules that are given for the rest', () => {
    const rules = { connection: 'requests', unanswered: 'tokens', unsent: 'none', cancelled: 'all' } as const;
    expect(refundFor(failure('connection'), true, rules)).to.equal('requests');
    expect(refundFor(failure('connection'), false, rules)).to.equal('tokens');
    expect(refundFor(DROPPED_UNSENT, false, rules)).to.equal('none');
    expect(refundFor(DROPPED, true, rules)).to.equal('all');
    expect(refundFor(failure('server_error', 500), true, rules)).to.equal('tokens');
    expect(refundFor(SUCCESS, true, rules)).to.equal('none');
  });
});

describe('checkedRefunds', () => {
  it('takes causes and refunds that there are, and a cause left open', () => {
    const rules = { overloaded: undefined, unsent: 'none' } as const;
    expect(checkedRefunds(rules)).to.equal(rules);
  });

  it('names what it takes where it refuses', () => {
    expect(() => checkedRefunds({ busy: 'all' } as object)).to.throw(
      'refundOn must be keyed by unsent, unanswered, cancelled, rate_limited',
    );
    expect(() => checkedRefunds({ unsent: 'some' } as object)).to.throw('refundOn.unsent');
  });
});
