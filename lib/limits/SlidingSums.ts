const BUCKETS = 10;

/**
 * Sums of two quantities over the last `windowMs`, kept in ten steps. Real expiry: nothing older than the window counts,
 * also after a gap in which nothing was added. Memory is fixed.
 */
export class SlidingSums {
  readonly #bucketMs: number;
  // Stryker disable ArrayDeclaration: they would only grow later
  readonly #first: number[] = Array<number>(BUCKETS).fill(0);
  readonly #second: number[] = Array<number>(BUCKETS).fill(0);
  // Stryker restore ArrayDeclaration
  /** Number of the newest step, counted from the clock's zero. */
  #newest = -Infinity;
  /** Where that is kept. */
  #at = 0;

  constructor(windowMs: number) {
    this.#bucketMs = windowMs / BUCKETS;
  }

  add(nowMs: number, first: number, second: number): void {
    this.#expire(nowMs);
    const at = this.#at;
    this.#first[at] = (this.#first[at] as number) + first;
    this.#second[at] = (this.#second[at] as number) + second;
  }

  first(nowMs: number): number {
    this.#expire(nowMs);
    return this.#first.reduce((sum, value) => sum + value, 0);
  }

  second(nowMs: number): number {
    this.#expire(nowMs);
    return this.#second.reduce((sum, value) => sum + value, 0);
  }

  /** How far back the sums reach: from nine tenths of the window to all of it. */
  reachMs(nowMs: number): number {
    return nowMs - (Math.floor(nowMs / this.#bucketMs) - (BUCKETS - 1)) * this.#bucketMs;
  }

  clear(): void {
    this.#first.fill(0);
    this.#second.fill(0);
  }

  #expire(nowMs: number): void {
    const newest = Math.floor(nowMs / this.#bucketMs);
    // Stryker disable next-line EqualityOperator: there is no step in between
    if (newest <= this.#newest) return;
    // Stryker disable next-line EqualityOperator: ten steps are all there are
    if (newest - this.#newest >= BUCKETS) {
      this.clear();
    } else {
      for (let step = this.#newest + 1; step <= newest; step++) {
        this.#first[indexOf(step)] = 0;
        this.#second[indexOf(step)] = 0;
      }
    }
    this.#newest = newest;
    this.#at = indexOf(newest);
  }
}

/** A clock may start below zero. */
function indexOf(step: number): number {
  return ((step % BUCKETS) + BUCKETS) % BUCKETS;
}
