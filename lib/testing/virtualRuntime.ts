import type { SchedulerLike } from 'rxjs';
import { zeroOrMore } from '../core/checks.ts';
import type { Runtime } from '../core/runtime.ts';
import { seededRandom } from './seededRandom.ts';
import { VirtualTimers } from './VirtualTimers.ts';

export interface VirtualRuntimeOptions {
  /** Makes `random` repeatable. Default: 1. */
  readonly seed?: number;
  /** Where the wall clock starts, in milliseconds since the epoch. Default: 2026-01-01T00:00:00Z. */
  readonly wallStartMs?: number;
}

export interface VirtualRuntime extends Runtime {
  /** For RxJS too: `delay(1000, runtime.scheduler)`. Its `now` is the wall clock, as that of RxJS's own schedulers. */
  readonly scheduler: SchedulerLike;
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

/**
 * Time that stands still until it is moved, with a clock, a scheduler and random numbers that belong to it. Give it to
 * operators, ports, sources and `createSluice` to test them without sleeping.
 *
 * Timers are kept in a heap: arming or stopping one takes O(log n) where n are armed. A delay of `Infinity` never ends;
 * one that is not above 0 ends at this instant, after what is due by now. What the work of a timer throws comes out of
 * what moves the time, and the other timers stay armed. To move time by what is not finite and 0 or more is
 * `invalid_option`.
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
  const timers = new VirtualTimers();
  let wallOffsetMs = wallStartMs;
  const wallNow = (): number => wallOffsetMs + timers.nowMs;

  return {
    clock: { now: () => timers.nowMs, wallNow },
    scheduler: timers.scheduler(wallNow),
    random: seededRandom(seed),
    get pending() {
      return timers.size;
    },
    advance(byMs) {
      const untilMs = timers.nowMs + zeroOrMore('byMs', byMs);
      timers.runUntil(untilMs);
      timers.nowMs = untilMs;
    },
    run(untilMs = Infinity) {
      timers.runUntil(untilMs);
      return timers.nowMs;
    },
    async advanceAsync(byMs) {
      const untilMs = timers.nowMs + zeroOrMore('byMs', byMs);
      await settled();
      while (timers.nextMs <= untilMs) {
        timers.runUntil(timers.nextMs);
        await settled();
      }
      timers.nowMs = untilMs;
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
