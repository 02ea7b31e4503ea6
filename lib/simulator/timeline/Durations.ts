import type { Bucketed, TimeBuckets } from './TimeBuckets.ts';

/** From one class to the next: a percentile is off by 2 % at the most. */
const RATIO = 1.04;
const LOG_RATIO = Math.log(RATIO);
const LONGEST_MS = 30 * 86_400_000;
/** The first class is for what is below a millisecond. */
const CLASSES = 2 + Math.ceil(Math.log(LONGEST_MS) / LOG_RATIO);

/** A line for each percentile; null where there is nothing. */
export interface PercentileLines {
  readonly p50: readonly (number | null)[];
  readonly p95: readonly (number | null)[];
  readonly p99: readonly (number | null)[];
}

/** How many took at most so long: `counts[i]` took `ms[i]` or less. Ascending. */
export interface CumulativeCounts {
  readonly ms: readonly number[];
  readonly counts: readonly number[];
}

/** Durations of each bucket, as counts in classes: memory does not depend on how many there are. */
export class Durations implements Bucketed {
  readonly #buckets: TimeBuckets;
  readonly #counts: (Uint32Array | undefined)[];

  constructor(buckets: TimeBuckets) {
    this.#buckets = buckets;
    this.#counts = new Array<undefined>(buckets.capacity).fill(undefined);
    buckets.keep(this);
  }

  add(atMs: number, durationMs: number): void {
    const counts = (this.#counts[this.#buckets.indexOf(atMs)] ??= new Uint32Array(CLASSES));
    const index = classOf(durationMs);
    counts[index] = (counts[index] as number) + 1;
  }

  fold(): void {
    const half = this.#counts.length / 2;
    for (let i = 0; i < half; i++) {
      const [first, second] = [this.#counts[2 * i], this.#counts[2 * i + 1]];
      this.#counts[i] = first === undefined ? second : second === undefined ? first : added(first, second);
    }
    this.#counts.fill(undefined, half);
  }

  /** Of the first `count` buckets. */
  percentiles(count: number): PercentileLines {
    const counts = this.#counts.slice(0, count);
    const line = (percent: number): (number | null)[] =>
      counts.map((one) => (one === undefined ? null : percentileOf(one, percent)));
    return { p50: line(50), p95: line(95), p99: line(99) };
  }

  /** Of all of them together. */
  cumulative(): CumulativeCounts {
    const all = this.#counts.reduce<Uint32Array>(
      (sum, one) => (one === undefined ? sum : added(sum, one)),
      new Uint32Array(CLASSES),
    );
    const ms: number[] = [];
    const counts: number[] = [];
    let total = 0;
    for (const [index, one] of all.entries()) {
      if (one === 0) continue;
      total += one;
      ms.push(boundOf(index));
      counts.push(total);
    }
    return { ms, counts };
  }
}

function classOf(durationMs: number): number {
  if (!(durationMs >= 1)) return 0;
  return Math.min(CLASSES - 1, 1 + Math.floor(Math.log(durationMs) / LOG_RATIO));
}

/** Where a class ends. */
function boundOf(index: number): number {
  return RATIO ** index;
}

function percentileOf(counts: Uint32Array, percent: number): number {
  const rank = Math.ceil((percent / 100) * counts.reduce((sum, one) => sum + one, 0));
  let below = 0;
  const index = counts.findIndex((one) => (below += one) >= rank);
  return index === 0 ? 0 : RATIO ** (index - 0.5);
}

function added(one: Uint32Array, other: Uint32Array): Uint32Array {
  return one.map((count, i) => count + (other[i] as number));
}
