import { positive, zeroOrMore } from '../core/checks.ts';
import { LowWater } from './LowWater.ts';

export interface TokenBucketOptions {
  /** Most tokens the bucket holds, and how many it starts with. Finite, above 0. */
  readonly capacity: number;
  /** Tokens gained per second, continuously rather than in ticks. Finite, above 0. */
  readonly refillPerSecond: number;
  /** How long after they were taken tokens begin to come back. Finite, 0 or more. Default: 0. */
  readonly refillLagMs?: number;
}

export type TakeDecision =
  /** `mark` undoes it, see {@link TokenBucket.giveBack}. */
  | { readonly kind: 'granted'; readonly mark: number }
  /** Nothing was taken. Ask again after `waitMs`; another caller may have been faster. */
  | { readonly kind: 'wait'; readonly waitMs: number };

/** Tokens that were taken and have not begun to come back. */
interface Slot {
  readonly mark: number;
  readonly refillsFromMs: number;
  amount: number;
}

/** Slots in one lag: what bounds the cost of a question, and how much later than the lag a token may come back. */
const SLOTS = 50;
/** Relative to the capacity: below it two amounts are the same. */
const EPSILON = 1e-9;
/** Relative to the capacity: bounds the memory for refunds to 1 / this many entries. */
const LOW_GRAIN = 1e-4;

/**
 * A token bucket that decides and never acts: no timers, no queue, no clock of its own. Times are monotonic
 * milliseconds, passed in.
 *
 * Invariant: over any span of `t` ms it lets through at most
 * `capacity + refillPerSecond * max(0, t - refillLagMs) / 1000` tokens, plus what was charged unasked. A cost above the
 * capacity passes when the bucket is full and leaves it in debt.
 *
 * Why a lag: requests sent `d` ms apart may arrive `d - j` ms apart. A bucket at the far end that fills up meanwhile loses
 * refill, so a sender with the same numbers and no lag runs ahead of it by up to `j` ms of refill. A lag of at least `j`
 * rules that out for every history, at the price of starting the refill once, `j` ms late.
 */
export class TokenBucket {
  #lagMs: number;
  readonly #lows = new LowWater();
  #capacity: number;
  #perMs: number;
  #atMs: number;
  /** What is missing of the capacity and comes back continuously. */
  #debt = 0;
  /** What was taken within the last lag, oldest first from `#first`; marks rise by one. */
  #slots: Slot[] = [];
  #first = 0;
  #lagging = 0;
  #lastMark = 0;

  /** @throws SluiceError `invalid_option` if an option is not as described. */
  constructor(options: TokenBucketOptions, nowMs: number) {
    this.#capacity = positive('capacity', options.capacity);
    this.#perMs = positive('refillPerSecond', options.refillPerSecond) / 1000;
    this.#lagMs = zeroOrMore('refillLagMs', options.refillLagMs ?? 0);
    this.#atMs = nowMs;
  }

  get capacity(): number {
    return this.#capacity;
  }

  get refillPerSecond(): number {
    return this.#perMs * 1000;
  }

  /** Tokens there are now; below 0 while in debt. */
  level(nowMs: number): number {
    this.#refill(nowMs);
    return this.#capacity - this.#debt - this.#lagging;
  }

  /** Takes all of `cost` or nothing. */
  take(nowMs: number, cost: number): TakeDecision {
    const waitMs = this.waitMs(nowMs, cost);
    return waitMs > 0 ? { kind: 'wait', waitMs } : { kind: 'granted', mark: this.charge(nowMs, cost) };
  }

  /**
   * Whole milliseconds until `cost` can be taken if nobody else takes; 0 if it can be now. `credit` counts as given back
   * already.
   */
  waitMs(nowMs: number, cost: number, credit = 0): number {
    this.#refill(nowMs);
    const need = Math.min(zeroOrMore('cost', cost), this.#capacity);
    let missing = this.#debt + this.#lagging + need - this.#capacity - credit;
    if (missing <= EPSILON * this.#capacity) return 0;
    let atMs = nowMs;
    let debt = this.#debt;
    for (let i = this.#first; i < this.#slots.length; i++) {
      const slot = this.#slots[i] as Slot;
      const gained = Math.min(debt, (slot.refillsFromMs - atMs) * this.#perMs);
      if (gained >= missing) break;
      missing -= gained;
      debt += slot.amount - gained;
      atMs = slot.refillsFromMs;
    }
    // Rounded up: timers have a grain of 1 ms, and a wait of 0.3 ms would otherwise spin.
    return Math.ceil(atMs - nowMs + missing / this.#perMs);
  }

  /** Takes `cost` unasked, into debt where need be. Returns the mark that undoes it. */
  charge(nowMs: number, cost: number): number {
    this.#refill(nowMs);
    zeroOrMore('cost', cost);
    // Where the lag was given up a moment ago, what is taken comes back behind what still lags.
    if (this.#lagMs === 0 && this.#first === this.#slots.length) {
      this.#lows.record(++this.#lastMark, this.#debt, LOW_GRAIN * this.#capacity);
      this.#debt += cost;
      return this.#lastMark;
    }
    // Never earlier than the lag: what is taken within one slot comes back from its end.
    const slotMs = this.#lagMs / SLOTS;
    const refillsFromMs = slotMs === 0 ? nowMs : (Math.floor(nowMs / slotMs) + 1) * slotMs + this.#lagMs;
    const last = this.#slots.at(-1);
    if (last !== undefined && last.refillsFromMs >= refillsFromMs) {
      last.amount += cost;
    } else {
      this.#slots.push({ mark: ++this.#lastMark, refillsFromMs, amount: cost });
    }
    this.#lagging += cost;
    return this.#lastMark;
  }

  /**
   * Undoes `amount` of what was charged under `mark`, and never more than is left of it: what has been refilled
   * meanwhile to no one's use is gone. Returns what was given back.
   */
  giveBack(nowMs: number, amount: number, mark: number): number {
    this.#refill(nowMs);
    zeroOrMore('amount', amount);
    const oldest = this.#slots[this.#first];
    // Those before the oldest have begun to come back: they are in the debt.
    const slot = oldest && mark >= oldest.mark ? this.#slots[this.#first + mark - oldest.mark] : undefined;
    if (slot?.mark === mark) {
      const given = Math.min(amount, slot.amount);
      slot.amount -= given;
      this.#lagging = Math.max(0, this.#lagging - given);
      return given;
    }
    const given = Math.min(amount, this.#debt, this.#lows.since(mark));
    this.#debt -= given;
    this.#lows.lower(mark, given);
    return given;
  }

  /** Takes away what is above `level`; never adds. */
  lower(nowMs: number, level: number): void {
    const above = this.level(nowMs) - level;
    if (above > 0) this.#debt += above;
  }

  /** Forgets what was taken: from now on there is `level`. */
  reset(nowMs: number, level: number): void {
    this.#refill(nowMs);
    this.#slots.length = this.#first = 0;
    this.#lagging = 0;
    this.#debt = this.#capacity - level;
  }

  /** Changes size and rate; the level stays, but for what no longer fits. A lag that is given holds for what is taken from now on. */
  setRate(nowMs: number, rate: TokenBucketOptions): void {
    const capacity = positive('capacity', rate.capacity);
    const perMs = positive('refillPerSecond', rate.refillPerSecond) / 1000;
    const lagMs = zeroOrMore('refillLagMs', rate.refillLagMs ?? this.#lagMs);
    this.#refill(nowMs);
    this.#lagMs = lagMs;
    // What has come back so far is gone for whoever took it, also once the debt is counted against another capacity. The
    // mark lies between the charges that have begun to come back and those that have not.
    const nextMark = this.#slots[this.#first]?.mark ?? this.#lastMark + 1;
    this.#lows.record(nextMark - 0.5, this.#debt, LOW_GRAIN * capacity);
    this.#debt = Math.max(0, this.#debt + capacity - this.#capacity);
    this.#capacity = capacity;
    this.#perMs = perMs;
  }

  #refill(nowMs: number): void {
    // Stryker disable next-line ConditionalExpression,EqualityOperator: what comes back by one time has come back then
    if (nowMs === this.#atMs) return;
    let slot = this.#slots[this.#first];
    while (slot !== undefined && slot.refillsFromMs <= nowMs) {
      this.#gain(slot.refillsFromMs);
      this.#lows.record(slot.mark, this.#debt, LOW_GRAIN * this.#capacity);
      this.#debt += slot.amount;
      this.#lagging -= slot.amount;
      slot = this.#slots[++this.#first];
    }
    if (slot === undefined) {
      this.#slots.length = this.#first = 0;
      this.#lagging = 0;
    }
    // Stryker disable next-line ConditionalExpression,EqualityOperator,BlockStatement: it only gives memory back
    if (this.#first > SLOTS) {
      this.#slots.splice(0, this.#first);
      this.#first = 0;
    }
    this.#gain(nowMs);
  }

  #gain(nowMs: number): void {
    if (nowMs <= this.#atMs) return;
    this.#debt = Math.max(0, this.#debt - (nowMs - this.#atMs) * this.#perMs);
    this.#atMs = nowMs;
  }
}
