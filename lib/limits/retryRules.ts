import { BACKOFF_DEFAULTS } from './backoff.ts';
import type { Jitter } from './backoff.ts';

/** Defaults of what decides whether and when there is another attempt. */
export const RETRY_RULE_DEFAULTS: Readonly<{
  attempts: number;
  maxAttempts: number;
  baseMs: number;
  capMs: number;
  jitter: Jitter;
  maxHintMs: number;
}> = Object.freeze({ ...BACKOFF_DEFAULTS, attempts: 5, maxAttempts: Infinity, maxHintMs: 60_000 });
