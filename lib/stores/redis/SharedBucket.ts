import type { BucketRule } from './QuotaCall.ts';

const MINUTE_US = 60_000_000;

/** What the plan of that number foresees for a bucket. */
export interface BucketPlan {
  plan: number;
  /** When it is full again, once everyone in line has had their turn. */
  fullUs: number;
  /** Until then nobody passes those who wait for it. */
  heldUs: number;
}

/**
 * A token bucket as one number: when all that was taken will have come back. `quotaBuckets.lua` holds the same; change both.
 *
 * Invariant: in any span of `t` it lets through `size + max(0, t - lag)` of refill, or one cost above the size.
 */
export class SharedBucket {
  readonly layer: string;
  readonly #unit: string;
  #rule: BucketRule;
  /** When it is full again, as far as it was really taken from. */
  realUs: number;
  /** What the last two plans say. */
  readonly planned: readonly [BucketPlan, BucketPlan] = [
    { plan: 0, fullUs: 0, heldUs: 0 },
    { plan: 0, fullUs: 0, heldUs: 0 },
  ];
  /** All that was ever given back. */
  #backUs = 0;
  /** All that was ever charged. */
  #chargedUs = 0;
  /** Charges below this sum were made at other rates. */
  #baseUs = 0;
  /** The charge that the last report was about. */
  #reportedUs = -1;

  constructor(rule: BucketRule, fullAtUs: number) {
    this.layer = rule.key.slice(2);
    this.#unit = rule.key.slice(0, 1);
    this.#rule = rule;
    this.realUs = fullAtUs;
  }

  get sizeUs(): number {
    return this.#rule.sizeUs;
  }

  get lagUs(): number {
    return this.#rule.lagUs;
  }

  get marks(): readonly number[] {
    return [this.realUs, this.#backUs, this.#chargedUs];
  }

  /** Takes other rates. The level stays, as far as it fits. Returns whether they are others. */
  setRate(rule: BucketRule, nowUs: number): boolean {
    const { perMinute, sizeUs } = this.#rule;
    this.#rule = rule;
    if (perMinute === rule.perMinute && sizeUs === rule.sizeUs) return false;
    const levelUs = sizeUs - Math.max(0, this.realUs - nowUs);
    this.realUs = nowUs + rule.sizeUs - Math.min(rule.sizeUs, Math.floor((levelUs * perMinute) / rule.perMinute));
    // What was charged at other rates is not undone any more: it may have come back since.
    this.#baseUs = ++this.#chargedUs;
    for (const each of this.planned) each.plan = 0;
    return true;
  }

  /** What an amount costs in refill time, rounded up: never more than the quota. */
  costUs(requests: number, tokens: number): number {
    return Math.ceil(((this.#unit === 'r' ? requests : tokens) * MINUTE_US) / this.#rule.perMinute);
  }

  /** How long before the bucket is full there is room: what is as large as the bucket less the lag waits until it is full. */
  slackUs(cost: number): number {
    const slack = this.#rule.sizeUs - cost;
    return slack >= this.#rule.lagUs ? slack : 0;
  }

  charge(atUs: number, cost: number): void {
    if (cost === 0) return;
    this.realUs = Math.max(this.realUs, atUs + this.#rule.lagUs) + cost;
    this.#chargedUs += cost;
  }

  /**
   * Undoes a charge as far as it has not come back by itself. What was given back since counts as if it had been ahead of
   * it, and what was charged since as if it had been just now: too little may come back, never too much.
   */
  giveBack(nowUs: number, cost: number, [drainedAtUs = 0, backUs = 0, chargedUs = 0]: readonly number[]): void {
    if (chargedUs < this.#baseUs) return;
    const left = drainedAtUs - (this.#backUs - backUs) - nowUs - this.#rule.lagUs;
    const given = Math.max(0, Math.min(cost, left));
    this.realUs -= given;
    this.#backUs += given;
  }

  report(nowUs: number, remaining: number, agoUs: number, chargedUs: number): void {
    let levelUs = Math.floor((remaining * MINUTE_US) / this.#rule.perMinute);
    if (chargedUs >= 0) {
      if (chargedUs < this.#baseUs || chargedUs < this.#reportedUs) return;
      this.#reportedUs = chargedUs;
      levelUs += Math.max(0, agoUs - this.#rule.lagUs) - (this.#chargedUs - chargedUs);
    }
    this.realUs = Math.max(this.realUs, nowUs + this.#rule.sizeUs - levelUs);
  }
}
