import { Heap } from '../core/Heap.ts';
import type { Runtime } from '../core/runtime.ts';
import { seededRandom } from './seededRandom.ts';

export interface VirtualRuntimeOptions {
  /** Makes `random` repeatable. Default: 1. */
  readonly seed?: number;
  /** Where the wall clock starts, in milliseconds since the epoch. Default: 2026-01-01T00:00:00Z. */
  readonly wallStartMs?: number;
}

export interface VirtualRuntime extends Runtime {
  /** Timers that are armed. */
  readonly pending: number;
  /** Moves time on by `byMs`, running what falls due in order; work due at one instant runs in the order it was armed. */
  advance(byMs: number): void;
  /** Runs until no timer is armed, at most until `untilMs`. Returns the time reached. */
  run(untilMs?: number): number;
  /** Like {@link advance}, but lets promises settle before each instant. */
  advanceAsync(byMs: number): Promise<void>;
  /** Moves the wall clock only, as a correction of the machine's clock would. */
  stepWall(byMs: number): void;
}

interface Timer {
  readonly atMs: number;
  readonly order: number;
  readonly work: () => void;
}

/**
 * Time that stands still until it is moved. Give it to operators, ports and sources to test them without sleeping.
 *
 * @example
 * ```ts
 * import { startTimer } from 'sluice';
 * import { virtualRuntime } from 'sluice/testing';
 *
 * const runtime = virtualRuntime({ seed: 7 });
 * startTimer(runtime, 60_000, () => console.log('a minute later'));
 * runtime.advance(60_000);
 * ```
 */
export function virtualRuntime(options: VirtualRuntimeOptions = {}): VirtualRuntime {
  const { seed = 1, wallStartMs = Date.UTC(2026, 0, 1) } = options;
  const timers = new Heap<Timer>((a, b) => a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order));
  let nowMs = 0;
  let wallOffsetMs = wallStartMs;
  let armed = 0;

  const runUntil = (untilMs: number): void => {
    for (let timer = timers.peek(); timer !== undefined && timer.atMs <= untilMs; timer = timers.peek()) {
      timers.pop();
      nowMs = timer.atMs;
      timer.work();
    }
  };

  return {
    clock: { now: () => nowMs, wallNow: () => wallOffsetMs + nowMs },
    scheduler: {
      schedule(work, delayMs = 0) {
        const node = timers.push({ atMs: nowMs + Math.max(0, delayMs), order: armed++, work });
        return { unsubscribe: () => void timers.remove(node) };
      },
    },
    random: seededRandom(seed),
    get pending() {
      return timers.size;
    },
    advance(byMs) {
      const untilMs = nowMs + byMs;
      runUntil(untilMs);
      nowMs = untilMs;
    },
    run(untilMs = Infinity) {
      runUntil(untilMs);
      return nowMs;
    },
    async advanceAsync(byMs) {
      const untilMs = nowMs + byMs;
      await settled();
      for (let timer = timers.peek(); timer !== undefined && timer.atMs <= untilMs; timer = timers.peek()) {
        runUntil(timer.atMs);
        await settled();
      }
      nowMs = untilMs;
    },
    stepWall(byMs) {
      wallOffsetMs += byMs;
    },
  };
}

/** One turn of the event loop: every promise that can settle by itself has. */
function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
