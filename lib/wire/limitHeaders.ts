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
  for (let order = 0; order < FAMILIES.length; order++) {
    const its = told[order];
    if (its === undefined) continue;
    const { limit, remaining, reset } = its;
    const size = countOf(limit);
    // Azure's Responses API reports a limit of -1 or 0 where it means that it reports none.
    if (limit !== undefined && !((size ?? 0) > 0)) continue;
    const left = countOf(remaining);
    const resetMs = reset === undefined ? undefined : resetOf(reset);
    if (size === undefined && left === undefined && resetMs === undefined) continue;
    const { kind, windowMs = isGroq(headers) ? DAY_MS : windowOf(size, left, resetMs) } = FAMILIES[order] as Family;
    readings.push({ kind, limit: size, remaining: left, resetMs, windowMs });
  }
  const structured = told[FAMILIES.length]?.limit;
  if (structured !== undefined) readings.push(...readStructured(structured));
  return readings;
}

/** Groq uses OpenAI's names, but its request limits are per day. */
function isGroq(headers: HeaderReader): boolean {
  return headerOf(headers, 'x-groq-region') !== undefined || headerOf(headers, 'x-groq-id') !== undefined;
}

/**
 * What is told of each family, at its place in their order; last, as a limit, what `RateLimit` says. Going through all headers once
 * takes less than asking a `Headers` object for dozens of names, nearly all of which are never there.
 */
function toldBy(headers: HeaderReader): readonly (Told | undefined)[] {
  // Stryker disable next-line ConditionalExpression,EqualityOperator,StringLiteral: both ways give the same, one of them sooner
  if (typeof headers.forEach !== 'function') return askedOf(headers);
  const told: (Told | undefined)[] = [];
  try {
    headers.forEach((value, name) => {
      const place = PLACES.get(name) ?? PLACES.get(name.toLowerCase());
      const text = textOf(value);
      if (place === undefined || text === undefined) return;
      const its = (told[place.order] ??= { limit: undefined, remaining: undefined, reset: undefined });
      its[place.field] = text;
    });
  } catch {
    return askedOf(headers);
  }
  return told;
}

/** The same of headers that do not list themselves. */
function askedOf(headers: HeaderReader): readonly Told[] {
  const told: Told[] = FAMILIES.map((names) => ({
    limit: headerOf(headers, names.limit),
    remaining: headerOf(headers, names.remaining),
    reset: headerOf(headers, names.reset),
  }));
  return [...told, { limit: headerOf(headers, STRUCTURED), remaining: undefined, reset: undefined }];
}

/** The reading that will bind first: the smallest share left, and among equals the later reset. */
export function tightest(readings: readonly NamedReading[], kind: NamedReading['kind']): LimitReading | undefined {
  let best: NamedReading | undefined;
  for (const reading of readings) {
    if (reading.kind === kind && (best === undefined || bindsBefore(reading, best))) best = reading;
  }
  if (best === undefined) return undefined;
  const { limit, remaining, resetMs, windowMs } = best;
  return { limit, remaining, resetMs, windowMs };
}

function bindsBefore(one: LimitReading, other: LimitReading): boolean {
  const closer = shareLeft(one) - shareLeft(other);
  return closer < 0 || (closer === 0 && (one.resetMs ?? 0) > (other.resetMs ?? 0));
}

function shareLeft({ limit, remaining }: LimitReading): number {
  if (remaining === undefined) return 2;
  return remaining === 0 ? 0 : remaining / (limit ?? Infinity) || 1;
}

/**
 * The window that a request limit counts in, where the names do not say it. A limit that refills continuously is full
 * again after its share of the window: `window = reset * limit / (limit - remaining)`. A reset of up to a minute and a
 * half says nothing: it fits a limit per minute as well.
 */
function windowOf(limit: number | undefined, remaining: number | undefined, resetMs: number | undefined): number {
  return resetMs === undefined || resetMs <= 1.5 * MINUTE_MS ? MINUTE_MS : refillWindow(limit, remaining, resetMs);
}

function refillWindow(limit: number | undefined, remaining: number | undefined, resetMs: number): number {
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
