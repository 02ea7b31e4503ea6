/** What is kept for each bucket. `fold`: two buckets beside each other become one. */
export interface Bucketed {
  fold(): void;
}

/**
 * Cuts time into at most `capacity` buckets of one width, however long it gets: once they are used up, the width doubles and
 * everything that is kept is folded.
 */
export class TimeBuckets {
  readonly capacity: number;
  readonly #kept: Bucketed[] = [];
  #widthMs: number;

  /** `capacity`: even. */
  constructor(widthMs: number, capacity: number) {
    this.#widthMs = widthMs;
    this.capacity = capacity;
  }

  get widthMs(): number {
    return this.#widthMs;
  }

  keep(bucketed: Bucketed): void {
    this.#kept.push(bucketed);
  }

  indexOf(atMs: number): number {
    while (atMs >= this.#widthMs * this.capacity) {
      this.#widthMs *= 2;
      for (const bucketed of this.#kept) bucketed.fold();
    }
    return Math.floor(atMs / this.#widthMs);
  }
}
