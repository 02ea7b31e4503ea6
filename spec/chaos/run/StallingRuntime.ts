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
  readonly #turn: (() => Promise<unknown>) | undefined;
  #late: Late[] | undefined;
  #order = 0;
  #armed = 0;
  #pending = 0;

  /** `turn`: passes when promises have done what they can. Where there are any, they come before the next thing that is late. */
  constructor(base: Runtime, turn?: () => Promise<unknown>) {
    this.#base = base;
    this.#turn = turn;
    this.clock = base.clock;
    this.random = base.random;
    this.scheduler = { schedule: (work, delayMs = 0) => this.#schedule(work, delayMs) };
  }

  /** Timers that have neither fired nor been cancelled. */
  get pending(): number {
    return this.#pending;
  }

  get stalled(): boolean {
    return this.#late !== undefined;
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
    if (this.#turn !== undefined) return void this.#wakeInTurns(this.#turn);
    const late = this.#late ?? [];
    this.#late = undefined;
    // What is late is late; what it sets off is not.
    for (const one of late) if (!one.cancelled) one.work();
  }

  async #wakeInTurns(turn: () => Promise<unknown>): Promise<void> {
    for (let next = this.#late?.shift(); next; next = this.#late?.shift()) {
      if (!next.cancelled) next.work();
      await turn();
    }
    this.#late = undefined;
  }
}
