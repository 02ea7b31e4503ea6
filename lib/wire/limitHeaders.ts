import type { LimitReading } from '../core/hints.ts';
import { parseDecimal } from './durations.ts';
import { headerOf, textOf } from './headers.ts';
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

type Field = 'limit' | 'remaining' | 'reset';

/** What the headers say of one family. */
interface Told {
  readonly order: number;
  limit: string | undefined;
  remaining: string | undefined;
  reset: string | undefined;
}

const FIELDS: readonly Field[] = ['limit', 'remaining', 'reset'];
const STRUCTURED = 'ratelimit';
const PLACES: ReadonlyMap<string, { readonly order: number; readonly field: Field }> = new Map([
  ...FAMILIES.flatMap((names, order) => FIELDS.map((field) => [names[field], { order, field }] as const)),
  [STRUCTURED, { order: FAMILIES.length, field: 'limit' }],
]);

/** Every limit that the headers report. `resetOf` turns a reset value into milliseconds from the answer's arrival. */
export function readLimits(
  headers: HeaderReader,
  resetOf: (value: string) => number | undefined,
): readonly NamedReading[] {
  const readings: NamedReading[] = [];
  const told = toldBy(headers);
  // Stryker disable next-line ConditionalExpression: without it, headers are looked for that then mean nothing
  if (told.length === 0) return readings;
  // Groq uses OpenAI's names, but its request limits are per day.
  const groq = headerOf(headers, 'x-groq-region') !== undefined || headerOf(headers, 'x-groq-id') !== undefined;
  for (const { order, limit, remaining, reset } of told) {
    if (order === FAMILIES.length) {
      readings.push(...readStructured(limit as string));
      continue;
    }
    const { kind, windowMs } = FAMILIES[order] as Family;
    const size = countOf(limit);
    // Azure's Responses API reports a limit of -1 or 0 where it means that it reports none.
    if (limit !== undefined && !((size ?? 0) > 0)) continue;
    const left = countOf(remaining);
    const resetMs = reset === undefined ? undefined : resetOf(reset);
    if (size === undefined && left === undefined && resetMs === undefined) continue;
    const guessed = groq ? DAY_MS : windowOf(size, left, resetMs);
    readings.push({ kind, limit: size, remaining: left, resetMs, windowMs: windowMs ?? guessed });
  }
  return readings;
}

/**
 * What is told of each family, in their order; last, as a limit, what `RateLimit` says. Going through all headers once
 * takes less than asking a `Headers` object for dozens of names, nearly all of which are never there.
 */
function toldBy(headers: HeaderReader): readonly Told[] {
  // Stryker disable next-line ConditionalExpression,EqualityOperator,StringLiteral: both ways give the same, one of them sooner
  if (typeof headers.forEach !== 'function') return askedOf(headers);
  const told: Told[] = [];
  try {
    headers.forEach((value, name) => {
      const place = PLACES.get(name) ?? PLACES.get(name.toLowerCase());
      const text = textOf(value);
      if (place !== undefined && text !== undefined) toldIn(told, place.order)[place.field] = text;
    });
  } catch {
    return askedOf(headers);
  }
  return told;
}

/** That of one family in a list in their order, made if it was not there. */
function toldIn(told: Told[], order: number): Told {
  let at = told.length;
  while (at > 0 && (told[at - 1] as Told).order >= order) at--;
  const there = told[at];
  if (there?.order === order) return there;
  const made: Told = { order, limit: undefined, remaining: undefined, reset: undefined };
  told.splice(at, 0, made);
  return made;
}

/** The same of headers that do not list themselves. */
function askedOf(headers: HeaderReader): readonly Told[] {
  const told: Told[] = [];
  FAMILIES.forEach((names, order) => {
    const limit = headerOf(headers, names.limit);
    const remaining = headerOf(headers, names.remaining);
    const reset = headerOf(headers, names.reset);
    // Stryker disable next-line ConditionalExpression: a family of which nothing is told gives no reading
    if ((limit ?? remaining ?? reset) !== undefined) told.push({ order, limit, remaining, reset });
  });
  const limit = headerOf(headers, STRUCTURED);
  if (limit !== undefined) told.push({ order: FAMILIES.length, limit, remaining: undefined, reset: undefined });
  return told;
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
    if (best === undefined) {
      best = reading;
      continue;
    }
    const closer = share(reading) - share(best);
    if (closer < 0 || (closer === 0 && (reading.resetMs ?? 0) > (best.resetMs ?? 0))) best = reading;
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
function readStructured(header: string): readonly NamedReading[] {
  const text = header.slice(0, 500);
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
  if (text === undefined) return undefined;
  const value = parseDecimal(text) ?? parseDecimal(text.replaceAll(',', '').replaceAll('_', ''));
  return (value ?? Infinity) <= Number.MAX_SAFE_INTEGER ? value : undefined;
}
