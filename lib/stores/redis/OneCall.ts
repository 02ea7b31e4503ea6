/** One call under way at a time, begun at the end of the turn in which it was asked for: what comes meanwhile goes with it. */
export class OneCall {
  readonly #call: (current: () => boolean) => Promise<void>;
  readonly #rested: () => void;
  #busy = false;
  #again = false;
  #epoch = 0;

  /**
   * `call` makes it; once `current` is false its answer is of no use any more. `rested` hears that none is under way or
   * needed.
   */
  constructor(call: (current: () => boolean) => Promise<void>, rested: () => void) {
    this.#call = call;
    this.#rested = rested;
  }

  get busy(): boolean {
    return this.#busy;
  }

  /** Another call is needed, after the one under way. */
  ask(): void {
    this.#again = true;
    if (this.#busy) return;
    this.#busy = true;
    const epoch = this.#epoch;
    queueMicrotask(() => void this.#run(() => epoch === this.#epoch));
  }

  /** Forgets what was asked and not answered. */
  reset(): void {
    this.#epoch++;
    this.#busy = this.#again = false;
  }

  async #run(current: () => boolean): Promise<void> {
    while (current() && this.#again) {
      this.#again = false;
      await this.#call(current);
    }
    if (!current()) return;
    this.#busy = false;
    this.#rested();
  }
}
