import { Heap } from '../core/Heap.ts';
import type { HeapNode } from '../core/Heap.ts';
import type { CheckedAdmissionRules } from './AdmissionOptions.ts';
import type { AdmissionTarget } from './AdmissionTarget.ts';
import type { AdmissionTenant } from './AdmissionTenant.ts';
import { bestFirst } from './bestFirst.ts';
import { FairQueue } from './FairQueue.ts';
import { joinedQueues } from './joinedQueues.ts';
import type { LayerCost, QuotaLayer } from './QuotaLayer.ts';
import { SlidingSums } from './SlidingSums.ts';
import type { WaitBound } from './waitBound.ts';

/** A place in the queue. A class, as every call has one: its weight is looked up without a function of its own. */
export class AdmissionTicket {
  readonly kind = 'ticket';
  readonly pool: AdmissionPool;
  readonly from: AdmissionTenant;
  /** Index of its priority, 0 the most urgent. */
  level: number;
  readonly cost: LayerCost;
  readonly order: number;
  readonly enqueuedAtMs: number;
  /** When its wait ends without a grant. */
  readonly expiresAtMs: number;
  readonly bound: WaitBound;
  /** How many waited for the model, itself among them, and the least wait, when it came. */
  readonly position: number;
  readonly foreseenMs: number;
  /** Tokens that went to later ones while it was too large for what there was. */
  passed = 0;
  expiry: HeapNode<AdmissionTicket> | undefined;
  /** Kept for whoever asked; a map beside it would cost every call more. */
  owner: unknown;

  constructor(
    pool: AdmissionPool,
    from: AdmissionTenant,
    level: number,
    cost: LayerCost,
    order: number,
    nowMs: number,
    bound: WaitBound,
    foreseenMs: number,
  ) {
    this.pool = pool;
    this.from = from;
    this.level = level;
    this.cost = { requests: cost.requests, tokens: cost.tokens };
    this.order = order;
    this.enqueuedAtMs = nowMs;
    // One that may not wait is granted in this very tick: what is due at its end would be refused before that.
    this.expiresAtMs = nowMs + Math.max(1, bound.limitMs);
    this.bound = bound;
    this.position = pool.waiting + 1;
    this.foreseenMs = foreseenMs;
    this.expiry = undefined;
    this.owner = undefined;
  }

  get tenant(): string {
    return this.from.name;
  }

  get weight(): number {
    return this.from.rules.weight;
  }
}

/** Where a waiter could go. */
export interface Fit {
  /** Those that have room for it now. */
  readonly targets: readonly AdmissionTarget[];
  /** Until there is room, unless something is given back before. */
  readonly waitMs: number;
  /** The one that will have room first. */
  readonly soonest: AdmissionTarget | undefined;
}

/** Of so many turns an aged priority gets one. */
export const AGED_TURN = 8;
/** What was learned in use, such as a rate, a limit or failures, is worth nothing after so long without any. */
const STALE_MS = 600_000;
const RATE_OVER_MS = 30_000;
const UNKNOWN_RETRY_MS = 1000;
const LONGEST_RETRY_MS = 60_000;

/** Those who wait for one model, and the deployments that serve it. */
export class AdmissionPool {
  #targets: readonly AdmissionTarget[];
  #layer: QuotaLayer | undefined;
  #queues: readonly FairQueue<AdmissionTicket>[];
  #ageingMs: number;
  // Stryker disable next-line EqualityOperator: waits that are over at one time end together
  readonly #expiring = new Heap<AdmissionTicket>((a, b) => a.expiresAtMs < b.expiresAtMs);
  /** For each priority: turns of more urgent ones since it has aged. */
  #overtaken: number[];
  readonly #granted = new SlidingSums(RATE_OVER_MS);
  #waiting = 0;
  #usedAtMs = -Infinity;

  /** `layer`: that of the model, over all its deployments. */
  constructor(
    targets: readonly AdmissionTarget[],
    layer: QuotaLayer | undefined,
    { levels, ageingMs }: Pick<CheckedAdmissionRules, 'levels' | 'ageingMs'>,
  ) {
    this.#targets = targets;
    this.#layer = layer;
    this.#queues = levels.map(() => new FairQueue<AdmissionTicket>());
    this.#ageingMs = ageingMs;
    this.#overtaken = levels.map(() => 0);
  }

  get targets(): readonly AdmissionTarget[] {
    return this.#targets;
  }

  get layer(): QuotaLayer | undefined {
    return this.#layer;
  }

  /** One for each priority. */
  get queues(): readonly FairQueue<AdmissionTicket>[] {
    return this.#queues;
  }

  /** It is served there from now on. */
  serveAt(targets: readonly AdmissionTarget[], layer: QuotaLayer | undefined): void {
    this.#targets = targets;
    this.#layer = layer;
  }

  /** Takes other rules, after the tenants have theirs. `moved`: where each priority stands now. */
  reload({ levels, ageingMs }: Pick<CheckedAdmissionRules, 'levels' | 'ageingMs'>, moved: readonly number[]): void {
    this.#ageingMs = ageingMs;
    this.#overtaken = levels.map((_, level) => this.#overtaken[moved.indexOf(level)] ?? 0);
    this.#queues = levels.map((_, level) => joinedQueues(this.#queues.filter((__, before) => moved[before] === level)));
    this.#queues.forEach((queue, level) => {
      for (const ticket of queue.waiters()) ticket.level = level;
      queue.reweigh();
    });
  }

  /** Whether nothing would be lost if it were forgotten, but for what was learned long ago. */
  forgettable(nowMs: number): boolean {
    if (this.#waiting > 0 || !(this.#layer?.atRest(nowMs) ?? true)) return false;
    const stale = nowMs - this.#usedAtMs >= STALE_MS;
    return this.#targets.every((target) => target.forgettable(nowMs, stale));
  }

  get waiting(): number {
    return this.#waiting;
  }

  queueOf({ level }: Pick<AdmissionTicket, 'level'>): FairQueue<AdmissionTicket> {
    return this.#queues[level] as FairQueue<AdmissionTicket>;
  }

  join(ticket: AdmissionTicket): void {
    this.queueOf(ticket).join(ticket);
    if (ticket.expiresAtMs < Infinity) ticket.expiry = this.#expiring.push(ticket);
    this.#waiting++;
    this.#usedAtMs = ticket.enqueuedAtMs;
  }

  /** Whether it was still waiting. */
  leave(ticket: AdmissionTicket): boolean {
    if (!this.queueOf(ticket).leave(ticket)) return false;
    this.#left(ticket);
    return true;
  }

  take(ticket: AdmissionTicket, nowMs: number, ceilings: (level: number) => boolean): void {
    for (let level = ticket.level + 1; level < this.#queues.length; level++) {
      if (this.#aged(level, nowMs) && !ceilings(level)) this.#overtaken[level] = (this.#overtaken[level] as number) + 1;
    }
    this.queueOf(ticket).take(ticket);
    this.#left(ticket);
    this.#pass(nowMs, ticket.level);
  }

  firstToExpire(): AdmissionTicket | undefined {
    return this.#expiring.peek();
  }

  /** The one who waits longest, the most urgent first. */
  oldest(): AdmissionTicket | undefined {
    return this.#queues.find(({ size }) => size > 0)?.oldest();
  }

  /** Priorities in the order in which they have their turn now. */
  levels(nowMs: number): number[] {
    const order: number[] = [];
    for (let level = 0; level < this.#queues.length; level++)
      if ((this.#queues[level] as FairQueue<AdmissionTicket>).size > 0) order.push(level);
    // Stryker disable next-line ConditionalExpression,EqualityOperator: nothing is made for one alone
    if (order.length < 2) return order;
    return order.sort((a, b) => this.#turn(b, nowMs) - this.#turn(a, nowMs));
  }

  /** Whether an aged priority goes before more urgent ones now. */
  hasTurn(level: number, nowMs: number): boolean {
    return this.#turn(level, nowMs) > 0;
  }

  /** Until one of its deployments can be asked. */
  unavailableMs(nowMs: number): number {
    let leastMs = Infinity;
    for (const target of this.#targets) leastMs = Math.min(leastMs, target.unavailableMs(nowMs));
    return leastMs;
  }

  /** No attempt of this cost or more can go before this long. */
  foreseenMs(nowMs: number, ahead: LayerCost, cost: LayerCost): number {
    let leastMs = Infinity;
    const alone = this.#targets.length === 1;
    for (const target of this.#targets) {
      if (target.unavailableMs(nowMs) > 0) continue;
      leastMs = Math.min(leastMs, target.foreseenMs(nowMs, ahead, cost, alone));
    }
    return leastMs;
  }

  /** Whether the tenant waits everywhere for something of its own, which somebody else will tell of. */
  waitsAlone(tenant: string): boolean {
    return this.#targets.every((target) => target.waitsAlone(tenant));
  }

  /** Whether one of this cost may go where nobody waits, and all is decided here and no breaker other than closed. */
  hasRoom(nowMs: number, cost: LayerCost): boolean {
    let room = false;
    for (const target of this.#targets) {
      if (target.gate !== undefined || target.breaker.state !== 'closed') return false;
      room ||= target.hasRoom(nowMs, target.costOf(cost));
    }
    return room;
  }

  /** Where one goes that {@link hasRoom} is for. It counts as gone. */
  passNow(nowMs: number, level: number, asked: Pick<AdmissionTicket, 'cost' | 'tenant'>): AdmissionTarget {
    // Stryker disable next-line ConditionalExpression: nothing is looked at twice where there is one
    const able = this.#targets.length === 1 ? this.#targets : bestFirst(nowMs, this.fit(nowMs, asked).targets);
    const target = able[0] as AdmissionTarget;
    // Nobody waits for its rate, as `fit` would say.
    target.learned.advance(nowMs, 0, 0);
    this.#pass(nowMs, level);
    return target;
  }

  /** `mayTake`: whether nobody who waits for that layer is entitled to the tokens. Without it nobody is. */
  fit(
    nowMs: number,
    { cost, tenant }: Pick<AdmissionTicket, 'cost' | 'tenant'>,
    mayTake?: (layer: QuotaLayer, tokens: number) => boolean,
  ): Fit {
    const targets: AdmissionTarget[] = [];
    let waitMs = Infinity;
    let soonest: AdmissionTarget | undefined;
    for (const target of this.#targets) {
      const unavailableMs = target.unavailableMs(nowMs);
      const costThere = target.costOf(cost);
      const closed = target.full || !target.lets(tenant, costThere);
      const thereMs = Math.max(unavailableMs, closed ? Infinity : target.waitMs(nowMs, costThere));
      if (thereMs > 0) {
        if (thereMs < waitMs) [waitMs, soonest] = [thereMs, target];
      } else if (!mayTake || target.layers.every((layer) => mayTake(layer, costThere.tokens))) targets.push(target);
    }
    return { targets, waitMs, soonest };
  }

  /** A guess from how fast the queue has moved of late, no less than `leastMs`. */
  retryAfterMs(nowMs: number, leastMs: number): number {
    const granted = this.#granted.first(nowMs);
    const guessMs = granted > 0 ? ((this.#waiting + 1) * RATE_OVER_MS) / granted : UNKNOWN_RETRY_MS;
    return Math.ceil(Math.max(1, leastMs, Math.min(LONGEST_RETRY_MS, this.#waiting > 0 ? guessMs : 1)));
  }

  #pass(nowMs: number, level: number): void {
    this.#overtaken[level] = 0;
    this.#granted.add(nowMs, 1, 0);
    this.#usedAtMs = nowMs;
  }

  #left(ticket: AdmissionTicket): void {
    if (ticket.expiry) this.#expiring.remove(ticket.expiry);
    this.#waiting--;
  }

  #turn(level: number, nowMs: number): number {
    const overtaken = this.#overtaken[level] as number;
    return overtaken >= AGED_TURN - 1 && this.#aged(level, nowMs) ? overtaken : 0;
  }

  #aged(level: number, nowMs: number): boolean {
    const oldest = (this.#queues[level] as FairQueue<AdmissionTicket>).oldest();
    return oldest !== undefined && nowMs - oldest.enqueuedAtMs >= level * this.#ageingMs;
  }
}
