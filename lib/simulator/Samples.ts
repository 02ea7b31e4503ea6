/** Of a set of durations, in milliseconds; NaN where there are none. */
export interface Percentiles {
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
  readonly max: number;
}

/** Numbers, of which there may be millions. */
export class Samples {
  #values = new Float64Array(1024);
  #size = 0;
  #sorted = true;

  get size(): number {
    return this.#size;
  }

  add(value: number): void {
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
    if (this.#size === 0) return Number.NaN;
    if (!this.#sorted) this.#values.subarray(0, this.#size).sort();
    this.#sorted = true;
    return this.#values[Math.max(0, Math.ceil((percent / 100) * this.#size) - 1)] as number;
  }

  percentiles(): Percentiles {
    return {
      p50: this.percentile(50),
      p95: this.percentile(95),
      p99: this.percentile(99),
      max: this.percentile(100),
    };
  }
}
