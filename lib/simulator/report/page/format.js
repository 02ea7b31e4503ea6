// In the terminal, in the report, and in the plots of the report.

const NOTHING = '-';

export function count(value) {
  return Number.isFinite(value) ? Math.round(value).toLocaleString('en-US') : NOTHING;
}

/** Of a rate, which may be small. */
export function rate(value) {
  if (!Number.isFinite(value)) return NOTHING;
  return value.toLocaleString('en-US', { maximumSignificantDigits: 3 });
}

export function percent(share) {
  if (!Number.isFinite(share)) return NOTHING;
  const digits = share > 0 && share < 0.01 ? 3 : 2;
  return `${(100 * share).toFixed(digits)} %`;
}

export function money(value) {
  return value.toLocaleString('en-US', { maximumFractionDigits: 2, minimumFractionDigits: 2 });
}

export function duration(ms) {
  if (!Number.isFinite(ms)) return NOTHING;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  return ms < 120_000 ? `${(ms / 1000).toFixed(1)} s` : `${(ms / 60_000).toFixed(1)} min`;
}

/** Virtual time since the beginning, to the second: 0:05, 12:30, 1:02:03. */
export function clock(ms) {
  const seconds = Math.round(ms / 1000);
  const [hours, minutes, rest] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
  const two = (value) => String(value).padStart(2, '0');
  return hours > 0 ? `${hours}:${two(minutes)}:${two(rest)}` : `${minutes}:${two(rest)}`;
}
