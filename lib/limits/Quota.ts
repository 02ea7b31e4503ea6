import type { Cost } from '../core/ports.ts';
import { NOTHING } from './QuotaLayer.ts';
import type { LayerCost, QuotaLayer } from './QuotaLayer.ts';
import type { CheckedQuotaRules } from './QuotaOptions.ts';
import { QuotaReservation } from './QuotaReservation.ts';
import type { QuotaRoute, QuotaTicket } from './QuotaRoute.ts';
import { waitBound } from './waitBound.ts';
import type { WaitBound, WaitLimits } from './waitBound.ts';

export interface QuotaRefusal {
  readonly kind: 'refused';
  readonly code: 'cost_too_large' | 'queue_full' | 'queue_timeout' | 'timeout_deadline';
  /** How long until the same request could have passed, as far as that can be foreseen. */
  readonly retryAfterMs: number | undefined;
  /** The bound that was met: requests or tokens for `cost_too_large`, requests for `queue_full`, else milliseconds. */
  readonly limit: number;
  readonly requested: number | undefined;
  readonly unit: 'requests' | 'tokens' | 'ms';
}

/** `maxWaitMs`: default is the quota's own bound. */
export interface QuotaAsk extends WaitLimits {
  readonly cost: Cost;
}

export type QuotaStep =
  /** The ticket has left the line; whoever gets the reservation must release it. Ask again at once. */
  | { readonly kind: 'granted'; readonly ticket: QuotaTicket; readonly reservation: QuotaReservation }
  /** The ticket has left the line: its wait is over, or cannot end in time any more. Ask again at once. */
  | { readonly kind: 'expired'; readonly ticket: QuotaTicket; readonly refusal: QuotaRefusal }
  /** Nothing to do before that time, unless something is given back. `Infinity`: nobody waits. */
  | { readonly kind: 'wait'; readonly untilMs: number };

/**
 * Layered buckets with a line before them. It decides and never acts: no timers, no I/O; times are passed in. A request
 * takes its cost from every layer of its route or from none.
 *
 * First come, first served without barging: nobody takes what an earlier one waits for. On routes that share a layer the
 * same holds for that layer, while one that waits for a layer of its own does not hold up the others.
 *
 * Joining, leaving and granting are O(log n) in those who wait, and linear in the routes that have someone waiting.
 */
export class Quota {
  readonly rules: CheckedQuotaRules;
  /** Routes on which someone waits, by who waits longest. */
  readonly #busy: QuotaRoute[] = [];
  #waiting = 0;
  #order = 0;

  constructor(rules: CheckedQuotaRules) {
    this.rules = rules;
  }

  get waiting(): number {
    return this.#waiting;
  }

  /** Takes a place in line, or refuses where it is known that the wait cannot end in time. Grants come from `next`. */
  enqueue(nowMs: number, route: QuotaRoute, ask: QuotaAsk): QuotaTicket | QuotaRefusal {
    return this.#enter(nowMs, route, ask, false) as QuotaTicket | QuotaRefusal;
  }

  /**
   * As {@link enqueue}, but where nobody waits and there is room, the reservation that `next` would grant, without a place
   * in line.
   */
  take(nowMs: number, route: QuotaRoute, ask: QuotaAsk): QuotaReservation | QuotaTicket | QuotaRefusal {
    return this.#enter(nowMs, route, ask, true);
  }

  #enter(
    nowMs: number,
    route: QuotaRoute,
    ask: QuotaAsk,
    atOnce: boolean,
  ): QuotaReservation | QuotaTicket | QuotaRefusal {
    const cost = { requests: ask.cost.requests, tokens: ask.cost.tokens };
    for (const unit of ['requests', 'tokens'] as const) {
      const limit = route.most(unit);
      if (cost[unit] <= limit) continue;
      if (ask.cost.explicit) {
        const retryAfterMs = undefined;
        return { kind: 'refused', code: 'cost_too_large', retryAfterMs, limit, requested: cost[unit], unit };
      }
      cost[unit] = limit;
    }
    const bound = waitBound(ask, this.rules.maxWaitMs, nowMs);
    if (atOnce && this.#waiting === 0 && bound.limitMs >= 0 && !this.#mustWait(nowMs, route, cost)) {
      return new QuotaReservation(nowMs, route, cost, this.rules);
    }
    const { maxWaiting, settle } = this.rules;
    const foreseenMs = route.foreseenMs(nowMs, route.line.cost, cost, settle === 'usage');
    if (this.#waiting >= maxWaiting && this.#mustWait(nowMs, route, cost)) {
      const waitMs = Math.max(foreseenMs, route.layersWaitMs(nowMs, cost), 1);
      return {
        kind: 'refused',
        code: 'queue_full',
        retryAfterMs: waitMs,
        limit: maxWaiting,
        requested: undefined,
        unit: 'requests',
      };
    }
    if (foreseenMs > bound.limitMs) return refusedBy(bound, foreseenMs);
    const ticket: QuotaTicket = {
      kind: 'ticket',
      route,
      cost,
      enqueuedAtMs: nowMs,
      expiresAtMs: nowMs + bound.limitMs,
      bound,
      order: this.#order++,
      position: route.line.size + 1,
      foreseenMs,
    };
    route.line.join(ticket);
    this.#waiting++;
    if (route.line.size === 1) this.#busy.push(route);
    return ticket;
  }

  /** Leaves the line. Whether it was still in it. */
  cancel(ticket: QuotaTicket): boolean {
    const { route } = ticket;
    // Stryker disable next-line ConditionalExpression: a place that was right is found again, by a search
    const wasHead = route.line.head() === ticket;
    if (!route.line.leave(ticket)) return false;
    this.#waiting--;
    // Stryker disable next-line ConditionalExpression: as above
    if (wasHead) this.#place(route);
    return true;
  }

  /** The next thing to do. Call it until it says `wait`, and again whenever something was given back or has changed. */
  next(nowMs: number): QuotaStep {
    const held = new Set<QuotaLayer>();
    let untilMs = Infinity;
    for (const route of this.#busy) {
      const head = headOf(route);
      let leastMs = 0;
      // Someone who came earlier waits for one of its layers.
      const behind = route.layers.some((layer) => held.has(layer));
      if (!behind) {
        const waitMs = Math.max(route.cooldown.waitMs(nowMs), route.layersWaitMs(nowMs, head.cost));
        if (waitMs === 0) return this.#grant(nowMs, head);
        untilMs = Math.min(untilMs, nowMs + waitMs);
        // Only what it waits longest for is kept for it: the rest would lie idle meanwhile.
        for (const layer of route.layers) if (layer.waitMs(nowMs, head.cost) === waitMs) held.add(layer);
        leastMs = route.foreseenMs(nowMs, NOTHING, head.cost, this.rules.settle === 'usage');
      }
      const first = route.line.firstToExpire();
      if (first === undefined) continue;
      // Nobody on this route goes before its head does.
      if (first.expiresAtMs < nowMs + leastMs || first.expiresAtMs <= nowMs) return this.#expire(nowMs, first, leastMs);
      untilMs = Math.min(untilMs, first.expiresAtMs);
    }
    return { kind: 'wait', untilMs };
  }

  #grant(nowMs: number, ticket: QuotaTicket): QuotaStep {
    this.cancel(ticket);
    const reservation = new QuotaReservation(nowMs, ticket.route, ticket.cost, this.rules);
    return { kind: 'granted', ticket, reservation };
  }

  #expire(nowMs: number, ticket: QuotaTicket, leastMs: number): QuotaStep {
    this.cancel(ticket);
    const ownMs = ticket.route.foreseenMs(nowMs, NOTHING, ticket.cost, false);
    return { kind: 'expired', ticket, refusal: refusedBy(ticket.bound, Math.max(leastMs, ownMs, 1)) };
  }

  #mustWait(nowMs: number, route: QuotaRoute, cost: LayerCost): boolean {
    return route.line.size > 0 || route.cooldown.waitMs(nowMs) > 0 || route.layersWaitMs(nowMs, cost) > 0;
  }

  /** Puts a route where its head belongs. */
  #place(route: QuotaRoute): void {
    const busy = this.#busy;
    busy.splice(busy.indexOf(route), 1);
    if (route.line.size === 0) return;
    // No sort: with a tenant for each route there may be very many, and each grant comes by here.
    const { order } = headOf(route);
    let low = 0;
    let high = busy.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      // Stryker disable next-line EqualityOperator: no two have one order
      if (headOf(busy[middle] as QuotaRoute).order < order) low = middle + 1;
      else high = middle;
    }
    busy.splice(low, 0, route);
  }
}

function headOf(busy: QuotaRoute): QuotaTicket {
  return busy.line.head() as QuotaTicket;
}

function refusedBy(bound: WaitBound, waitMs: number): QuotaRefusal {
  const { code, limitMs } = bound;
  return { kind: 'refused', code, retryAfterMs: waitMs, limit: Math.max(0, limitMs), requested: undefined, unit: 'ms' };
}
