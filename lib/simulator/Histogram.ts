/** Ranges within a doubling. */
const PARTS = 1024;
const PART_BITS = 10;
/** Exponents of two that have ranges: from a microsecond to half a year, where the numbers are milliseconds. */
const [LOWEST, HIGHEST] = [-10, 34];
const RANGES = (HIGHEST - LOWEST) * PARTS;
/** How the exponents are written in a float of 64 bits. */
const EXPONENT_BIAS = 1023;

const bits = new DataView(new ArrayBuffer(8));

/**
 * Counts numbers of 0 or more in ranges none of which is wider than a 1,024th of what is in it: half a megabyte, however
 * many there are. What it gives for a range is the mean of what fell into it.
 */
export class Histogram {
  readonly #counts = new Uint32Array(RANGES);
  readonly #sums = new Float64Array(RANGES);
  #size = 0;
  #max = -Infinity;

  get size(): number {
    return this.#size;
  }

  add(value: number): void {
    const at = rangeOf(value);
    this.#counts[at] = (this.#counts[at] as number) + 1;
    this.#sums[at] = (this.#sums[at] as number) + value;
    this.#size++;
    if (value > this.#max) this.#max = value;
  }

  /** The number at `rank` in ascending order, from 1 to `size`. */
  at(rank: number): number {
    if (rank >= this.#size) return this.#max;
    let passed = 0;
    let at = -1;
    while (passed < rank) passed += this.#counts[++at] as number;
    return (this.#sums[at] as number) / (this.#counts[at] as number);
  }
}

/** By the exponent and the first bits of the fraction, which follow each other in a float. */
function rangeOf(value: number): number {
  bits.setFloat64(0, value);
  const written = bits.getUint32(0) >>> (20 - PART_BITS);
  return Math.min(RANGES - 1, Math.max(0, written - (EXPONENT_BIAS + LOWEST) * PARTS));
}
