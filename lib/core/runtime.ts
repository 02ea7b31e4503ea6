/** Reads time. Both readings are in milliseconds and may have fractions. */
export interface Clock {
  /** Monotonic: never goes back and does not follow corrections of the wall clock. The only clock for measuring. */
  now(): number;
  /** Milliseconds since the Unix epoch. Only for absolute instants that came from outside. */
  wallNow(): number;
}

/** Runs work later. Every RxJS scheduler satisfies this shape, so a `TestScheduler` can stand in. */
export interface Scheduler {
  schedule(work: () => void, delayMs?: number): { unsubscribe(): void };
  /**
   * For schedulers that can do it with less: runs `work` once, after `delayMs` of 0 or more. What it returns stops that,
   * and does nothing afterwards. Default: by `schedule`.
   */
  once?(work: () => void, delayMs: number): () => void;
}

/** The only source of time, waiting and randomness. Pass your own to run everything in virtual time. */
export interface Runtime {
  readonly clock: Clock;
  readonly scheduler: Scheduler;
  /** Uniform in [0, 1). */
  readonly random: () => number;
}

let stretchMs: number | undefined;
const endStretch = (): void => void (stretchMs = undefined);
/** Comes in the order of `queueMicrotask`, which runs code of Node's own besides. */
const microtask = Promise.resolve();

/**
 * Real time: monotonic `performance.now`, `setTimeout`, `Math.random`. The clock stands still while code runs without a
 * break: what is granted meanwhile has not been sent, so that no quota comes back at the other end.
 */
export const systemRuntime: Runtime = {
  clock: {
    now() {
      if (stretchMs === undefined) {
        stretchMs = performance.now();
        void microtask.then(endStretch);
      }
      return stretchMs;
    },
    wallNow: () => Date.now(),
  },
  scheduler: {
    schedule(work, delayMs = 0) {
      const timer = setTimeout(work, delayMs);
      return { unsubscribe: () => clearTimeout(timer) };
    },
    once(work, delayMs) {
      const timer = setTimeout(work, delayMs);
      return () => clearTimeout(timer);
    },
  },
  random: Math.random,
};

/** Node fires a longer timer after one millisecond. */
const MAX_TIMER_MS = 2_147_483_647;

/** Stops a wait. Calling it again, or after the wait has ended, does nothing. */
export type Cancel = () => void;

/**
 * Runs `work` once after `delayMs`, in steps where the wait is longer than a timer can be. `Infinity` never fires and
 * arms no timer; what is not above 0, NaN too, fires as soon as it can. All waiting in the library goes through here.
 */
export function startTimer(runtime: Runtime, delayMs: number, work: () => void): Cancel {
  const ms = delayMs > 0 ? delayMs : 0;
  if (ms === Infinity) return () => {};
  if (ms > MAX_TIMER_MS) return startLongTimer(runtime, ms, work);
  const { scheduler } = runtime;
  if (scheduler.once !== undefined) return scheduler.once(work, ms);
  let over = false;
  const pending = scheduler.schedule(() => {
    if (over) return;
    over = true;
    work();
  }, ms);
  return () => {
    if (over) return;
    over = true;
    pending.unsubscribe();
  };
}

function startLongTimer(runtime: Runtime, delayMs: number, work: () => void): Cancel {
  let left = delayMs;
  let cancel: Cancel = () => {};
  const step = (): void => {
    const stepMs = Math.min(left, MAX_TIMER_MS);
    left -= stepMs;
    cancel = startTimer(runtime, stepMs, left > 0 ? step : work);
  };
  step();
  return () => cancel();
}
