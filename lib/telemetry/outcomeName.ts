import type { ErrorCode } from '../core/errors.ts';

export type OutcomeName = 'success' | 'failure' | 'cancelled';

/** A call that its caller ended, by whichever means, has not failed. */
export function outcomeName(outcome: 'success' | 'failure' | 'dropped', code: ErrorCode | undefined): OutcomeName {
  if (outcome === 'dropped' || code === 'aborted' || code === 'superseded') return 'cancelled';
  return outcome;
}
