// Times as providers write them. Every parser takes untrusted text, is linear in it, and answers `undefined` for what it
// does not understand: never NaN, never a negative wait.

const UNIT_MS: ReadonlyMap<string | undefined, number> = new Map([
  ['ns', 1e-6],
  ['us', 1e-3],
  ['µs', 1e-3],
  ['μs', 1e-3],
  ['ms', 1],
  ['s', 1_000],
  ['m', 60_000],
  ['h', 3_600_000],
  ['d', 86_400_000],
]);

/** Spelled-out units, by what they begin with. */
const WORDS: readonly (readonly [RegExp, string])[] = [
  [/^(?:nanoseconds?|nanos?|nsecs?|ns)$/i, 'ns'],
  [/^(?:microseconds?|micros?|usecs?|us|µs|μs)$/i, 'us'],
  [/^(?:milliseconds?|millis?|msecs?|ms)$/i, 'ms'],
  [/^(?:seconds?|secs?|s)$/i, 's'],
  [/^(?:minutes?|mins?|m)$/i, 'm'],
  [/^(?:hours?|hrs?|h)$/i, 'h'],
  [/^(?:days?|d)$/i, 'd'],
];

const LONGEST_TEXT = 64;

/** A plain decimal such as `30` or `0.5`: no sign, no exponent, nothing around it but blanks. */
export function parseDecimal(text: string): number | undefined {
  const trimmed = text.length <= LONGEST_TEXT ? text.trim() : '';
  if (!/^(?:\d+\.?\d*|\.\d+)$/.test(trimmed)) return undefined;
  const value = Number(trimmed);
  return Number.isFinite(value) ? value : undefined;
}

/** Whole or decimal seconds, in milliseconds. */
export function parseSeconds(text: string): number | undefined {
  const seconds = parseDecimal(text);
  return seconds === undefined ? undefined : seconds * 1_000;
}

/**
 * A duration of numbers with units, in milliseconds: Go's `6m0s`, `20ms`, `2m59.56s`, protobuf's `45.837906927s`.
 * Units: ns, us, ms, s, m, h, d.
 */
export function parseUnits(text: string): number | undefined {
  const trimmed = text.length <= LONGEST_TEXT ? text.trim() : '';
  // What nearly every answer has, without going through the parts, which give the same.
  // Stryker disable next-line Regex: what it does not take goes through the parts
  const single = /^(\d+(?:\.\d+)?)(ms|s)$/.exec(trimmed);
  // Stryker disable next-line ConditionalExpression: as above
  if (single !== null) return Number(single[1]) * (single[2] === 's' ? 1_000 : 1);
  if (!/^(?:\d+(?:\.\d+)?(?:ns|us|µs|μs|ms|s|m|h|d) ?)+$/.test(trimmed)) return undefined;
  return sum(trimmed);
}

/** A protobuf Duration in its JSON object form: `{ seconds, nanos }`. */
export function parseDurationObject(value: unknown): number | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const { seconds, nanos } = value as { seconds?: unknown; nanos?: unknown };
  if (seconds === undefined && nanos === undefined) return undefined;
  const ms = Number(seconds ?? 0) * 1_000 + Number(nanos ?? 0) / 1_000_000;
  return Number.isFinite(ms) && ms >= 0 ? ms : undefined;
}

const AMOUNT = '\\d+(?:\\.\\d+)?';
const UNIT =
  '(?:nanoseconds?|nanos?|nsecs?|ns|microseconds?|micros?|usecs?|us|µs|μs|milliseconds?|millis?|msecs?|ms|' +
  'seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d)';
const MEASURE = `${AMOUNT} ?${UNIT}(?![A-Za-zµμ])`;
const GO_PART = `${AMOUNT}(?:ms|us|µs|μs|ns|s|m|h|d)`;
const LEAD =
  '\\b(?:(?:try(?:ing)?(?: your request| the request| this request)? again|retry(?:ing)?(?: your request| the request| this request)?|' +
  'come back|available(?: again)?|resets?|resumes?)(?: only)?[:,]? (?:in|after)|' +
  'wait(?:ing)?(?: for)?|retry[ -]after:?|retry in:?)';
const PROSE = new RegExp(
  `${LEAD}(?: at least| about| approximately| around| another)? ?~?` +
    `(?:((?:${GO_PART})+(?![A-Za-zµμ])|${MEASURE}(?:(?:,| and|, and)? ?${MEASURE})*)|(${AMOUNT})(?=\\s*(?:$|[.,;)]\\s|[.,;)]$)))`,
  'i',
);

/**
 * The wait in a sentence such as `Please try again in 9.816s.` or `retry after 33 seconds`, in milliseconds. A number
 * without a unit is seconds, but only where nothing follows it that could be its unit.
 */
export function parseWaitText(text: string): number | undefined {
  const match = PROSE.exec(text.slice(0, 2_000).replace(/\s+/g, ' '));
  if (match === null) return undefined;
  const [, measured, bare] = match;
  if (measured !== undefined) return sum(measured);
  return bare === undefined ? undefined : parseSeconds(bare);
}

/** Adds up every number with its unit. */
function sum(text: string): number | undefined {
  let totalMs = 0;
  for (const [, amount, word] of text.matchAll(/(\d+(?:\.\d+)?) ?([A-Za-zµμ]+)/g)) {
    const unitMs = UNIT_MS.get(word as string) ?? UNIT_MS.get(spelledOut(word as string));
    if (unitMs !== undefined) totalMs += Number(amount) * unitMs;
  }
  return Number.isFinite(totalMs) ? totalMs : undefined;
}

function spelledOut(word: string): string | undefined {
  return WORDS.find(([pattern]) => pattern.test(word))?.[1];
}
