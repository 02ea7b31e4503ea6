/** Differences below these are rounding of `time * rate`, not missing quota. A clock has steps of 1.2e-7 ms at 1e9 ms. */
const ROUNDING = 1e-6;
const ROUNDING_MS = 5e-7;

export interface BucketRate {
  readonly perMinute: number;
  /** Most that the bucket holds. */
  readonly burst: number;
  /** Part of the refill that another client of the same quota uses up, from 0 to 1. */
  readonly noiseShare: number;
}

/**
 * The provider's own count of one limit. It shares no code with the limiter of this library on purpose: a fake provider
 * with the same faults as the client would hide them.
 *
 * It keeps the instant when it was last full and what was taken since, so nothing accumulates rounding: a client that
 * sends at exactly the rate is never refused, however long it goes on.
 */
export class ProviderBucket {
  #rate: BucketRate;
  #perMs: number;
  #anchorMs: number;
  #levelAtAnchor: number;
  #taken = 0;

  constructor(rate: BucketRate, nowMs: number) {
    this.#rate = rate;
    this.#perMs = (rate.perMinute / 60_000) * (1 - rate.noiseShare);
    this.#anchorMs = nowMs;
    this.#levelAtAnchor = rate.burst;
  }

  get rate(): BucketRate {
    return this.#rate;
  }

  /** What can be taken now; below 0 where more was used than had been reserved. */
  level(nowMs: number): number {
    const atMs = Math.max(nowMs, this.#anchorMs);
    const level = this.#levelAtAnchor + (atMs - this.#anchorMs) * this.#perMs - this.#taken;
    if (level < this.#rate.burst) return level;
    this.#anchorAt(atMs, this.#rate.burst);
    return this.#rate.burst;
  }

  has(amount: number, nowMs: number): boolean {
    return this.level(nowMs) + this.#rounding >= amount;
  }

  take(amount: number, nowMs: number): void {
    this.level(nowMs);
    this.#taken += amount;
  }

  /** Takes `amount`, or what is left of it: what a refused request costs. */
  drain(amount: number, nowMs: number): void {
    // Before the sum: reading the level of a full bucket forgets what was taken.
    const level = this.level(nowMs);
    this.#taken += Math.min(amount, Math.max(0, level));
  }

  giveBack(amount: number, nowMs: number): void {
    this.#taken -= amount;
    this.level(nowMs);
  }

  /** Whole milliseconds until `amount` can be taken; `Infinity` where it never can. */
  msUntil(amount: number, nowMs: number): number {
    const missing = amount - this.level(nowMs);
    if (missing <= this.#rounding) return 0;
    return amount > this.#rate.burst ? Infinity : Math.ceil(missing / this.#perMs);
  }

  /** From now on another rate. What is there stays, up to the new burst. */
  change(rate: BucketRate, nowMs: number): void {
    this.#anchorAt(Math.max(nowMs, this.#anchorMs), this.level(nowMs));
    this.#rate = rate;
    this.#perMs = (rate.perMinute / 60_000) * (1 - rate.noiseShare);
  }

  get #rounding(): number {
    return ROUNDING + ROUNDING_MS * this.#perMs;
  }

  #anchorAt(atMs: number, level: number): void {
    this.#anchorMs = atMs;
    this.#levelAtAnchor = level;
    this.#taken = 0;
  }
}
