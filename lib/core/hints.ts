/** One limit as a provider reported it. Absent fields were not reported, or could not be read. */
export interface LimitReading {
  /** Size of the limit in its window. */
  readonly limit: number | undefined;
  /** What was left after the request that carried the report. */
  readonly remaining: number | undefined;
  /** Milliseconds until the limit is full again, counted from when the answer arrived. */
  readonly resetMs: number | undefined;
  /** Length of the window that the limit counts in. */
  readonly windowMs: number;
}

/** Where a wait came from. */
export type HintSource = 'retry-after-ms' | 'retry-after' | 'reset-header' | 'body';

/** What a provider said about limits and waiting, read from one answer. */
export interface RateLimitHints {
  /** The wait that was asked for, from when the answer arrived. Finite, 0 or more. */
  readonly retryAfterMs: number | undefined;
  readonly retryAfterSource: HintSource | undefined;
  /** What `x-should-retry` said. */
  readonly shouldRetry: boolean | undefined;
  readonly requests: LimitReading | undefined;
  readonly tokens: LimitReading | undefined;
  /** The provider asks for a lower rate, not only for a wait. */
  readonly slowDown: boolean;
}

/** Tokens that a provider says it counted for one attempt. */
export interface Usage {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly totalTokens: number;
  /** Part of `inputTokens` that was read from a cache. */
  readonly cachedInputTokens: number | undefined;
  /** Part of `outputTokens` that was spent on reasoning. */
  readonly reasoningTokens: number | undefined;
}
