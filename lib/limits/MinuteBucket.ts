import { zeroOrMore } from '../core/checks.ts';
import type { LimitReading } from '../core/hints.ts';
import { TokenBucket } from './TokenBucket.ts';

/** Throughput that the arrival margin may cost where the burst is too small to cover it. */
const MOST_LOST = 0.03;
const MINUTE_MS = 60_000;
/** What is sent within so long may arrive in any order, such as over connections that have yet to be made. */
const MOMENT_MS = 20;
/** Relative to the burst: below it two amounts are the same. */
const EPSILON = 1e-9;

export interface MinuteRate {
  readonly perMinute: number;
  readonly burst: number;
}

/** What was sent within {@link MOMENT_MS}: what a report of an answer to it is measured against. */
export interface Moment {
  readonly order: number;
  readonly fromMs: number;
  /** All that had been sent up to its end. */
  total: number;
}

/**
 * One bucket of a layer, in requests or tokens per minute, corrected by what a provider reports. Pure: times are passed
 * in.
 */
export class MinuteBucket {
  // Read at every call. Rates are changed by `setRate` and `follow` only.
  perMinute: number;
  burst: number;
  /** That of the last dispatch. */
  moment: Moment = { order: 0, fromMs: -Infinity, total: 0 };
  /** What attempts that have not ended hold of it: it may come back. Kept by whoever charges for them. */
  reserved = 0;
  readonly #bucket: TokenBucket;
  #marginMs: number;
  /** Charged and not yet dispatched. */
  #unsent = 0;
  /** Dispatched and still being handed over: none of it has begun to come back. */
  #inHand = 0;
  #sent = 0;
  #lastReported = 0;

  /** `largest`: the largest common cost, which must keep passing at the full rate. */
  constructor(rate: MinuteRate, largest: number, arrivalMarginMs: number, nowMs: number) {
    const { perMinute, burst } = rate;
    this.#marginMs = coveredMarginMs(rate, largest, zeroOrMore('arrivalMarginMs', arrivalMarginMs));
    this.perMinute = perMinute;
    this.burst = burst;
    this.#bucket = new TokenBucket(
      { capacity: burst, refillPerSecond: perMinute / 60, refillLagMs: this.#marginMs },
      nowMs,
    );
  }

  level(nowMs: number): number {
    return Math.min(this.#bucket.level(nowMs), this.burst - this.#inHand);
  }

  waitMs(nowMs: number, cost: number, credit = 0): number {
    const waitMs = this.#bucket.waitMs(nowMs, cost, credit);
    // Stryker disable next-line ConditionalExpression: nothing is missing for nothing
    if (this.#inHand === 0) return waitMs;
    const missing = Math.min(cost, this.burst) + this.#inHand - this.burst - credit;
    return Math.max(waitMs, this.#gainMs(missing - EPSILON * this.burst));
  }

  /** At least this long until `cost` can be taken after `ahead` was. */
  waitBehindMs(nowMs: number, ahead: number, cost: number, credit = 0): number {
    const waitMs = this.waitMs(nowMs, cost, credit);
    if (ahead === 0) return waitMs;
    return Math.max(waitMs, this.#gainMs(ahead + Math.min(cost, this.burst) - credit - this.level(nowMs)));
  }

  /** Takes unasked. Returns the mark that undoes it. */
  charge(nowMs: number, amount: number): number {
    this.#unsent += amount;
    return this.#bucket.charge(nowMs, amount);
  }

  /** It belongs to {@link moment} then. */
  dispatch(nowMs: number, amount: number): void {
    this.#unsent -= amount;
    this.#sent += amount;
    const { order, fromMs } = this.moment;
    if (nowMs - fromMs >= MOMENT_MS) this.moment = { order: order + 1, fromMs: nowMs, total: 0 };
    this.moment.total = this.#sent;
  }

  /** So much more, or less, is being handed over. */
  hold(amount: number): void {
    this.#inHand += amount;
  }

  /** Charges a charge again, from now on. Returns the mark that undoes it. */
  postpone(nowMs: number, amount: number, mark: number): number {
    this.#bucket.giveBack(nowMs, amount, mark);
    // All of it: what has come back meanwhile has not at the far end, where nothing had arrived.
    return this.#bucket.charge(nowMs, amount);
  }

  /** A dispatched charge has turned out dearer. */
  chargeMore(nowMs: number, amount: number): void {
    this.#sent += amount;
    this.#bucket.charge(nowMs, amount);
  }

  /** Returns what was given back. */
  giveBack(nowMs: number, amount: number, mark: number, dispatched: boolean): number {
    // Stryker disable next-line ConditionalExpression: nothing is found as nothing, but later
    if (amount === 0) return 0;
    if (!dispatched) this.#unsent -= amount;
    return this.#bucket.giveBack(nowMs, amount, mark);
  }

  /**
   * Corrects the level downwards by a report: what was left after the attempt that was sent `atMs`, plus what has come back
   * since it arrived, less what was granted after its moment: of what was sent in the same one, the report that came last
   * has counted all. Without a moment the report stands for now. Reports of moments before the last reported one, and of
   * windows above a minute, are ignored.
   */
  report(nowMs: number, reading: LimitReading, moment: Moment | undefined, atMs: number = nowMs): void {
    const remaining = remainingOf(reading);
    if (remaining === undefined || !(reading.windowMs <= MINUTE_MS)) return;
    if (moment === undefined) {
      this.#bucket.lower(nowMs, remaining);
      return;
    }
    const { order, total } = moment;
    if (order < this.#lastReported) return;
    this.#lastReported = order;
    const arrivedMs = atMs + this.#marginMs;
    const refilled = (Math.max(0, nowMs - arrivedMs) * this.perMinute) / MINUTE_MS;
    this.#bucket.lower(nowMs, remaining + refilled - (this.#sent - total) - this.#unsent);
  }

  /** Takes away what is above `level`, from which what has not been dispatched is still to be taken. */
  lower(nowMs: number, level: number): void {
    this.#bucket.lower(nowMs, level - this.#unsent);
  }

  /** Forgets what was taken: from now on there is `level`, from which what has not been dispatched is still to be taken. */
  reset(nowMs: number, level: number): void {
    this.#bucket.reset(nowMs, level - this.#unsent);
  }

  /** Takes over size, rate and margin of another bucket. The level stays, but for what no longer fits. */
  follow(nowMs: number, other: MinuteBucket): void {
    const { perMinute, burst } = other;
    this.#marginMs = other.#marginMs;
    this.#bucket.setRate(nowMs, { capacity: burst, refillPerSecond: perMinute / 60, refillLagMs: this.#marginMs });
    this.perMinute = perMinute;
    this.burst = burst;
  }

  setRate(nowMs: number, rate: MinuteRate): void {
    this.#bucket.setRate(nowMs, { capacity: rate.burst, refillPerSecond: rate.perMinute / 60 });
    this.perMinute = rate.perMinute;
    this.burst = rate.burst;
  }

  #gainMs(amount: number): number {
    return Math.ceil((amount / this.perMinute) * MINUTE_MS);
  }
}

/** As much of the margin as the burst covers: one that just holds one cost cannot absorb a late start. */
export function coveredMarginMs({ perMinute, burst }: MinuteRate, largest: number, marginMs: number): number {
  const covered = Math.max(0, burst - largest) + MOST_LOST * largest;
  return Math.min(marginMs, (covered * MINUTE_MS) / perMinute);
}

/** Where only the time to a full window is reported, what is left follows from the limit's own pace. */
export function remainingOf(reading: LimitReading): number | undefined {
  const { limit = NaN, remaining, resetMs = NaN, windowMs } = reading;
  if (remaining !== undefined) return remaining >= 0 ? remaining : undefined;
  return limit > 0 && resetMs >= 0 ? Math.max(0, limit * (1 - resetMs / windowMs)) : undefined;
}
