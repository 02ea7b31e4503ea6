const EVERY_MS = 2;

/** Watches how late timers come in this process: on a busy machine that says more of the machine than of the code. */
export class LoopWatch {
  #timer: NodeJS.Timeout | undefined;
  #dueMs = 0;
  /** The longest that a timer came late. */
  lateMs = 0;

  start(): this {
    this.#dueMs = performance.now() + EVERY_MS;
    this.#timer = setTimeout(() => {
      this.lateMs = Math.max(this.lateMs, performance.now() - this.#dueMs);
      this.start();
    }, EVERY_MS);
    return this;
  }

  stop(): void {
    clearTimeout(this.#timer);
  }
}
