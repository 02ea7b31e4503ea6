import type { RateLimitHints } from '../core/hints.ts';
import type { Cooldown } from './Cooldown.ts';
import type { MinuteBucket } from './MinuteBucket.ts';
import type { LayerCost, QuotaLayer, SentAmong } from './QuotaLayer.ts';
import type { WaitBound } from './waitBound.ts';
import { WaitLine } from './WaitLine.ts';

/** A place in line. */
export interface QuotaTicket {
  readonly kind: 'ticket';
  readonly route: QuotaRoute;
  readonly cost: LayerCost;
  readonly enqueuedAtMs: number;
  /** When its wait ends without a grant. */
  readonly expiresAtMs: number;
  /** What bounds its wait. */
  readonly bound: WaitBound;
  /** Its place in the whole quota: a lower one came earlier. */
  readonly order: number;
  /** Place in line from 1, and the least wait, when it came. */
  readonly position: number;
  readonly foreseenMs: number;
}

/**
 * One way through a quota: the layers that an attempt takes its cost from, the cooldown that holds it, and the line of
 * those who wait for them. Routes may share layers and cooldowns.
 */
export class QuotaRoute {
  readonly layers: readonly QuotaLayer[];
  readonly cooldown: Cooldown;
  readonly line: WaitLine<QuotaTicket> = new WaitLine();
  /** Attempts that hold a reservation. */
  open = 0;
  /** The layer that the provider's reports are about: it knows nothing of limits that we made up. */
  readonly reported: QuotaLayer | undefined;
  // Those of all layers, as every call goes through each of them several times.
  readonly requests: readonly MinuteBucket[];
  readonly tokens: readonly MinuteBucket[];

  constructor(layers: readonly QuotaLayer[], cooldown: Cooldown, reported: QuotaLayer | undefined) {
    this.layers = layers;
    this.cooldown = cooldown;
    this.reported = reported;
    this.requests = layers.flatMap(({ requests }) => requests ?? []);
    this.tokens = layers.flatMap(({ tokens }) => tokens ?? []);
  }

  /** Room in the smallest layer within one minute: more can never pass as one attempt. */
  most(unit: keyof LayerCost): number {
    let most = Infinity;
    for (const { perMinute } of this[unit]) most = Math.min(most, perMinute);
    return most;
  }

  /** `cost`, as far as it can ever pass as one attempt. */
  clamped(cost: LayerCost): LayerCost {
    const requests = Math.min(cost.requests, this.most('requests'));
    const tokens = Math.min(cost.tokens, this.most('tokens'));
    return requests === cost.requests && tokens === cost.tokens ? cost : { requests, tokens };
  }

  /** Whole milliseconds until the layers have room for `cost`, the cooldown aside. */
  layersWaitMs(nowMs: number, { requests, tokens }: LayerCost): number {
    let waitMs = 0;
    for (const bucket of this.requests) waitMs = Math.max(waitMs, bucket.waitMs(nowMs, requests));
    for (const bucket of this.tokens) waitMs = Math.max(waitMs, bucket.waitMs(nowMs, tokens));
    return waitMs;
  }

  /** At least this long until `cost` can pass behind `ahead`, as far as it can be foreseen. */
  foreseenMs(nowMs: number, ahead: LayerCost, cost: LayerCost, refundable: boolean): number {
    let waitMs = this.cooldown.certainMs(nowMs);
    for (const layer of this.layers) {
      waitMs = Math.max(waitMs, layer.waitBehindMs(nowMs, ahead, cost, refundable));
    }
    return waitMs;
  }

  /** Without `sent`: of now. */
  report(nowMs: number, hints: RateLimitHints, sent: SentAmong | undefined): void {
    this.reported?.report(nowMs, hints, sent);
  }
}
