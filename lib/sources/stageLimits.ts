import { STAGE_TIMER_DEFAULTS } from './AttemptOptions.ts';
import type { AttemptSettings } from './AttemptOptions.ts';
import type { StageLimits } from './StageTimers.ts';

/** The limits of an attempt that is sent now, with the defaults that depend on the deadline. */
export function stageLimits(settings: AttemptSettings, deadlineAtMs: number, nowMs: number): StageLimits {
  const { timeouts } = settings;
  const leftMs = deadlineAtMs - nowMs;
  return {
    headersMs: timeouts.headersMs,
    // Half, so that a fallback still fits.
    firstContentMs:
      timeouts.firstContentMs ?? Math.min(STAGE_TIMER_DEFAULTS.firstContentMs, Math.max(1, Math.floor(leftMs / 2))),
    idleMs: timeouts.idleMs,
    tailMs: timeouts.tailMs,
    responseMs: timeouts.responseMs ?? (leftMs === Infinity ? STAGE_TIMER_DEFAULTS.responseMs : Infinity),
    deadlineAtMs,
  };
}
