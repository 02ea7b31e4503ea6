import type { HintSource, RateLimitHints } from '../core/hints.ts';
import { parseDecimal, parseUnits } from './durations.ts';
import { headerOf, headerReader } from './headers.ts';
import type { HeaderReader } from './headers.ts';
import { parseEpoch, parseHttpDate, parseRfc3339 } from './instants.ts';
import { readLimits, tightest } from './limitHeaders.ts';
import type { NamedReading } from './limitHeaders.ts';
import { readErrorBody } from './errorBody.ts';
import type { ErrorFacts } from './errorBody.ts';
import { readBodyWait, saysSlowDown } from './bodyHints.ts';

export type { HeaderReader } from './headers.ts';

/** The head of an answer, and its body where it is an error's. */
export interface AnswerHead {
  readonly status: number;
  readonly headers: HeaderReader;
  /** Parsed JSON, text, or nothing. Not read for an answer of status 2xx. */
  readonly body?: unknown;
  /**
   * Wall clock, in milliseconds since the epoch, when the answer arrived. Only absolute instants need it, and only where
   * the answer has no `Date` header.
   */
  readonly wallNowMs: number;
}

/** Longest wait that is reported. A longer one is cut to this: no timer can hold it, and no caller would wait for it. */
export const MAX_HINT_MS = 2_147_483_647;

/**
 * Reads what a provider said about limits and waiting. `undefined` where it said nothing.
 *
 * The wait comes from the first of these that parses: `retry-after-ms` (also `x-ms-retry-after-ms`), `retry-after`
 * (seconds, decimals, HTTP date, RFC 3339, epoch), the reset of the exhausted limit, the body (`RetryInfo`, fields such
 * as `resets_in_seconds`, "try again in 1.2s"). Waits are rounded up to a millisecond; instants in the past give 0.
 * Reset headers count only with status 429, the body only in an answer that is not 2xx.
 *
 * @example
 * ```ts
 * import { readHints } from 'sluice';
 *
 * const headers = new Headers({ 'retry-after-ms': '1500', 'retry-after': '2' });
 * console.log(readHints({ status: 429, headers, wallNowMs: 0 })?.retryAfterMs); // => 1500
 * ```
 */
export function readHints(head: AnswerHead): RateLimitHints | undefined {
  const succeeded = head.status >= 200 && head.status < 300;
  return hintsOf(head, succeeded ? undefined : readErrorBody(head.body));
}

/** {@link readHints} for a body that has been taken apart already. */
export function hintsOf(head: AnswerHead, facts: ErrorFacts | undefined): RateLimitHints | undefined {
  const { headers } = head;
  // Read only for those who ask: few answers name an instant, and all have a date.
  let readMs: number | undefined;
  const nowMs = (): number => (readMs ??= referenceMs(head));
  const resetOf = (value: string): number | undefined => parseWait(value, nowMs);
  const readings = [...readLimits(headers, resetOf)];
  if (facts !== undefined) {
    // Some gateways carry the provider's headers in the body of the error.
    for (const place of facts.places) readings.push(...readLimits(headerReader(place['headers']), resetOf));
  }
  const said = headerOf(headers, 'x-should-retry')?.toLowerCase();
  const shouldRetry = said === 'true' ? true : said === 'false' ? false : undefined;
  const succeeded = head.status >= 200 && head.status < 300;
  const wait = headerWait(headers, nowMs) ?? (succeeded ? undefined : errorWait(head.status, readings, facts, nowMs));
  const slowDown = facts !== undefined && saysSlowDown(facts);
  const requests = tightest(readings, 'requests');
  const tokens = tightest(readings, 'tokens');
  if (wait === undefined && shouldRetry === undefined && requests === undefined && tokens === undefined && !slowDown) {
    return undefined;
  }
  return { retryAfterMs: wait?.ms, retryAfterSource: wait?.source, shouldRetry, requests, tokens, slowDown };
}

interface Wait {
  readonly ms: number;
  readonly source: HintSource;
}

function headerWait(headers: HeaderReader, nowMs: () => number): Wait | undefined {
  for (const name of ['retry-after-ms', 'x-ms-retry-after-ms']) {
    const value = headerOf(headers, name);
    const ms = value === undefined ? undefined : parseDecimal(value);
    if (ms !== undefined) return { ms: bounded(sinceEpoch(ms, nowMs) ?? ms), source: 'retry-after-ms' };
  }
  const value = headerOf(headers, 'retry-after');
  return value === undefined ? undefined : retryAfter(value, nowMs);
}

function retryAfter(value: string, nowMs: () => number): Wait | undefined {
  // Two equal headers arrive joined by a comma, which is also part of a date.
  const parts = value.split(',').map((part) => parseWait(part, nowMs));
  const ms = parseWait(value, nowMs) ?? (parts.every((part) => part !== undefined) ? Math.max(...parts) : undefined);
  return ms === undefined ? undefined : { ms, source: 'retry-after' };
}

function errorWait(
  status: number,
  readings: readonly NamedReading[],
  facts: ErrorFacts | undefined,
  nowMs: () => number,
): Wait | undefined {
  // A server error says nothing of limits, though it may come while one is used up. Its reset is when that one is full.
  return (status === 429 ? resetWait(readings) : undefined) ?? bodyWait(facts, nowMs);
}

/** The reset of what is exhausted; all of it must be back. A reset with no word of what is left counts as exhausted. */
function resetWait(readings: readonly NamedReading[]): Wait | undefined {
  const told = readings.some((reading) => reading.remaining !== undefined);
  let ms: number | undefined;
  for (const reading of readings) {
    if (reading.resetMs === undefined || (told ? reading.remaining !== 0 : false)) continue;
    ms = Math.max(ms ?? 0, reading.resetMs);
  }
  return ms === undefined ? undefined : { ms, source: 'reset-header' };
}

function bodyWait(facts: ErrorFacts | undefined, nowMs: () => number): Wait | undefined {
  const ms = facts === undefined ? undefined : readBodyWait(facts, (value) => parseWait(value, nowMs));
  return ms === undefined ? undefined : { ms: bounded(ms), source: 'body' };
}

/** Milliseconds to wait, from a value in any of the forms that headers use. A bare number is seconds or an epoch. */
function parseWait(value: string, nowMs: () => number): number | undefined {
  const number = parseDecimal(value);
  if (number !== undefined) return bounded(sinceEpoch(number, nowMs) ?? number * 1_000);
  const durationMs = parseUnits(value);
  if (durationMs !== undefined) return bounded(durationMs);
  const instantMs = parseRfc3339(value) ?? parseHttpDate(value);
  return instantMs === undefined || !Number.isFinite(nowMs()) ? undefined : bounded(instantMs - nowMs());
}

function sinceEpoch(value: number, nowMs: () => number): number | undefined {
  const instantMs = parseEpoch(value);
  return instantMs === undefined || !Number.isFinite(nowMs()) ? undefined : instantMs - nowMs();
}

/** Rounded up: a wait cut by part of a millisecond comes early. Float noise such as 1100.0000000000002 is not a part. */
function bounded(ms: number): number {
  return Math.min(MAX_HINT_MS, Math.max(0, Math.ceil(ms - 1e-7)));
}

function referenceMs(head: AnswerHead): number {
  const date = headerOf(head.headers, 'date');
  return (date === undefined ? undefined : parseHttpDate(date)) ?? head.wallNowMs;
}
