/** What was heard of things by name, each until some time. */
export class HeardOf<T> {
  readonly #known = new Map<string, { readonly of: T; readonly untilMs: number }>();
  #sweepAt = 1024;

  /** Of what is over nothing is kept. */
  set(name: string, of: T, untilMs: number, nowMs: number): void {
    if (untilMs > nowMs) this.#known.set(name, { of, untilMs });
    else this.#known.delete(name);
    if (this.#known.size >= this.#sweepAt) this.#sweep(nowMs);
  }

  /** How much longer. */
  leftMs(name: string, nowMs: number): number {
    return Math.max(0, (this.#known.get(name)?.untilMs ?? nowMs) - nowMs);
  }

  /** All that is not over. */
  all(nowMs: number): { readonly of: T; readonly leftMs: number }[] {
    this.#sweep(nowMs);
    return [...this.#known.values()].map(({ of, untilMs }) => ({ of, leftMs: untilMs - nowMs }));
  }

  clear(): void {
    this.#known.clear();
  }

  #sweep(nowMs: number): void {
    for (const [name, { untilMs }] of this.#known) if (untilMs <= nowMs) this.#known.delete(name);
    this.#sweepAt = Math.max(1024, 2 * this.#known.size);
  }
}
