import { positive, wholeNumber, zeroOrMore } from '../core/checks.ts';
import { invalidOption } from '../core/errors.ts';
import type { ErrorCode } from '../core/errors.ts';
import type { Outcome } from '../core/outcome.ts';

export interface CircuitBreakerOptions {
  /**
   * Opens after so many failures in a row. Failures further apart than `windowMs` are not in a row. `Infinity`: never for
   * this reason. Default: 5.
   */
  readonly consecutiveFailures?: number | undefined;
  /**
   * Opens when at least this part of the calls in the window failed: above 0, at most 1; `Infinity`: never for this
   * reason. Default: 0.25.
   */
  readonly errorRatio?: number | undefined;
  /** Length of the window. After closing, a breaker that stays closed for as long is stable. Default: 30,000. */
  readonly windowMs?: number | undefined;
  /** The error ratio counts from so many calls in the window on. Default: 10. */
  readonly minCalls?: number | undefined;
  /** How long it stays open the first time. Default: 15,000. */
  readonly openMs?: number | undefined;
  /**
   * The open time grows by this factor each time it opens again without having been stable, but for the first
   * `steadyProbes`. 1 or more. Default: 2.
   */
  readonly openFactor?: number | undefined;
  /**
   * So many failed probes leave the open time as it is: an outage of a few open times is then found over within one.
   * Stuck probes and failures soon after closing always make it grow. 0 or more, whole. Default: 3.
   */
  readonly steadyProbes?: number | undefined;
  /** Longest open time. At least `openMs`. Default: 120,000, or `openMs` if that is longer. */
  readonly openCapMs?: number | undefined;
  /** Part of the traffic that may probe while half-open, above 0, at most 1. A ramp starts from it too. Default: 0.1. */
  readonly halfOpenShare?: number | undefined;
  /** Most probes without content at one time. Default: 10. */
  readonly halfOpenMaxProbes?: number | undefined;
  /** A probe that has neither content nor an end for so long opens the breaker again. Default: 30,000. */
  readonly halfOpenMaxMs?: number | undefined;
  /** After closing, the part of the traffic that is let through grows to all of it over this time. Default: 5,000. */
  readonly rampMs?: number | undefined;
  /** Whether `rate_limited` counts as a failure. Default: false. */
  readonly countRateLimited?: boolean | undefined;
}

export const CIRCUIT_BREAKER_DEFAULTS = {
  consecutiveFailures: 5,
  errorRatio: 0.25,
  windowMs: 30_000,
  minCalls: 10,
  openMs: 15_000,
  openFactor: 2,
  steadyProbes: 3,
  openCapMs: 120_000,
  halfOpenShare: 0.1,
  halfOpenMaxProbes: 10,
  halfOpenMaxMs: 30_000,
  rampMs: 5000,
  countRateLimited: false,
} as const;

export type CheckedBreakerOptions = {
  readonly [K in keyof CircuitBreakerOptions]-?: NonNullable<CircuitBreakerOptions[K]>;
};

/** Failures that speak against the provider. The others are the caller's mistakes, or matters of quota. */
const COUNTED: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'overloaded',
  'server_error',
  'connection',
  'timeout',
  'stream_idle',
  'stream_truncated',
  'upstream_body_invalid',
]);

export function judge(outcome: Outcome, countRateLimited: boolean): 'success' | 'failure' | 'neutral' {
  if (outcome.kind === 'success') return 'success';
  if (outcome.kind === 'dropped') return 'neutral';
  const { code } = outcome.error;
  return COUNTED.has(code) || (countRateLimited && code === 'rate_limited') ? 'failure' : 'neutral';
}

export function checkBreakerOptions(options: CircuitBreakerOptions): CheckedBreakerOptions {
  const defaults = CIRCUIT_BREAKER_DEFAULTS;
  const openMs = positive('openMs', options.openMs ?? defaults.openMs);
  const openCapMs = positive('openCapMs', options.openCapMs ?? Math.max(openMs, defaults.openCapMs));
  if (openCapMs < openMs) throw invalidOption('openCapMs', `at least openMs (${openMs})`, openCapMs);
  return {
    consecutiveFailures: consecutive(options.consecutiveFailures ?? defaults.consecutiveFailures),
    errorRatio: errorRatio(options.errorRatio ?? defaults.errorRatio),
    windowMs: positive('windowMs', options.windowMs ?? defaults.windowMs),
    minCalls: wholeNumber('minCalls', options.minCalls ?? defaults.minCalls),
    openMs,
    openFactor: factor(options.openFactor ?? defaults.openFactor),
    steadyProbes: wholeNumber('steadyProbes', options.steadyProbes ?? defaults.steadyProbes, 0),
    openCapMs,
    halfOpenShare: share(options.halfOpenShare ?? defaults.halfOpenShare),
    halfOpenMaxProbes: wholeNumber('halfOpenMaxProbes', options.halfOpenMaxProbes ?? defaults.halfOpenMaxProbes),
    halfOpenMaxMs: positive('halfOpenMaxMs', options.halfOpenMaxMs ?? defaults.halfOpenMaxMs),
    rampMs: zeroOrMore('rampMs', options.rampMs ?? defaults.rampMs),
    countRateLimited: options.countRateLimited ?? defaults.countRateLimited,
  };
}

function consecutive(value: number): number {
  if (value === Infinity || (Number.isSafeInteger(value) && value >= 1)) return value;
  throw invalidOption('consecutiveFailures', 'a whole number of at least 1, or Infinity', value);
}

function errorRatio(value: number): number {
  if (typeof value === 'number' && ((value > 0 && value <= 1) || value === Infinity)) return value;
  throw invalidOption('errorRatio', 'above 0 and at most 1, or Infinity', value);
}

function factor(value: number): number {
  if (Number.isFinite(value) && value >= 1) return value;
  throw invalidOption('openFactor', 'finite and 1 or more', value);
}

function share(value: number): number {
  if (typeof value === 'number' && value > 0 && value <= 1) return value;
  throw invalidOption('halfOpenShare', 'above 0 and at most 1', value);
}
