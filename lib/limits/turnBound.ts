import { zeroOrInfinity } from '../core/checks.ts';
import type { TurnBound } from './Lane.ts';

/** What a turn may bring to bound its wait. */
export interface TurnLimits {
  readonly maxWaitMs?: number | undefined;
  /** Monotonic milliseconds by which the turn must have started. */
  readonly deadlineAtMs?: number | undefined;
}

/**
 * Whichever comes first, the end of its wait or its deadline. `maxWaitMs`: for a turn that brings none.
 * @throws SluiceError `invalid_option` if what it brings is not 0 or more.
 */
export function turnBound(limits: TurnLimits, maxWaitMs: number, nowMs: number): TurnBound {
  const waitMs = zeroOrInfinity('maxWaitMs', limits.maxWaitMs ?? maxWaitMs);
  const { deadlineAtMs = Infinity } = limits;
  if (deadlineAtMs <= nowMs + waitMs && deadlineAtMs !== Infinity) {
    return { code: 'timeout_deadline', limit: Math.max(0, deadlineAtMs - nowMs), atMs: deadlineAtMs };
  }
  return { code: 'queue_timeout', limit: waitMs, atMs: nowMs + waitMs };
}
