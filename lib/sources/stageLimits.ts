import { STAGE_TIMER_DEFAULTS } from './AttemptOptions.ts';
import type { AttemptSettings } from './AttemptOptions.ts';
import type { StageLimits } from './StageTimers.ts';

/** The limits of an attempt that is sent now, with the defaults that depend on the deadline. */
export function stageLimits(
  settings: AttemptSettings,
  { deadlineAtMs, deadlineMs }: { readonly deadlineAtMs: number; readonly deadlineMs: number },
  nowMs: number,
): StageLimits {
  const { headersMs, firstContentMs, idleMs, tailMs, responseMs } = settings.timeouts;
  const usual = STAGE_TIMER_DEFAULTS;
  const unbounded = deadlineAtMs === Infinity;
  const share = unbounded ? Infinity : firstShare(deadlineAtMs - nowMs, deadlineMs);
  return {
    headersMs,
    firstContentMs: firstContentMs ?? Math.min(usual.firstContentMs, share),
    idleMs,
    tailMs,
    responseMs: responseMs ?? (unbounded ? usual.responseMs : Infinity),
    deadlineAtMs,
  };
}

/** Of the whole deadline: with less left there is no time for two. */
const LATE_SHARE = 0.45;

/**
 * Half of what is left, so that a fallback still fits. Who has spent the time in a queue gets all of it: half of that
 * little would cut attempts that go well, and a breaker would take our queue for a provider that is down.
 */
function firstShare(leftMs: number, deadlineMs: number): number {
  const late = deadlineMs < Infinity && leftMs < LATE_SHARE * deadlineMs;
  return late ? leftMs : Math.max(1, Math.floor(leftMs / 2));
}
