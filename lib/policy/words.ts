/** `1,500`; at most two digits behind the point. */
export function count(value: number): string {
  return value.toLocaleString('en-US', { maximumFractionDigits: 2 });
}

/** `1 request`, `2 requests`. */
export function counted(value: number, one: string, many: string = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`;
}

export function percent(ratio: number): string {
  return `${count(ratio * 100)} %`;
}

const UNITS = [
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1000],
] as const;

/** `250 ms`, `7.5 s`, `2 min`: in the largest unit that says it without loss, else in seconds. */
export function duration(ms: number): string {
  if (ms < 1000) return `${count(Math.ceil(ms))} ms`;
  const [unit, size] = UNITS.find(([, length]) => ms >= 2 * length && ms % length === 0) ?? UNITS[2];
  return `${(ms / size).toLocaleString('en-US', { maximumFractionDigits: 1 })} ${unit}`;
}

/** `a`, `a and b`, `a, b and c`. */
export function listed(items: readonly string[]): string {
  const [last = ''] = items.slice(-1);
  return items.length < 2 ? last : `${items.slice(0, -1).join(', ')} and ${last}`;
}
