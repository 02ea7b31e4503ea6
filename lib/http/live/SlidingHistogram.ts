/** Buckets for each doubling: a quantile is right to within 5 %. */
const PER_DOUBLING = 8;
/** From 1 ms to 17 minutes. */
const BUCKETS = 20 * PER_DOUBLING + 1;

/**
 * How long things took lately, in milliseconds, to within 5 %. Real expiry in steps of `slotMs`; memory is fixed.
 */
export class SlidingHistogram {
  readonly #slotMs: number;
  readonly #slots: readonly Uint32Array[];
  /** Number of the newest slot, counted from the clock's zero. */
  #newest = -Infinity;

  constructor(slotMs: number, slots: number) {
    this.#slotMs = slotMs;
    this.#slots = Array.from({ length: slots }, () => new Uint32Array(BUCKETS));
  }

  add(nowMs: number, ms: number): void {
    const slot = this.#slotAt(this.#advance(nowMs));
    const bucket = bucketOf(ms);
    slot[bucket] = (slot[bucket] ?? 0) + 1;
  }

  /** Of the newest `slots`, the one that runs included; `undefined` for a share of nothing. */
  quantiles(nowMs: number, slots: number, shares: readonly number[]): readonly (number | undefined)[] {
    const newest = this.#advance(nowMs);
    const counts = new Float64Array(BUCKETS);
    for (let age = 0; age < Math.min(slots, this.#slots.length); age++) {
      const slot = this.#slotAt(newest - age);
      for (let i = 0; i < BUCKETS; i++) counts[i] = (counts[i] ?? 0) + (slot[i] ?? 0);
    }
    const total = counts.reduce((sum, count) => sum + count, 0);
    return shares.map((share) => {
      if (total === 0) return undefined;
      let left = Math.max(1, Math.ceil(share * total));
      const bucket = counts.findIndex((count) => (left -= count) <= 0);
      return 2 ** (Math.max(0, bucket - 0.5) / PER_DOUBLING);
    });
  }

  #advance(nowMs: number): number {
    const newest = Math.floor(nowMs / this.#slotMs);
    if (newest <= this.#newest) return this.#newest;
    const from = Math.max(this.#newest + 1, newest - this.#slots.length + 1);
    for (let step = from; step <= newest; step++) this.#slotAt(step).fill(0);
    return (this.#newest = newest);
  }

  /** A clock may start below zero. */
  #slotAt(step: number): Uint32Array {
    const { length } = this.#slots;
    return this.#slots[((step % length) + length) % length] as Uint32Array;
  }
}

function bucketOf(ms: number): number {
  return ms > 1 ? Math.min(BUCKETS - 1, Math.ceil(Math.log2(ms) * PER_DOUBLING)) : 0;
}
