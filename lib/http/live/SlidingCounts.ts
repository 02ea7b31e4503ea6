const SLOTS = 30;

/**
 * Counts by name over the last `windowMs`, in thirty steps, with real expiry. Names should be from a small set: each
 * step keeps its own.
 */
export class SlidingCounts {
  readonly #slotMs: number;
  readonly #slots: { step: number; readonly counts: Map<string, number> }[] = [];

  constructor(windowMs: number) {
    this.#slotMs = windowMs / SLOTS;
  }

  add(nowMs: number, name: string): void {
    const step = Math.floor(nowMs / this.#slotMs);
    let newest = this.#slots.at(-1);
    if (newest === undefined || newest.step < step) {
      this.#slots.push((newest = { step, counts: new Map() }));
      if (this.#slots.length > SLOTS) this.#slots.shift();
    }
    newest.counts.set(name, (newest.counts.get(name) ?? 0) + 1);
  }

  /** The most frequent first. */
  top(nowMs: number, most: number): readonly (readonly [name: string, count: number])[] {
    const oldest = Math.floor(nowMs / this.#slotMs) - SLOTS;
    const sums = new Map<string, number>();
    for (const { step, counts } of this.#slots) {
      if (step <= oldest) continue;
      for (const [name, count] of counts) sums.set(name, (sums.get(name) ?? 0) + count);
    }
    return [...sums].sort(([, a], [, b]) => b - a).slice(0, most);
  }
}
