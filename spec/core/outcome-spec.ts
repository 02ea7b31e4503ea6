import { expect } from 'chai';
import { SluiceError } from '../../lib/core/errors.ts';
import { outcomeOf } from '../../lib/core/outcome.ts';

describe('outcomeOf', () => {
  it('takes what an upstream did wrong for a failure, sent or not', () => {
    const error = new SluiceError('overloaded', 'm');
    for (const dispatched of [true, false])
      expect(outcomeOf(error, dispatched)).to.deep.equal({ kind: 'failure', error });
  });

  it('takes our own refusal, and a cancel, for dropped', () => {
    for (const code of ['circuit_open', 'aborted', 'queue_full', 'timeout_deadline'] as const) {
      const error = new SluiceError(code, 'm');
      expect(outcomeOf(error, true)).to.deep.equal({ kind: 'dropped', dispatched: true });
      expect(outcomeOf(error, false)).to.deep.equal({ kind: 'dropped', dispatched: false });
    }
  });
});
