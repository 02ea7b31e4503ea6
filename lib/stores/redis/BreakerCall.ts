import type { BreakerState } from '../../core/events.ts';
import type { CheckedBreakerOptions } from '../../limits/breakerRules.ts';
import type { BreakerChangeReason } from '../../limits/CircuitBreaker.ts';

/** The options of a breaker in whole microseconds, so that Lua and TypeScript compute the same. 0 failures, ratio 0: never. */
export interface BreakerRules {
  readonly consecutiveFailures: number;
  readonly errorRatio: number;
  readonly windowUs: number;
  readonly minCalls: number;
  readonly openUs: number;
  readonly openFactor: number;
  readonly steadyProbes: number;
  readonly openCapUs: number;
  readonly halfOpenShare: number;
  readonly halfOpenMaxProbes: number;
  readonly halfOpenMaxUs: number;
  readonly rampUs: number;
  /** The probes of a process that was not heard of for so long give their places back. */
  readonly leaseUs: number;
  /** How long a breaker that is not used is remembered. */
  readonly keepMs: number;
}

/** As the calls write them. */
export const STATES: readonly BreakerState[] = ['closed', 'open', 'half_open', 'ramping'];
export const CLOSED = 0;
export const OPEN = 1;
export const HALF_OPEN = 2;
export const RAMPING = 3;

/** As the calls write them; the first one is that of a breaker that has never changed. */
export const REASONS: readonly BreakerChangeReason[] = [
  'probe_succeeded',
  'consecutive_failures',
  'error_ratio',
  'open_time_over',
  'probe_failed',
  'probe_stuck',
  'ramp_over',
];

export const VERDICT = { failure: 0, success: 1, neutral: 2 } as const;

export type BreakerOp =
  /** May one go, as a probe of that name? */
  | readonly ['ask', id: string]
  /** The probe of that name has content. */
  | readonly ['content', id: string]
  /** So many ended like this in a row; `id` of a probe, else empty. */
  | readonly ['ended', epoch: number, verdict: number, count: number, id: string];

/** A breaker as one process knew it: `leftUs` until it opens for a probe, or until its ramp is over. */
export type BreakerMemory = readonly [state: number, leftUs: number, growths: number, failedProbes: number];

export interface BreakerCall {
  /** Whose the probes are. Another one after each loss of the store. */
  readonly process: string;
  /** What it was called before; empty if nothing is left under that name. */
  readonly former: string;
  /** For a store that knows of no breaker; and, after a loss, for one that knows of no trouble. */
  readonly last: BreakerMemory;
  readonly returned: 0 | 1;
  readonly ops: readonly BreakerOp[];
}

/** What is said to `ask`. */
export const MAY = { not: 0, probe: 1, decide: 2 } as const;

export interface BreakerReply {
  /** Results of another one are ignored. */
  readonly epoch: number;
  readonly state: number;
  /** Until one may ask again: while open or half-open; while ramping until the ramp is over; else 0. */
  readonly leftUs: number;
  readonly consecutiveFailures: number;
  readonly calls: number;
  readonly failures: number;
  readonly openForUs: number;
  readonly growths: number;
  readonly failedProbes: number;
  /** What it was before this call, and why. */
  readonly before: readonly [state: number, reason: number];
  /** One of {@link MAY} to each `ask`. */
  readonly may: readonly number[];
  /** What this call changed: to which state, why, and by which op; -1: time did. */
  readonly changes: readonly (readonly [to: number, reason: number, op: number])[];
}

export type WrittenReply = readonly [
  numbers: readonly number[],
  may: readonly number[],
  changes: readonly (readonly [to: number, reason: number, op: number])[],
];

export function breakerRules(options: CheckedBreakerOptions, leaseMs: number, keepMs: number): BreakerRules {
  const us = (ms: number): number => Math.ceil(Math.min(ms, 1e9) * 1000);
  const never = (value: number): number => (value === Infinity ? 0 : value);
  return {
    consecutiveFailures: never(options.consecutiveFailures),
    errorRatio: never(options.errorRatio),
    windowUs: us(options.windowMs),
    minCalls: options.minCalls,
    openUs: us(options.openMs),
    openFactor: options.openFactor,
    steadyProbes: options.steadyProbes,
    openCapUs: us(options.openCapMs),
    halfOpenShare: options.halfOpenShare,
    halfOpenMaxProbes: options.halfOpenMaxProbes,
    halfOpenMaxUs: us(options.halfOpenMaxMs),
    rampUs: us(options.rampMs),
    leaseUs: us(leaseMs),
    keepMs,
  };
}

/** Clients may be told to hand out numbers as text. */
export function readReply(reply: unknown): BreakerReply {
  const [numbers, may, changes] = asNumbers(reply) as WrittenReply;
  const [epoch = 0, state = 0, leftUs = 0, consecutiveFailures = 0, calls = 0, failures = 0] = numbers;
  const [openForUs = 0, growths = 0, failedProbes = 0, before = 0, reason = 0] = numbers.slice(6);
  return {
    epoch,
    state,
    leftUs,
    consecutiveFailures,
    calls,
    failures,
    openForUs,
    growths,
    failedProbes,
    before: [before, reason],
    may,
    changes,
  };
}

function asNumbers(reply: unknown): unknown {
  return Array.isArray(reply) ? reply.map(asNumbers) : Number(reply);
}
