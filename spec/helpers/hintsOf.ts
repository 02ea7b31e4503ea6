import type { RateLimitHints } from '../../lib/core/hints.ts';

/** What a provider tells of its limits: `part`, and nothing else. */
export const hintsOf = (part: Partial<RateLimitHints> = {}): RateLimitHints => ({
  retryAfterMs: undefined,
  retryAfterSource: undefined,
  shouldRetry: undefined,
  requests: undefined,
  tokens: undefined,
  slowDown: false,
  ...part,
});
