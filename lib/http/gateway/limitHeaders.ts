import type { LimitReading, RateLimitHints } from '../../core/hints.ts';

/** What the provider said of its limits, by OpenAI's names, whatever names it said it by. */
export function limitHeaders(hints: RateLimitHints | undefined): Readonly<Record<string, string>> {
  const headers: Record<string, string> = {};
  if (hints === undefined) return headers;
  write(headers, 'requests', hints.requests);
  write(headers, 'tokens', hints.tokens);
  return headers;
}

function write(headers: Record<string, string>, kind: 'requests' | 'tokens', reading: LimitReading | undefined): void {
  if (reading === undefined) return;
  const { limit, remaining, resetMs } = reading;
  if (limit !== undefined) headers[`x-ratelimit-limit-${kind}`] = String(limit);
  if (remaining !== undefined) headers[`x-ratelimit-remaining-${kind}`] = String(remaining);
  if (resetMs !== undefined) headers[`x-ratelimit-reset-${kind}`] = duration(resetMs);
}

/** As OpenAI writes one: `20ms`, `1.5s`, `6m0s`. */
function duration(ms: number): string {
  if (ms < 1_000) return `${Math.ceil(ms)}ms`;
  if (ms < 60_000) return `${Math.ceil(ms) / 1_000}s`;
  const seconds = Math.ceil(ms / 1_000);
  return `${Math.floor(seconds / 60)}m${seconds % 60}s`;
}
