import type { LimitReading } from '../core/hints.ts';
import { parseDecimal } from './durations.ts';
import { headerOf, headersNamed } from './headers.ts';
import type { HeaderReader } from './headers.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;
const MONTH_MS = 30 * DAY_MS;

export interface NamedReading extends LimitReading {
  readonly kind: 'requests' | 'tokens';
}

interface Family {
  readonly kind: 'requests' | 'tokens';
  readonly limit: string;
  readonly remaining: string;
  readonly reset: string;
  /** Length of the window, where the names say it. */
  readonly windowMs?: number;
}

const family = (kind: Family['kind'], names: (field: string) => string, windowMs?: number): Family => ({
  kind,
  limit: names('limit'),
  remaining: names('remaining'),
  reset: names('reset'),
  ...(windowMs !== undefined && { windowMs }),
});

const FAMILIES: readonly Family[] = [
  family('requests', (field) => `x-ratelimit-${field}-requests`),
  family('tokens', (field) => `x-ratelimit-${field}-tokens`, MINUTE_MS),
  family('tokens', (field) => `x-ratelimit-${field}-project-tokens`, MINUTE_MS),
  family('requests', (field) => `anthropic-ratelimit-requests-${field}`, MINUTE_MS),
  family('tokens', (field) => `anthropic-ratelimit-tokens-${field}`, MINUTE_MS),
  family('tokens', (field) => `anthropic-ratelimit-input-tokens-${field}`, MINUTE_MS),
  family('tokens', (field) => `anthropic-ratelimit-output-tokens-${field}`, MINUTE_MS),
  family('tokens', (field) => `anthropic-priority-input-tokens-${field}`, MINUTE_MS),
  family('tokens', (field) => `anthropic-priority-output-tokens-${field}`, MINUTE_MS),
  family('tokens', (field) => `ratelimitbysize-${field}`, MINUTE_MS),
  family('tokens', (field) => `x-ratelimitbysize-${field}-minute`, MINUTE_MS),
  family('tokens', (field) => `x-ratelimitbysize-${field}-month`, MONTH_MS),
  family('requests', (field) => `x-ratelimit-${field}-requests-minute`, MINUTE_MS),
  family('requests', (field) => `x-ratelimit-${field}-requests-hour`, HOUR_MS),
  family('requests', (field) => `x-ratelimit-${field}-requests-day`, DAY_MS),
  family('tokens', (field) => `x-ratelimit-${field}-tokens-minute`, MINUTE_MS),
  family('tokens', (field) => `x-ratelimit-${field}-tokens-hour`, HOUR_MS),
  family('tokens', (field) => `x-ratelimit-${field}-tokens-day`, DAY_MS),
  family('requests', (field) => `x-ratelimit-${field}-req-minute`, MINUTE_MS),
  family('requests', (field) => `x-ratelimit-${field}`),
  family('requests', (field) => `ratelimit-${field}`),
];

/** Every limit that the headers report. `resetOf` turns a reset value into milliseconds from the answer's arrival. */
export function readLimits(
  headers: HeaderReader,
  resetOf: (value: string) => number | undefined,
): readonly NamedReading[] {
  const readings: NamedReading[] = [];
  const named = headersNamed(headers, 'ratelimit', 'anthropic-priority');
  if (named === undefined) return readings;
  // Groq uses OpenAI's names, but its request limits are per day.
  const groq = headerOf(headers, 'x-groq-region') !== undefined || headerOf(headers, 'x-groq-id') !== undefined;
  for (const { kind, limit, remaining, reset, windowMs } of FAMILIES) {
    // Without lists of them: this is done for each answer, and nearly all of these headers are never there.
    const limitText = headerOf(named, limit);
    const remainingText = headerOf(named, remaining);
    const resetText = headerOf(named, reset);
    if (limitText === undefined && remainingText === undefined && resetText === undefined) continue;
    const size = countOf(limitText);
    // Azure's Responses API reports a limit of -1 or 0 where it means that it reports none.
    if (limitText !== undefined && !(size !== undefined && size > 0)) continue;
    const left = countOf(remainingText);
    const resetMs = resetText === undefined ? undefined : resetOf(resetText);
    if (size === undefined && left === undefined && resetMs === undefined) continue;
    const guessed = kind === 'requests' && groq ? DAY_MS : windowOf(size, left, resetMs);
    readings.push({ kind, limit: size, remaining: left, resetMs, windowMs: windowMs ?? guessed });
  }
  readings.push(...readStructured(named));
  return readings;
}

/** The reading that will bind first: the smallest share left, and among equals the later reset. */
export function tightest(readings: readonly NamedReading[], kind: NamedReading['kind']): LimitReading | undefined {
  const share = (reading: LimitReading): number =>
    reading.remaining === undefined
      ? 2
      : reading.remaining === 0
        ? 0
        : reading.remaining / (reading.limit ?? Infinity) || 1;
  let best: NamedReading | undefined;
  for (const reading of readings) {
    if (reading.kind !== kind) continue;
    const closer = best === undefined ? -1 : share(reading) - share(best);
    if (closer < 0 || (closer === 0 && (reading.resetMs ?? 0) > (best?.resetMs ?? 0))) best = reading;
  }
  if (best === undefined) return undefined;
  const { limit, remaining, resetMs, windowMs } = best;
  return { limit, remaining, resetMs, windowMs };
}

/**
 * The window that a request limit counts in, where the names do not say it. A limit that refills continuously is full
 * again after its share of the window: `window = reset * limit / (limit - remaining)`. A reset of up to a minute and a
 * half says nothing: it fits a limit per minute as well.
 */
function windowOf(limit: number | undefined, remaining: number | undefined, resetMs: number | undefined): number {
  if (resetMs === undefined || resetMs <= 1.5 * MINUTE_MS) return MINUTE_MS;
  if (limit === undefined || remaining === undefined || limit <= remaining) return resetMs;
  const windowMs = Math.min((resetMs * limit) / (limit - remaining), Math.max(DAY_MS, resetMs));
  // Stryker disable next-line EqualityOperator: no quotient is exactly 0.15 away from 1
  for (const usual of [HOUR_MS, DAY_MS]) if (Math.abs(windowMs / usual - 1) < 0.15) return usual;
  return Math.ceil(windowMs);
}

/** `RateLimit` of the IETF draft, old (`limit=10, remaining=0, reset=5`) and new (`"name";r=0;t=5`). Seconds. */
function readStructured(headers: HeaderReader): readonly NamedReading[] {
  const text = headerOf(headers, 'ratelimit')?.slice(0, 500);
  if (text === undefined) return [];
  const numberOf = (pattern: RegExp): number | undefined => countOf(pattern.exec(text)?.[1]);
  const limit = numberOf(/\blimit=(\d{1,15})/);
  const remaining = numberOf(/\b(?:remaining|r)=(\d{1,15})/);
  const seconds = numberOf(/\b(?:reset|t)=(\d{1,9})/);
  if (remaining === undefined && seconds === undefined) return [];
  const resetMs = seconds === undefined ? undefined : Math.min(seconds * 1_000, 2_147_483_647);
  return [{ kind: 'requests', limit, remaining, resetMs, windowMs: windowOf(limit, remaining, resetMs) }];
}

/** A count of 0 or more; thousands separators are tolerated. Negative counts mean "not reported". */
function countOf(text: string | undefined): number | undefined {
  const value = text === undefined ? undefined : parseDecimal(text.replaceAll(',', '').replaceAll('_', ''));
  return value !== undefined && value <= Number.MAX_SAFE_INTEGER ? value : undefined;
}
