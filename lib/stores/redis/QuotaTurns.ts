import type { BucketPlan, SharedBucket } from './SharedBucket.ts';

/** When it is somebody's turn. */
export interface QuotaTurn {
  readonly plan: number;
  readonly atUs: number;
  /** When there is room in each of its layers. */
  readonly ready: ReadonlyMap<string, number>;
}

/**
 * Plans when it will be whose turn: the time at which all buckets have room for it, after all who came earlier and wait for
 * one of them. `quotaLine.lua` holds the same; change both.
 *
 * Only in the layer that one waits longest for nobody may pass it, as in limits/Quota: the rest would lie idle meanwhile.
 */
export class QuotaTurns {
  #plan = 2;

  /** The last plan that was finished. */
  get last(): number {
    return this.#plan;
  }

  /** The one that is being made. */
  get next(): number {
    return this.#plan + 1;
  }

  /** The next one is made. */
  finish(): void {
    this.#plan++;
  }

  /** Forgets who was to have a turn, in both. */
  begin(): void {
    this.#plan += 2;
  }

  /** When a bucket will be full, once everyone has had their turn. */
  plannedUs(plan: number, bucket: SharedBucket): number {
    return Math.max(planOf(plan, bucket).fullUs, bucket.realUs);
  }

  /** No earlier than `startUs`. */
  find(plan: number, buckets: readonly SharedBucket[], requests: number, tokens: number, startUs: number): QuotaTurn {
    let atUs = startUs;
    const ready = new Map<string, number>();
    for (const bucket of buckets) {
      const cost = bucket.costUs(requests, tokens);
      const fullUs = this.plannedUs(plan, bucket);
      const readyUs = Math.max(planOf(plan, bucket).heldUs, cost > 0 ? fullUs - bucket.slackUs(cost) : 0);
      ready.set(bucket.layer, Math.max(ready.get(bucket.layer) ?? 0, readyUs));
      atUs = Math.max(atUs, readyUs);
    }
    return { plan, atUs, ready };
  }

  take(
    nowUs: number,
    buckets: readonly SharedBucket[],
    requests: number,
    tokens: number,
    { plan, atUs, ready }: QuotaTurn,
  ): void {
    for (const bucket of buckets) {
      if (atUs > nowUs && (ready.get(bucket.layer) ?? 0) < atUs) continue;
      const cost = bucket.costUs(requests, tokens);
      const planned = planOf(plan, bucket);
      if (cost > 0) planned.fullUs = Math.max(this.plannedUs(plan, bucket), atUs + bucket.lagUs) + cost;
      if (atUs > nowUs) planned.heldUs = atUs;
    }
  }
}

/** What another plan says of a bucket says nothing. */
function planOf(plan: number, bucket: SharedBucket): BucketPlan {
  const planned = bucket.planned[plan % 2] as BucketPlan;
  if (planned.plan !== plan) Object.assign(planned, { plan, fullUs: bucket.realUs, heldUs: 0 });
  return planned;
}

/** When there is room in every bucket, as they are. */
export function roomUs(buckets: readonly SharedBucket[], requests: number, tokens: number): number {
  let room = 0;
  for (const bucket of buckets) {
    const cost = bucket.costUs(requests, tokens);
    if (cost > 0) room = Math.max(room, bucket.realUs - bucket.slackUs(cost));
  }
  return room;
}
