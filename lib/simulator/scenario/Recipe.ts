import type { ErrorCode } from '../../core/errors.ts';

/** A token bucket of the client. Default of `burstRequests`: one second's worth, at least 1. */
export interface BucketRate {
  readonly requestsPerMinute: number;
  readonly burstRequests?: number | undefined;
}

/** Waits between attempts: `baseMs`, doubled each time, at most `capMs`. */
export interface RecipeRetry {
  /** Default: 5. */
  readonly attempts?: number | undefined;
  /** Default: 500. */
  readonly baseMs?: number | undefined;
  /** Default: 8,000. */
  readonly capMs?: number | undefined;
  /** `'full'`: anything up to that. Default: `'none'`. */
  readonly jitter?: 'none' | 'full' | undefined;
  /** What a hint of the provider is: nothing, the least wait, or the wait. Default: `'none'`. */
  readonly hints?: 'none' | 'floor' | 'instead' | undefined;
  /** No hint counts for more. Default: 60,000. */
  readonly maxHintMs?: number | undefined;
}

/** A breaker that counts 429s as failures. What is not given does not open it. */
export interface RecipeBreaker {
  readonly failures?: number | undefined;
  readonly errorRatio?: number | undefined;
  /** Of the error ratio. Default: 30,000. */
  readonly windowMs?: number | undefined;
  /** Default: 15,000. */
  readonly openMs?: number | undefined;
  /** Part of the traffic that may try while half-open. Default: 0.1. */
  readonly halfOpenShare?: number | undefined;
}

/** A limit of requests in flight that adapts: one more after a healthy while, fewer after a rejection. */
export interface RecipeAdaptive {
  readonly initial: number;
  readonly min: number;
  readonly max: number;
  readonly decrease: number;
  readonly growEveryMs: number;
}

/**
 * What reports from production describe, put together from their pieces. From the outside in: a deadline, one turn at a
 * time in a conversation, fallbacks, retries, a breaker, token buckets, slots.
 */
export interface Recipe {
  /** From the call to its first content, all waits included; no retry starts that it would cut. Default: none. */
  readonly deadlineMs?: number | undefined;
  /** Turns of a conversation wait for each other. Default: false. */
  readonly conversations?: boolean | undefined;
  /** Models asked in turn once the attempts at one are used up, or its breaker is open. Default: none. */
  readonly fallback?: readonly string[] | undefined;
  /** Default: one attempt. */
  readonly retry?: RecipeRetry | undefined;
  /** One for each model. Default: none. */
  readonly breaker?: RecipeBreaker | undefined;
  /** Retry and breaker of a model, in place of those above. */
  readonly models?:
    | Readonly<
        Record<string, { readonly retry?: RecipeRetry | undefined; readonly breaker?: RecipeBreaker | undefined }>
      >
    | undefined;
  /** Each request takes a token of its model, of its tenant and of the account, one after the other. Default: none. */
  readonly buckets?:
    | {
        readonly account?: BucketRate | undefined;
        readonly models?: Readonly<Record<string, BucketRate>> | undefined;
        readonly tenants?: Readonly<Record<string, BucketRate>> | undefined;
      }
    | undefined;
  /** Longest wait for a token. Default: 30,000. */
  readonly bucketWaitMs?: number | undefined;
  /** Failures after which the tokens are given back. Default: none. */
  readonly giveBackOn?: readonly ErrorCode[] | undefined;
  /** Requests in flight: a number for all together, or an adaptive limit for each model. Default: no limit. */
  readonly inFlight?: number | RecipeAdaptive | undefined;
  /** Requests in flight of a tenant; those not named share `default`. Default: no limit. */
  readonly tenantsInFlight?: Readonly<Record<string, number>> | undefined;
  /** Requests in flight of a priority. Default: no limit. */
  readonly prioritiesInFlight?: Readonly<Record<string, number>> | undefined;
}

export const RECIPE_DEFAULTS = {
  attempts: 5,
  baseMs: 500,
  capMs: 8000,
  jitter: 'none',
  hints: 'none',
  maxHintMs: 60_000,
  windowMs: 30_000,
  openMs: 15_000,
  halfOpenShare: 0.1,
  bucketWaitMs: 30_000,
} as const;
