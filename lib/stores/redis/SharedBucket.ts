import type { BucketRule } from './QuotaCall.ts';

const MINUTE_US = 60_000_000;

/** What an amount costs in refill time, rounded up: never more than the quota. */
export function costUs(rule: BucketRule, requests: number, tokens: number): number {
  return Math.ceil(((rule.unit === 'requests' ? requests : tokens) * MINUTE_US) / rule.perMinute);
}

/**
 * A token bucket as one number: when all that was taken will have come back. `quota.lua` holds the same; change both.
 *
 * Invariant: in any span of `t` it lets through `size + max(0, t - lag)` of refill, or one cost above the size.
 */
export class SharedBucket {
  /** When it is full again, as far as it was really taken from. */
  realUs: number;
  /** The same once everyone in line has had their turn. */
  plannedUs: number;
  /** All that was ever given back. */
  backUs = 0;
  /** All that was ever charged. */
  chargedUs = 0;
  /** The charge that the last report was about. */
  reportedUs = -1;

  constructor(fullAtUs: number) {
    this.realUs = fullAtUs;
    this.plannedUs = fullAtUs;
  }

  /** How long before the bucket is full there is room: what is as large as the bucket less the lag waits until it is full. */
  static slackUs(rule: BucketRule, cost: number): number {
    const slack = rule.sizeUs - cost;
    return slack >= rule.lagUs ? slack : 0;
  }

  charge(rule: BucketRule, atUs: number, cost: number): void {
    if (cost === 0) return;
    this.realUs = Math.max(this.realUs, atUs + rule.lagUs) + cost;
    this.chargedUs += cost;
  }

  plan(rule: BucketRule, atUs: number, cost: number): void {
    if (cost > 0) this.plannedUs = Math.max(this.plannedUs, atUs + rule.lagUs) + cost;
  }

  /**
   * Undoes a charge as far as it has not come back by itself. What was given back since counts as if it had been ahead of
   * it, and what was charged since as if it had been just now: too little may come back, never too much.
   */
  giveBack(rule: BucketRule, nowUs: number, cost: number, drainedAtUs: number, backUs: number): void {
    const left = drainedAtUs - (this.backUs - backUs) - nowUs - rule.lagUs;
    const given = Math.max(0, Math.min(cost, left));
    this.realUs -= given;
    this.backUs += given;
  }

  report(rule: BucketRule, nowUs: number, remaining: number, agoUs: number, chargedUs: number): void {
    let levelUs = Math.floor((remaining * MINUTE_US) / rule.perMinute);
    if (chargedUs >= 0) {
      if (chargedUs < this.reportedUs) return;
      this.reportedUs = chargedUs;
      levelUs += Math.max(0, agoUs - rule.lagUs) - (this.chargedUs - chargedUs);
    }
    this.realUs = Math.max(this.realUs, nowUs + rule.sizeUs - levelUs);
  }
}
