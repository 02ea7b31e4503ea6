import type { Demand } from '../core/attempt.ts';
import { startTimer } from '../core/runtime.ts';
import type { Cancel, Runtime } from '../core/runtime.ts';
import { StageTimers } from './StageTimers.ts';
import type { StageCut, StageLimits } from './StageTimers.ts';

/** Whose stages are watched. */
export interface WatchedAttempt {
  /** A limit was reached. */
  cut(cut: StageCut): void;
}

/**
 * Runs {@link StageTimers} on one timer. It is armed anew only for an earlier instant; that a limit has moved back is
 * found when it fires, so progress costs no timer.
 */
export class StageWatch {
  readonly #timers: StageTimers;
  readonly #runtime: Runtime;
  readonly #attempt: WatchedAttempt;
  /** Made for the first timer, and taken by all. */
  #fire: (() => void) | undefined;
  #stopTimer: Cancel | undefined;
  #armedForMs = Infinity;
  #stopped = false;

  constructor(attempt: WatchedAttempt, limits: StageLimits, streamed: boolean, runtime: Runtime) {
    this.#attempt = attempt;
    this.#timers = new StageTimers(limits, streamed);
    this.#runtime = runtime;
  }

  dispatched(atMs: number): void {
    this.#timers.dispatched(atMs);
    this.#arm();
  }

  headed(): void {
    this.#timers.headed();
  }

  streams(): void {
    this.#timers.streams();
    this.#arm();
  }

  /** Returns the instant. */
  firstContent(): number {
    const nowMs = this.progress();
    this.#arm();
    return nowMs;
  }

  /** Returns the instant. */
  progress(): number {
    const nowMs = this.#runtime.clock.now();
    this.#timers.progress(nowMs);
    return nowMs;
  }

  finished(): void {
    this.#timers.finished(this.#runtime.clock.now());
    this.#arm();
  }

  stop(): void {
    this.#stopped = true;
    this.#stopTimer?.();
  }

  /** The consumer's pace, with the limits standing still while it is awaited. */
  pausing(demand: Demand): Demand {
    const resume = (): void => {
      this.#timers.resume(this.#runtime.clock.now());
      this.#arm();
    };
    return {
      ready: () => {
        const wait = readiness(demand);
        if (wait === undefined) return undefined;
        this.#timers.pause(this.#runtime.clock.now());
        return wait.then(resume, resume);
      },
    };
  }

  #arm(): void {
    const dueAtMs = this.#timers.dueAtMs();
    if (this.#stopped || dueAtMs >= this.#armedForMs) return;
    this.#stopTimer?.();
    this.#armedForMs = dueAtMs;
    const fire = this.#fire ?? ((): void => this.#fired());
    this.#fire = fire;
    this.#stopTimer = startTimer(this.#runtime, Math.ceil(dueAtMs - this.#runtime.clock.now()), fire);
  }

  #fired(): void {
    this.#armedForMs = Infinity;
    if (this.#timers.dueAtMs() > this.#runtime.clock.now()) this.#arm();
    else this.#attempt.cut(this.#timers.cut());
  }
}

/** A pace that fails is none: reading goes on. */
function readiness(demand: Demand): Promise<void> | undefined {
  try {
    return demand.ready();
  } catch {
    return undefined;
  }
}
