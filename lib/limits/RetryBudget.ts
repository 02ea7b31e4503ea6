import { positive, ratio, zeroOrMore } from '../core/checks.ts';
import type { RetryBudgetPort } from '../core/ports.ts';
import type { Clock } from '../core/runtime.ts';

export interface RetryBudgetOptions {
  /** What retries may add to the first attempts of the window, in tokens. 0 to 1. Default: 0.2. */
  readonly ratio?: number | undefined;
  /** Retries per second, of any size, that are allowed where the ratio allows none. Finite, 0 or more. Default: 1. */
  readonly minPerSecond?: number | undefined;
  /** How far back traffic counts, and over which the floor is averaged. Milliseconds. Default: 10,000. */
  readonly windowMs?: number | undefined;
}

export const RETRY_BUDGET_DEFAULTS: Readonly<{ ratio: number; minPerSecond: number; windowMs: number }> = Object.freeze(
  { ratio: 0.2, minPerSecond: 1, windowMs: 10_000 },
);

interface Slice {
  readonly number: number;
  earned: number;
  spent: number;
  /** Retries, by the ratio or by the floor. */
  floor: number;
}

/** The window expires in steps of a tenth of itself. */
const SLICES = 10;

/**
 * Keeps retries from multiplying the load of a provider in trouble: over the last `windowMs` they may add at most
 * `ratio` of the tokens that first attempts sent, or `minPerSecond` retries, whichever allows more. Only retries are
 * charged; a first attempt, also one on a fallback model, earns. It decides and never waits.
 *
 * Invariant: at each withdrawal, tokens withdrawn by ratio in the window are at most `ratio` times those deposited in
 * it, and where there are others, all together are at most `minPerSecond * windowMs / 1000` retries. What is older than the window, earned or
 * spent, no longer counts.
 *
 * Source: Finagle's `RetryBudget` (https://twitter.github.io/finagle/guide/Clients.html#retries), weighted by tokens.
 */
export class RetryBudget implements RetryBudgetPort {
  #ratio = 0;
  #floorRetries = 0;
  #sliceMs = Infinity;
  readonly #clock: Pick<Clock, 'now'>;
  // Stryker disable next-line ArrayDeclaration: what is no slice is let go of as too old
  #slices: Slice[] = [];

  /** @throws SluiceError `invalid_option` if an option is out of range. */
  constructor(options: RetryBudgetOptions, clock: Pick<Clock, 'now'>) {
    this.#clock = clock;
    this.reload(options);
  }

  /**
   * Takes other rules. What was earned and spent within the window still counts, up to a window from now.
   * @throws SluiceError `invalid_option` if an option is out of range; then nothing has changed.
   */
  reload(options: RetryBudgetOptions): void {
    const windowMs = positive('windowMs', options.windowMs ?? RETRY_BUDGET_DEFAULTS.windowMs);
    const minPerSecond = zeroOrMore('minPerSecond', options.minPerSecond ?? RETRY_BUDGET_DEFAULTS.minPerSecond);
    this.#ratio = ratio('ratio', options.ratio ?? RETRY_BUDGET_DEFAULTS.ratio);
    this.#floorRetries = (minPerSecond * windowMs) / 1000;
    const sliceMs = windowMs / SLICES;
    if (sliceMs === this.#sliceMs) return;
    // Lets go of what is too old under the old rules.
    this.#current();
    const sums = this.#sums();
    this.#sliceMs = sliceMs;
    // Stryker disable next-line ArrayDeclaration: as above
    this.#slices = [];
    Object.assign(this.#current(), sums);
  }

  /**
   * A first attempt of this weight was sent.
   * @throws SluiceError `invalid_option` if `tokens` is not finite and 0 or more.
   */
  deposit(tokens: number): void {
    this.#current().earned += weight(tokens);
  }

  /**
   * Takes what a retry of this weight costs; `false` if it may not be made.
   * @throws SluiceError `invalid_option` if `tokens` is not finite and 0 or more.
   */
  withdraw(tokens: number): boolean {
    const cost = weight(tokens);
    const slice = this.#current();
    const { earned, spent, floor } = this.#sums();
    if (spent + cost <= earned * this.#ratio) slice.spent += cost;
    else if (floor + 1 > this.#floorRetries) return false;
    slice.floor++;
    return true;
  }

  /** Of the slices that there are; `#current` lets go of those that are too old. */
  #sums(): Omit<Slice, 'number'> {
    const sums = { earned: 0, spent: 0, floor: 0 };
    for (const { earned, spent, floor } of this.#slices) {
      sums.earned += earned;
      sums.spent += spent;
      sums.floor += floor;
    }
    return sums;
  }

  #current(): Slice {
    const number = Math.floor(this.#clock.now() / this.#sliceMs);
    // Stryker disable next-line UnaryOperator: in more slices it counts the same
    const last = this.#slices.at(-1);
    // Stryker disable next-line ConditionalExpression: as above
    if (last?.number === number) return last;
    const slice = { number, earned: 0, spent: 0, floor: 0 };
    this.#slices = this.#slices.filter((part) => part.number > number - SLICES);
    this.#slices.push(slice);
    return slice;
  }
}

/** At least 1, so that a retry whose tokens nobody knows is not free. */
function weight(tokens: number): number {
  return Math.max(1, zeroOrMore('tokens', tokens));
}
