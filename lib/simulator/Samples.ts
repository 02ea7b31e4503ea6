import { Histogram } from './Histogram.ts';

/** Of a set of durations, in milliseconds; NaN where there are none. */
export interface Percentiles {
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
  readonly max: number;
}

/** As many as are kept one by one. */
const MOST_KEPT = 65_536;

/** Durations, of which there may be millions: the first 65,536 exactly, more to within a thousandth. */
export class Samples {
  #values = new Float64Array(16);
  #size = 0;
  #sorted = true;
  #histogram: Histogram | undefined;

  get size(): number {
    return this.#histogram?.size ?? this.#size;
  }

  add(value: number): void {
    if (this.#size === MOST_KEPT) this.#count();
    if (this.#histogram !== undefined) {
      this.#histogram.add(value);
      return;
    }
    if (this.#size === this.#values.length) {
      const longer = new Float64Array(this.#values.length * 2);
      longer.set(this.#values);
      this.#values = longer;
    }
    this.#values[this.#size++] = value;
    this.#sorted = false;
  }

  /** Nearest rank; NaN where there is none. */
  percentile(percent: number): number {
    const { size } = this;
    if (size === 0) return Number.NaN;
    const rank = Math.max(1, Math.ceil((percent / 100) * size));
    if (this.#histogram !== undefined) return this.#histogram.at(rank);
    if (!this.#sorted) this.#values.subarray(0, size).sort();
    this.#sorted = true;
    return this.#values[rank - 1] as number;
  }

  percentiles(): Percentiles {
    return {
      p50: this.percentile(50),
      p95: this.percentile(95),
      p99: this.percentile(99),
      max: this.percentile(100),
    };
  }

  /** From now on they are counted only. */
  #count(): void {
    const histogram = new Histogram();
    for (const value of this.#values) histogram.add(value);
    this.#histogram = histogram;
    this.#values = new Float64Array(0);
    this.#size = 0;
  }
}
