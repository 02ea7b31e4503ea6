import type { Bucketed, TimeBuckets } from './TimeBuckets.ts';

/** One number for each bucket. */
export class Counts implements Bucketed {
  readonly #buckets: TimeBuckets;
  readonly #values: Float64Array;

  constructor(buckets: TimeBuckets) {
    this.#buckets = buckets;
    this.#values = new Float64Array(buckets.capacity);
    buckets.keep(this);
  }

  add(atMs: number, by = 1): void {
    const index = this.#buckets.indexOf(atMs);
    this.#values[index] = (this.#values[index] as number) + by;
  }

  fold(): void {
    const values = this.#values;
    const half = values.length / 2;
    for (let i = 0; i < half; i++) values[i] = (values[2 * i] as number) + (values[2 * i + 1] as number);
    values.fill(0, half);
  }

  /** Those of the first `count` buckets. */
  values(count: number): number[] {
    return [...this.#values.subarray(0, count)];
  }
}
