import type { LayerSnapshot } from '../core/ports.ts';
import type { AdmissionTarget } from './AdmissionTarget.ts';
import type { MinuteBucket } from './MinuteBucket.ts';

const UNITS = ['requests', 'tokens'] as const;
const MINUTE_MS = 60_000;

/** How much of its rates a deployment had used up before they were changed. */
export class AdmissionStanding {
  /** Those that limited it. */
  readonly #buckets = new Set<MinuteBucket>();
  /** Of the emptiest of them, from 0 to 1. */
  #fullness = 1;

  constructor(target: AdmissionTarget, nowMs: number) {
    for (const bucket of limiting(target, nowMs)) {
      this.#buckets.add(bucket);
      this.#fullness = Math.max(0, Math.min(this.#fullness, bucket.level(nowMs) / bucket.burst));
    }
  }

  /**
   * A rate where there was none begins no fuller than what stood there: where a limit moves from one layer to another, the
   * provider's bucket is as empty as before.
   */
  carryTo(target: AdmissionTarget, nowMs: number): void {
    for (const bucket of limiting(target, nowMs)) {
      if (this.#buckets.has(bucket)) continue;
      const remaining = this.#fullness * bucket.burst;
      bucket.report(nowMs, { limit: undefined, remaining, resetMs: undefined, windowMs: MINUTE_MS }, undefined);
    }
  }
}

function limiting(target: AdmissionTarget, nowMs: number): MinuteBucket[] {
  const shown = target.snapshotLayers(nowMs);
  return target.layers.flatMap((layer, i) => {
    return UNITS.flatMap((unit) => (layer[unit] && (shown[i] as LayerSnapshot)[unit] ? [layer[unit]] : []));
  });
}
