import { startTimer } from '../core/runtime.ts';
import type { Cancel, Runtime } from '../core/runtime.ts';

/**
 * Does what there is to do for those who wait, one thing after the other, and comes back when time alone will have changed
 * something. One timer, and none while there is nothing to wait for.
 */
export class ServeLoop {
  readonly #runtime: Runtime;
  readonly #step: () => number | undefined;
  #running = false;
  #timerAtMs = Infinity;
  #stopTimer: Cancel | undefined;

  /** `step`: does the next thing; returns when to come back where there is none, which may be `Infinity`. */
  constructor(runtime: Runtime, step: () => number | undefined) {
    this.#runtime = runtime;
    this.#step = step;
  }

  /** Whether something is being done: what changes meanwhile is looked at afterwards. */
  get isRunning(): boolean {
    return this.#running;
  }

  /** Whether its time has come, and only the timer is late. */
  get isDue(): boolean {
    return this.#timerAtMs <= this.#runtime.clock.now();
  }

  /** `first`: done before all else, and as a part of it. */
  run(first?: () => void): void {
    // A synchronous source ends within its grant and comes back here: a loop, or ten thousand of them would overflow the
    // stack.
    if (this.#running) return;
    this.#running = true;
    // Should a receiver throw, the rest are served by the timer.
    let untilMs: number | undefined;
    try {
      first?.();
      do untilMs = this.#step();
      while (untilMs === undefined);
    } finally {
      this.#running = false;
      this.#watch(untilMs ?? this.#runtime.clock.now());
    }
  }

  #watch(untilMs: number): void {
    if (untilMs === Infinity) {
      this.#stopTimer?.();
      this.#stopTimer = undefined;
      this.#timerAtMs = Infinity;
      return;
    }
    // A timer that comes too early looks again; only one that comes too late must be replaced.
    // Stryker disable next-line EqualityOperator: one for the same time is as good
    if (this.#timerAtMs <= untilMs) return;
    this.#stopTimer?.();
    this.#timerAtMs = untilMs;
    this.#stopTimer = startTimer(this.#runtime, untilMs - this.#runtime.clock.now(), () => {
      this.#timerAtMs = Infinity;
      this.run();
    });
  }
}
