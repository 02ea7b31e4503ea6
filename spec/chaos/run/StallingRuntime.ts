import type { Runtime } from '../../../lib/index.ts';

interface Late {
  readonly dueMs: number;
  readonly order: number;
  readonly work: () => void;
  cancelled: boolean;
}

/** More timers than any plan needs: something arms one after the other without getting anywhere. */
const MOST_TIMERS = 5_000_000;

/**
 * The time of a process that can be kept from running: meanwhile the clock goes on, and what was due comes all at once
 * afterwards, in the order in which it was due.
 */
export class StallingRuntime implements Runtime {
  readonly clock: Runtime['clock'];
  readonly random: () => number;
  readonly scheduler: Runtime['scheduler'];
  readonly #base: Runtime;
  #late: Late[] | undefined;
  #order = 0;
  #armed = 0;
  #pending = 0;

  constructor(base: Runtime) {
    this.#base = base;
    this.clock = base.clock;
    this.random = base.random;
    this.scheduler = { schedule: (work, delayMs = 0) => this.#schedule(work, delayMs) };
  }

  /** Timers that have neither fired nor been cancelled. */
  get pending(): number {
    return this.#pending;
  }

  /** Stands still for so long. One that begins within another makes it no longer. */
  stall(forMs: number): void {
    if (this.#late !== undefined) return;
    this.#late = [];
    this.#base.scheduler.schedule(() => this.#wake(), forMs);
  }

  /** Now, or when it runs again. Returns what takes it back. */
  whenRunning(work: () => void): () => void {
    if (this.#late === undefined) {
      work();
      return () => {};
    }
    const late = { dueMs: this.clock.now(), order: this.#order++, work, cancelled: false };
    this.#late.push(late);
    return () => void (late.cancelled = true);
  }

  #schedule(work: () => void, delayMs: number): { unsubscribe(): void } {
    if (++this.#armed > MOST_TIMERS) throw new Error(`more than ${MOST_TIMERS} timers were armed in one run`);
    let open = true;
    const close = (): boolean => {
      if (!open) return false;
      open = false;
      this.#pending--;
      return true;
    };
    this.#pending++;
    let takeBack = (): void => {};
    const timer = this.#base.scheduler.schedule(() => {
      takeBack = this.whenRunning(() => {
        if (close()) work();
      });
    }, delayMs);
    return {
      unsubscribe: () => {
        if (!close()) return;
        timer.unsubscribe();
        takeBack();
      },
    };
  }

  #wake(): void {
    const late = this.#late ?? [];
    this.#late = undefined;
    // What is late is late; what it sets off is not.
    for (const one of late) if (!one.cancelled) one.work();
  }
}
