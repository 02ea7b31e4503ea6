/** How long a turn is taken to last before any has ended. */
const FIRST_GUESS_MS = 1000;
/** Weight of the latest turn in the mean. */
const WEIGHT = 0.125;

/** Guesses from the turns that have ended how long one goes on: an exponentially weighted mean. */
export class TurnEstimate {
  #meanMs: number | undefined;

  ended(lastedMs: number): void {
    this.#meanMs = this.#meanMs === undefined ? lastedMs : this.#meanMs + WEIGHT * (lastedMs - this.#meanMs);
  }

  /**
   * Milliseconds, whole and above 0, until a turn that has run for `ranMs` and `turnsAfterIt` more have ended. One that
   * has outlived the mean is taken to last as long again as it has.
   */
  untilEnded(ranMs: number, turnsAfterIt: number): number {
    const meanMs = this.#meanMs ?? FIRST_GUESS_MS;
    const leftMs = ranMs < meanMs ? meanMs - ranMs : ranMs;
    return Math.max(1, Math.ceil(leftMs + turnsAfterIt * meanMs));
  }
}
