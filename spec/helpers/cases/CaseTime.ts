import type { Runtime } from '../../../lib/core/runtime.ts';
import { virtualRuntime } from '../../../lib/testing/virtualRuntime.ts';

/** A runtime whose timers are counted and whose longest is remembered. */
export interface CountedRuntime extends Runtime {
  readonly pending: number;
  readonly longestTimerMs: number;
}

/** Longest real time that anything on the wire may take to settle. */
const QUIET_WITHIN_MS = 5_000;

const alwaysQuiet = (): boolean => true;

/**
 * Virtual time that real sockets live in: it moves on to the next timer only when nothing is on its way any more, which
 * `isQuiet` tells.
 */
export class CaseTime {
  readonly #base = virtualRuntime();
  readonly #due = new Set<{ readonly atMs: number }>();

  get nowMs(): number {
    return this.#base.clock.now();
  }

  stepWall(byMs: number): void {
    this.#base.stepWall(byMs);
  }

  /** A runtime in this time. Each counts its own timers. */
  runtime(): CountedRuntime {
    const { clock, scheduler, random } = this.#base;
    const mine = new Set<object>();
    let longestTimerMs = 0;
    return {
      clock,
      random,
      scheduler: {
        schedule: (work, delayMs = 0) => {
          const entry = { atMs: clock.now() + Math.max(0, delayMs) };
          longestTimerMs = Math.max(longestTimerMs, delayMs);
          const forget = (): void => {
            mine.delete(entry);
            this.#due.delete(entry);
          };
          mine.add(entry);
          this.#due.add(entry);
          const timer = scheduler.schedule(() => {
            forget();
            work();
          }, delayMs);
          return {
            unsubscribe: () => {
              forget();
              timer.unsubscribe();
            },
          };
        },
      },
      get pending() {
        return mine.size;
      },
      get longestTimerMs() {
        return longestTimerMs;
      },
    };
  }

  /**
   * Runs until `done`, or until `untilMs`, or until nothing is left to happen. Moves to `untilMs` only where that is
   * finite and not done.
   */
  async run(done: () => boolean, untilMs: number = Infinity, isQuiet: () => boolean = alwaysQuiet): Promise<void> {
    for (;;) {
      await quiet(isQuiet);
      if (done()) return;
      const nextMs = Math.min(...[...this.#due].map(({ atMs }) => atMs));
      if (nextMs > untilMs || nextMs === Infinity) {
        if (untilMs !== Infinity) this.#base.advance(untilMs - this.nowMs);
        return;
      }
      this.#base.advance(nextMs - this.nowMs);
    }
  }
}

/** Several turns of the event loop in a row in which nothing was on its way. */
async function quiet(isQuiet: () => boolean): Promise<void> {
  const startedAtMs = performance.now();
  for (let turns = 0; turns < 3;) {
    await new Promise((resolve) => setImmediate(resolve));
    turns = isQuiet() ? turns + 1 : 0;
    if (performance.now() - startedAtMs > QUIET_WITHIN_MS) throw new Error('the wire did not come to rest');
  }
}
