import { positive, wholeNumber } from '../core/checks.ts';
import type { Clock } from '../core/runtime.ts';

export interface LeastTimesOptions {
  /** A time counts for at least half of this and at most all of it. Milliseconds above 0. Default: 120,000. */
  readonly windowMs?: number | undefined;
  /** Names that are kept; the oldest is forgotten. A whole number from 1. Default: 1,000. */
  readonly maxNames?: number | undefined;
}

export const LEAST_TIMES_DEFAULTS: { readonly windowMs: number; readonly maxNames: number } = Object.freeze({
  windowMs: 120_000,
  maxNames: 1_000,
});

interface Halves {
  number: number;
  /** The least of this half of the window, and of the one before. */
  now: number;
  before: number;
}

/**
 * The shortest time that something of each name has taken lately: nothing of that name can be expected to take less. It
 * decides nothing and never waits.
 */
export class LeastTimes {
  readonly #halfMs: number;
  readonly #maxNames: number;
  readonly #clock: Pick<Clock, 'now'>;
  readonly #names = new Map<string, Halves>();

  /** @throws SluiceError `invalid_option` if an option is out of range. */
  constructor(options: LeastTimesOptions, clock: Pick<Clock, 'now'>) {
    this.#halfMs = positive('windowMs', options.windowMs ?? LEAST_TIMES_DEFAULTS.windowMs) / 2;
    this.#maxNames = wholeNumber('maxNames', options.maxNames ?? LEAST_TIMES_DEFAULTS.maxNames);
    this.#clock = clock;
  }

  note(name: string, tookMs: number): void {
    const halves = this.#names.get(name) ?? this.#added(name);
    this.#turn(halves);
    halves.now = Math.min(halves.now, tookMs);
  }

  /** 0 where nothing is known. */
  of(name: string): number {
    const halves = this.#names.get(name);
    if (halves === undefined) return 0;
    this.#turn(halves);
    const least = Math.min(halves.now, halves.before);
    return least === Infinity ? 0 : Math.max(0, least);
  }

  #added(name: string): Halves {
    const [oldest] = this.#names.keys();
    if (this.#names.size >= this.#maxNames) this.#names.delete(oldest as string);
    // Stryker disable next-line ObjectLiteral,UnaryOperator: the turn that follows sets them all
    const halves = { number: -Infinity, now: Infinity, before: Infinity };
    this.#names.set(name, halves);
    return halves;
  }

  #turn(halves: Halves): void {
    const number = Math.floor(this.#clock.now() / this.#halfMs);
    if (number === halves.number) return;
    halves.before = number === halves.number + 1 ? halves.now : Infinity;
    halves.now = Infinity;
    halves.number = number;
  }
}
