import type { CumulativeCounts, PercentileLines } from './Durations.ts';
import type { QuotaUnit } from './quotaRate.ts';

/** How much of a limit was used over time, per minute. */
export interface QuotaLine {
  readonly client: string;
  /** Undefined for the limit of the whole account. */
  readonly model: string | undefined;
  readonly unit: QuotaUnit;
  /** What was let through in each bucket, as a rate. Above the limit where a burst is spent. */
  readonly usedPerMinute: readonly number[];
  /** What the limit lets through, less what others use up. */
  readonly limitPerMinute: readonly number[];
}

/** Durations by when the call was made, and all of them together. Within 2 %. */
export interface DurationLines extends PercentileLines {
  readonly cumulative: CumulativeCounts;
}

/**
 * What happened when: a number for each bucket of virtual time. There are at most 240 buckets, and at least 120 of what
 * has lasted for as long as the scenario says.
 */
export interface Timeline {
  readonly bucketMs: number;
  /** Calls that were made in the bucket, and what became of them, whenever that was. */
  readonly calls: readonly number[];
  readonly answered: readonly number[];
  readonly failed: readonly number[];
  readonly left: readonly number[];
  /** Requests that were sent for the calls of the bucket. */
  readonly attempts: readonly number[];
  /** Requests that reached a provider in the bucket, and those that got a 429. */
  readonly requests: readonly number[];
  readonly rateLimited: readonly number[];
  readonly queueMs: DurationLines;
  readonly firstContentMs: DurationLines;
  readonly totalMs: DurationLines;
  readonly quotas: readonly QuotaLine[];
}
