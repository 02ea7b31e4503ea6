const NOTHING = '–';

export function known(value) {
  return value !== undefined && value !== null;
}

export function duration(ms) {
  if (!known(ms)) return NOTHING;
  if (ms < 999.5) return `${ms < 9.95 ? ms.toFixed(1) : ms.toFixed(0)} ms`;
  if (ms < 99_950) return `${(ms / 1000).toFixed(ms < 9_995 ? 2 : 1)} s`;
  return `${Math.floor(ms / 60_000)} min ${String(Math.floor((ms % 60_000) / 1000)).padStart(2, '0')} s`;
}

export function count(value) {
  if (!known(value)) return NOTHING;
  const [size, unit] = Math.abs(value) >= 999_500 ? [1e6, 'M'] : Math.abs(value) >= 9_995 ? [1e3, 'k'] : [1, ''];
  const scaled = value / size;
  if (unit === '') return Number.isInteger(scaled) ? String(scaled) : scaled.toFixed(Math.abs(scaled) < 10 ? 1 : 0);
  return `${scaled.toFixed(scaled < 100 ? 1 : 0)}${unit}`;
}

export function share(value) {
  if (!known(value)) return NOTHING;
  const percent = value * 100;
  return `${percent === 0 || percent >= 9.95 ? percent.toFixed(0) : percent.toFixed(1)} %`;
}

export function plural(value, one, many) {
  return `${count(value)} ${value === 1 ? one : many}`;
}

export function ratio(value) {
  return known(value) ? `${value.toFixed(2)}×` : NOTHING;
}

export function money(value) {
  if (!known(value)) return NOTHING;
  if (value === 0) return '0';
  if (value < 0.000_001) return '< 0.000001';
  return value < 0.1 ? String(Number(value.toPrecision(2))) : value < 1000 ? value.toFixed(2) : count(value);
}

const CLOCK = new Intl.DateTimeFormat(undefined, {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  hourCycle: 'h23',
});

export function time(wallMs) {
  return CLOCK.format(wallMs);
}

/** `half_open`: half open. */
export function words(code) {
  return code.replaceAll('_', ' ');
}
