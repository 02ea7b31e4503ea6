import type { AdmissionPool, AdmissionTicket } from './AdmissionPool.ts';
import type { AdmissionTarget } from './AdmissionTarget.ts';
import type { AdmissionTenant, AdmissionTenants } from './AdmissionTenant.ts';
import { bestFirst } from './bestFirst.ts';
import type { QuotaLayer } from './QuotaLayer.ts';

export interface ChoiceRules {
  /** Slots of `maxInFlight` that are free, at least 1. */
  readonly free: number;
  readonly passShare: number;
  readonly levelFull: (level: number) => boolean;
}

export type Choice =
  | {
      readonly kind: 'go';
      readonly ticket: AdmissionTicket;
      /** Where it may go, the best first. Their breakers have not been asked. */
      readonly targets: readonly AdmissionTarget[];
      /** Those that it passes by going there. */
      readonly passes: (target: AdmissionTarget) => readonly AdmissionTicket[];
    }
  | { readonly kind: 'wait'; readonly untilMs: number };

/**
 * Who goes next, and where:
 *
 * 1. Where no more slots are free than tenants below their reserve could claim: one of those.
 * 2. Priorities in order, an aged one in every eighth turn.
 * 3. Within a priority the tenant with the lowest tag, within a tenant the one that came first.
 * 4. Where there is no room for one because of its tokens, smaller ones may pass until they have taken `passShare` of its
 *    tokens, and none ahead of its tenant's share; from then on what comes in is kept for it.
 *
 * Between models the same rules hold, by the first one of each.
 */
export function chooseNext(
  nowMs: number,
  pools: readonly AdmissionPool[],
  tenants: AdmissionTenants,
  rules: ChoiceRules,
): Choice {
  if (rules.free <= tenants.owedSlots) {
    const owed = chooseOwed(nowMs, pools, tenants, rules);
    if (owed) return owed;
  }
  const search = new Search(nowMs, rules.passShare);
  for (const candidates of inOrder(nowMs, pools, tenants, rules)) {
    let front = true;
    for (const ticket of candidates) {
      const choice = search.try(ticket, front);
      if (choice) return choice;
      front = false;
    }
  }
  return { kind: 'wait', untilMs: Math.min(search.untilMs, tenants.nextWakeAtMs) };
}

/** A reserve is owed whatever the priority, but not above the ceiling of one. */
function chooseOwed(
  nowMs: number,
  pools: readonly AdmissionPool[],
  tenants: AdmissionTenants,
  rules: ChoiceRules,
): Choice | undefined {
  for (const tenant of tenants.owed) {
    const search = new Search(nowMs, rules.passShare);
    for (const pool of pools) {
      for (const level of pool.levels(nowMs)) {
        if (rules.levelFull(level)) continue;
        for (const ticket of (pool.queues[level] as AdmissionPool['queues'][number]).headsOf(tenant.name)) {
          if (tenants.blockedMs(tenant, ticket.cost, nowMs) > 0) continue;
          const choice = search.try(ticket, false);
          if (choice) return choice;
        }
      }
    }
  }
  return undefined;
}

/** Of each model those who may go but for what the model lacks; the models by their first ones. */
function inOrder(
  nowMs: number,
  pools: readonly AdmissionPool[],
  tenants: AdmissionTenants,
  rules: ChoiceRules,
): AdmissionTicket[][] {
  const views: { readonly candidates: AdmissionTicket[]; readonly rank: number; readonly from: AdmissionTenant }[] = [];
  for (const pool of pools) {
    const candidates: AdmissionTicket[] = [];
    let rank = 0;
    for (const level of pool.levels(nowMs)) {
      if (rules.levelFull(level)) continue;
      const queue = pool.queues[level] as AdmissionPool['queues'][number];
      const found = queue.candidates(({ from, cost }) => {
        const blockedMs = tenants.blockedMs(from, cost, nowMs);
        if (blockedMs > 0) tenants.park(from, queue, nowMs + blockedMs);
        else if (pool.waitsAlone(from.name)) tenants.park(from, queue, Infinity);
        else return false;
        return true;
      });
      // One whose turn it is ranks with the first.
      if (candidates.length === 0) rank = pool.hasTurn(level, nowMs) ? 0 : level;
      candidates.push(...found);
    }
    const [first] = candidates;
    if (first) views.push({ candidates, rank, from: first.from });
  }
  // Stryker disable next-line ConditionalExpression,EqualityOperator: nothing is made for one alone
  if (views.length > 1)
    views.sort((a, b) => {
      const [first, second] = [a.candidates[0] as AdmissionTicket, b.candidates[0] as AdmissionTicket];
      return a.rank - b.rank || a.from.tag - b.from.tag || first.order - second.order;
    });
  return views.map(({ candidates }) => candidates);
}

/** Goes through candidates in their order, and keeps for those at the front what they wait for. */
class Search {
  untilMs = Infinity;
  readonly #nowMs: number;
  readonly #passShare: number;
  /** Who waits for tokens of a layer. */
  readonly #holders = new Map<QuotaLayer, AdmissionTicket>();

  constructor(nowMs: number, passShare: number) {
    this.#nowMs = nowMs;
    this.#passShare = passShare;
  }

  try(ticket: AdmissionTicket, front: boolean): Choice | undefined {
    // Stryker disable next-line ConditionalExpression,EqualityOperator: nobody is asked where nobody holds anything
    const held = this.#holders.size > 0;
    const mayTake = (layer: QuotaLayer, tokens: number): boolean => this.#mayTake(ticket, layer, tokens);
    const { targets, waitMs, soonest } = ticket.pool.fit(this.#nowMs, ticket, held ? mayTake : undefined);
    if (targets.length > 0) {
      const passes = held ? (target: AdmissionTarget) => this.#holdersOf(target) : passesNobody;
      return { kind: 'go', ticket, targets: bestFirst(this.#nowMs, targets), passes };
    }
    this.untilMs = Math.min(this.untilMs, this.#nowMs + waitMs);
    if (front && soonest) this.#hold(ticket, soonest);
    return undefined;
  }

  #mayTake(ticket: AdmissionTicket, layer: QuotaLayer, tokens: number): boolean {
    const holder = this.#holders.get(layer);
    if (holder === undefined) return true;
    return holder.passed + tokens <= this.#passShare * holder.cost.tokens && mayPass(ticket, holder);
  }

  #hold(ticket: AdmissionTicket, target: AdmissionTarget): void {
    const { requests, tokens } = target.costOf(ticket.cost);
    for (const layer of target.layers) {
      if (this.#holders.has(layer)) continue;
      const short =
        layer.waitMs(this.#nowMs, { requests: 0, tokens }) > layer.waitMs(this.#nowMs, { requests, tokens: 0 });
      if (short) this.#holders.set(layer, ticket);
    }
  }

  #holdersOf(target: AdmissionTarget): readonly AdmissionTicket[] {
    const passed = new Set<AdmissionTicket>();
    for (const layer of target.layers) {
      const holder = this.#holders.get(layer);
      if (holder) passed.add(holder);
    }
    return [...passed];
  }
}

const passesNobody = (): readonly AdmissionTicket[] => [];

/** Smaller ones fit sooner: without this a tenant would get more for sending small requests. */
function mayPass(ticket: AdmissionTicket, holder: AdmissionTicket): boolean {
  const queue = ticket.pool.queueOf(ticket);
  return queue !== holder.pool.queueOf(holder) || queue.finishOf(ticket) <= queue.finishOf(holder);
}
