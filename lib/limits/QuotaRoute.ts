import type { RateLimitHints } from '../core/hints.ts';
import type { Cooldown } from './Cooldown.ts';
import type { LayerCost, QuotaLayer } from './QuotaLayer.ts';
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

export interface WaitBound {
  readonly code: 'queue_timeout' | 'timeout_deadline';
  readonly limitMs: number;
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
  readonly #reported: QuotaLayer | undefined;

  constructor(layers: readonly QuotaLayer[], cooldown: Cooldown, reported: QuotaLayer | undefined) {
    this.layers = layers;
    this.cooldown = cooldown;
    this.#reported = reported;
  }

  /** Room in the smallest layer within one minute: more can never pass as one attempt. */
  most(unit: keyof LayerCost): number {
    let most = Infinity;
    for (const layer of this.layers) most = Math.min(most, layer[unit]?.perMinute ?? Infinity);
    return most;
  }

  /** Whole milliseconds until the layers have room for `cost`, the cooldown aside. */
  layersWaitMs(nowMs: number, cost: LayerCost): number {
    let waitMs = 0;
    for (const layer of this.layers) waitMs = Math.max(waitMs, layer.waitMs(nowMs, cost));
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

  report(nowMs: number, hints: RateLimitHints, chargeOf: (layer: number) => Parameters<QuotaLayer['report']>[2]): void {
    if (this.#reported === undefined) return;
    this.#reported.report(nowMs, hints, chargeOf(this.layers.indexOf(this.#reported)));
  }
}
