/** Below this ratio of its ends a range is divided evenly. */
const WIDE = 2;
const DIGITS = 3;

/**
 * The values of a range that are worth trying, ascending, both ends included: each about `precision` above the one before it,
 * or, in a range that begins at 0 or is narrow, `precision` of the range.
 */
export function scaleOf(from: number, to: number, precision: number, whole: boolean): readonly number[] {
  const geometric = from > 0 && to / from > WIDE;
  const steps = Math.max(1, Math.ceil(geometric ? Math.log(to / from) / Math.log1p(precision) : 1 / precision));
  const values = new Set<number>([from]);
  for (let i = 1; i < steps; i++) {
    const value = geometric ? from * (to / from) ** (i / steps) : from + ((to - from) * i) / steps;
    const rounded = roundOf(value, whole);
    if (rounded > from && rounded < to) values.add(rounded);
  }
  values.add(to);
  return [...values].sort((a, b) => a - b);
}

function roundOf(value: number, whole: boolean): number {
  const short = Number(value.toPrecision(DIGITS));
  return whole ? Math.round(short) : short;
}
