import type { SharedBucket } from './SharedBucket.ts';

/** When it is somebody's turn. */
export interface QuotaTurn {
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
  #plan = 1;

  /** Forgets who was to have a turn. */
  begin(): void {
    this.#plan++;
  }

  /** When a bucket will be full, once everyone has had their turn. */
  plannedUs(bucket: SharedBucket): number {
    if (bucket.plan !== this.#plan) {
      bucket.plan = this.#plan;
      bucket.plannedUs = bucket.realUs;
      bucket.heldUs = 0;
    }
    return Math.max(bucket.plannedUs, bucket.realUs);
  }

  /** No earlier than `startUs`. */
  find(buckets: readonly SharedBucket[], requests: number, tokens: number, startUs: number): QuotaTurn {
    let atUs = startUs;
    const ready = new Map<string, number>();
    for (const bucket of buckets) {
      const cost = bucket.costUs(requests, tokens);
      const fullUs = this.plannedUs(bucket);
      const readyUs = Math.max(bucket.heldUs, cost > 0 ? fullUs - bucket.slackUs(cost) : 0);
      ready.set(bucket.layer, Math.max(ready.get(bucket.layer) ?? 0, readyUs));
      atUs = Math.max(atUs, readyUs);
    }
    return { atUs, ready };
  }

  take(
    nowUs: number,
    buckets: readonly SharedBucket[],
    requests: number,
    tokens: number,
    { atUs, ready }: QuotaTurn,
  ): void {
    for (const bucket of buckets) {
      if (atUs > nowUs && (ready.get(bucket.layer) ?? 0) < atUs) continue;
      const cost = bucket.costUs(requests, tokens);
      if (cost > 0) bucket.plannedUs = Math.max(this.plannedUs(bucket), atUs + bucket.lagUs) + cost;
      if (atUs > nowUs) bucket.heldUs = atUs;
    }
  }
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
