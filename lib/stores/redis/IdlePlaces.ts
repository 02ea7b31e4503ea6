/** Knows which of some places were not used for a while. */
export class IdlePlaces {
  readonly #overMs: number;
  #sinceMs = Infinity;
  #least = 0;

  constructor(overMs: number) {
    this.#overMs = overMs;
  }

  /** When some may be given back; `Infinity` if none are idle. */
  get dueAtMs(): number {
    return this.#sinceMs + this.#overMs;
  }

  /** So many are idle now. */
  mark(nowMs: number, idle: number): void {
    if (idle <= 0) {
      this.#sinceMs = Infinity;
      return;
    }
    this.#least = this.#sinceMs === Infinity ? idle : Math.min(this.#least, idle);
    this.#sinceMs = Math.min(this.#sinceMs, nowMs);
  }

  /** How many were idle all the time. The rest begins anew. */
  due(nowMs: number): number {
    if (nowMs < this.dueAtMs) return 0;
    this.#sinceMs = Infinity;
    return this.#least;
  }
}
