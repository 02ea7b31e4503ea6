import { zeroOrInfinity } from '../core/checks.ts';

/** What may bound a wait. */
export interface WaitLimits {
  readonly maxWaitMs?: number | undefined;
  /** Monotonic milliseconds by which the grant must come. */
  readonly deadlineAtMs?: number | undefined;
}

export interface WaitBound {
  readonly code: 'queue_timeout' | 'timeout_deadline';
  /** Below 0: there is no time left, even for one that need not wait. */
  readonly limitMs: number;
}

/**
 * Whichever comes first, the end of a wait or its deadline. `maxWaitMs`: for one that brings none.
 * @throws SluiceError `invalid_option` if what it brings is not 0 or more.
 */
export function waitBound(limits: WaitLimits, maxWaitMs: number, nowMs: number): WaitBound {
  const limitMs = zeroOrInfinity('maxWaitMs', limits.maxWaitMs ?? maxWaitMs);
  const leftMs = (limits.deadlineAtMs ?? Infinity) - nowMs;
  if (leftMs > limitMs) return { code: 'queue_timeout', limitMs };
  // At the deadline itself there is no time left for an answer.
  return { code: 'timeout_deadline', limitMs: leftMs > 0 ? leftMs : -1 };
}
