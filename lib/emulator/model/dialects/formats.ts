/** A duration as Go prints it: `6m0s`, `1.5s`, `20ms`. */
export function goDuration(ms: number): string {
  if (!Number.isFinite(ms)) return '24h0m0s';
  const whole = Math.ceil(ms);
  if (whole < 1000) return `${whole}ms`;
  const hours = Math.floor(whole / 3_600_000);
  const minutes = Math.floor(whole / 60_000) % 60;
  const seconds = `${(whole % 60_000) / 1000}s`;
  if (hours > 0) return `${hours}h${minutes}m${seconds}`;
  return minutes > 0 ? `${minutes}m${seconds}` : seconds;
}

/** An instant as RFC 3339 has it, in UTC and whole seconds, rounded up. */
export function rfc3339(wallMs: number): string {
  const seconds = Math.ceil(wallMs / 1000);
  const days = Math.floor(seconds / 86_400);
  // Civil date from a day number: Hinnant, "chrono-Compatible Low-Level Date Algorithms".
  const shifted = days + 719_468;
  const era = Math.floor(shifted / 146_097);
  const dayOfEra = shifted - era * 146_097;
  const yearOfEra = Math.floor(
    (dayOfEra - Math.floor(dayOfEra / 1_460) + Math.floor(dayOfEra / 36_524) - Math.floor(dayOfEra / 146_096)) / 365,
  );
  const dayOfYear = dayOfEra - (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100));
  const shiftedMonth = Math.floor((5 * dayOfYear + 2) / 153);
  const day = dayOfYear - Math.floor((153 * shiftedMonth + 2) / 5) + 1;
  const month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9;
  const year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0);
  const ofDay = seconds - days * 86_400;
  const time = [Math.floor(ofDay / 3600), Math.floor(ofDay / 60) % 60, ofDay % 60].map(twoDigits).join(':');
  return `${year}-${twoDigits(month)}-${twoDigits(day)}T${time}Z`;
}

/** Whole seconds, rounded up: a client that waits them is not early. */
export function wholeSeconds(ms: number): string {
  return String(Math.ceil(ms / 1000));
}

function twoDigits(value: number): string {
  return String(value).padStart(2, '0');
}
