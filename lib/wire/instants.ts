// Absolute instants as providers write them, in milliseconds since the Unix epoch. `Date` is not used: this part reads
// no clock, and `Date.parse` takes far more than the formats meant here.

const MONTHS = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'];

/** RFC 3339: `2026-01-01T00:00:09Z`, with any fraction and offset. */
export function parseRfc3339(text: string): number | undefined {
  const match = /^(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(\.\d{1,12})?(?:[Zz]|([+-])(\d\d):?(\d\d))$/.exec(
    text.trim(),
  );
  if (match === null) return undefined;
  const [, year, month, day, hour, minute, second, fraction, sign, offsetHours, offsetMinutes] = match;
  const instantMs = fromParts(Number(year), Number(month), Number(day), Number(hour), Number(minute), Number(second));
  if (instantMs === undefined) return undefined;
  const offsetMs = (Number(offsetHours ?? 0) * 60 + Number(offsetMinutes ?? 0)) * 60_000;
  return instantMs + Number(`0${fraction ?? ''}`) * 1_000 - (sign === '-' ? -offsetMs : offsetMs);
}

/** The three forms of an HTTP date (RFC 9110, section 5.6.7). */
export function parseHttpDate(text: string): number | undefined {
  const trimmed = text.trim();
  const imf = /^(?:[A-Za-z]{3,9}, )?(\d{1,2})[ -]([A-Za-z]{3})[ -](\d{4}|\d\d) (\d\d):(\d\d):(\d\d) (?:GMT|UTC)$/.exec(
    trimmed,
  );
  if (imf !== null) {
    const [, day, month, year, hour, minute, second] = imf;
    // Two digits are the obsolete form; those of today's senders mean this century.
    const fullYear = (year as string).length === 2 ? 2_000 + Number(year) : Number(year);
    return fromParts(fullYear, monthOf(month), Number(day), Number(hour), Number(minute), Number(second));
  }
  const asctime = /^[A-Za-z]{3} ([A-Za-z]{3}) +(\d{1,2}) (\d\d):(\d\d):(\d\d) (\d{4})$/.exec(trimmed);
  if (asctime === null) return undefined;
  const [, month, day, hour, minute, second, year] = asctime;
  return fromParts(Number(year), monthOf(month), Number(day), Number(hour), Number(minute), Number(second));
}

/** Seconds and milliseconds of today lie a factor of 1,000 apart, and far above any delay that is meant. */
const LEAST_EPOCH_SECONDS = 1e9;
const LEAST_EPOCH_MS = 1e11;
const MOST_EPOCH_MS = 1e14;

/** A number that is too large for a delay in seconds and right for an instant, in seconds or milliseconds. */
export function parseEpoch(value: number): number | undefined {
  if (value >= LEAST_EPOCH_MS && value < MOST_EPOCH_MS) return value;
  return value >= LEAST_EPOCH_SECONDS && value < LEAST_EPOCH_MS ? value * 1_000 : undefined;
}

function monthOf(name: string | undefined): number {
  return MONTHS.indexOf((name ?? '').toLowerCase()) + 1;
}

function fromParts(
  year: number,
  month: number,
  day: number,
  hour: number,
  minute: number,
  second: number,
): number | undefined {
  if (month < 1 || month > 12 || day < 1 || day > daysIn(year, month)) return undefined;
  if (hour > 24 || minute > 59 || second > 60) return undefined;
  return ((daysFromCivil(year, month, day) * 24 + hour) * 60 + minute) * 60_000 + second * 1_000;
}

function daysIn(year: number, month: number): number {
  if (month !== 2) return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31;
  return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28;
}

/** Source: Howard Hinnant, https://howardhinnant.github.io/date_algorithms.html#days_from_civil */
function daysFromCivil(year: number, month: number, day: number): number {
  const shifted = month <= 2 ? year - 1 : year;
  const era = Math.floor(shifted / 400);
  const yearOfEra = shifted - era * 400;
  const dayOfYear = Math.floor((153 * (month + (month > 2 ? -3 : 9)) + 2) / 5) + day - 1;
  const dayOfEra = yearOfEra * 365 + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100) + dayOfYear;
  return era * 146_097 + dayOfEra - 719_468;
}
