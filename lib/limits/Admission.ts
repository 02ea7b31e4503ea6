import { zeroOrInfinity, zeroOrMore } from '../core/checks.ts';
import type { Cost } from '../core/ports.ts';
import type { Clock } from '../core/runtime.ts';
import { AdmissionGrant, revoked } from './AdmissionGrant.ts';
import type { AdmissionEnd, TargetChange } from './AdmissionGrant.ts';
import { queueFull, refusedBy, tooLargeFor, unavailable } from './admissionRefusals.ts';
import type { AdmissionRefusal } from './admissionRefusals.ts';
import { AdmissionLevels } from './AdmissionLevels.ts';
import { checkedAdmissionRules } from './AdmissionOptions.ts';
import type { AdmissionOptions, CheckedAdmissionRules } from './AdmissionOptions.ts';
import { AdmissionTicket } from './AdmissionPool.ts';
import type { AdmissionPool } from './AdmissionPool.ts';
import type { AdmissionAsk, AdmissionStep } from './AdmissionStep.ts';
import { AdmissionTargets } from './AdmissionTargets.ts';
import { AdmissionTenants, clampTo } from './AdmissionTenant.ts';
import type { AdmissionTenant } from './AdmissionTenant.ts';
import { chooseNext } from './chooseNext.ts';
import type { Choice } from './chooseNext.ts';
import { QuotaReservation } from './QuotaReservation.ts';
import type { WaitBound } from './QuotaRoute.ts';
import type { Outcome } from '../core/outcome.ts';

/**
 * Breaker, cooldown, every layer of the quota and the slots of deployment, tenant, priority and of all, in one step: a
 * call is granted all of it together, in the tick in which it is sent, or nothing. It decides and never acts: no timers,
 * no I/O.
 *
 * Who goes next: `chooseNext`. Who may wait: whoever is not refused on entry, because every deployment of the model has its
 * breaker open, the queue is full, or the wait is known not to end in time.
 *
 * Each operation is O(log n) in those who wait, and linear in the models for which someone waits.
 */
export class Admission {
  readonly #clock: Pick<Clock, 'now'>;
  readonly #targets: AdmissionTargets;
  readonly #tenants: AdmissionTenants;
  /** What the priorities have in flight, and what they may have. */
  readonly levels: AdmissionLevels;
  readonly #random: () => number;
  /** What is in flight. */
  readonly #held = new Map<AdmissionGrant, AdmissionTicket>();
  /** Have had to make room for more urgent ones. */
  readonly #evicted: AdmissionTicket[] = [];
  /** What this process may have of `maxInFlight`. */
  lent: number = Infinity;
  #rules: CheckedAdmissionRules;
  #waiting = 0;
  #order = 0;

  /** @throws SluiceError `invalid_option` */
  constructor(options: AdmissionOptions, clock: Pick<Clock, 'now'>, random: () => number) {
    this.#rules = checkedAdmissionRules(options);
    this.#clock = clock;
    this.#random = random;
    this.#targets = new AdmissionTargets(options, this.#rules, clock, random);
    this.#tenants = new AdmissionTenants(options.tenants, clock.now());
    this.levels = new AdmissionLevels(this.#rules.levels);
  }

  /**
   * Takes other options, and goes on from where everything is.
   *
   * - What is in flight stays in every count, and is given back there. A lower ceiling takes nothing back.
   * - Those who wait keep their places, and the bounds on their wait; the new limits hold for them as for newcomers. Call
   *   {@link next} afterwards. A priority that is gone: see `AdmissionLevels.reload`.
   * - Buckets keep their levels and debts, as far as they fit. A rate where there was none begins no fuller than what stood
   *   there. Cooldowns, breakers and exhausted accounts stay as they are, adaptive limits too as far as they lie within
   *   their new bounds, learned rates where what is configured has not changed.
   * - A deployment is the same one if its client and its name there are.
   *
   * @throws SluiceError `invalid_option`; then nothing has changed.
   */
  reload(options: AdmissionOptions): void {
    new Admission(options, this.#clock, this.#random);
    const nowMs = this.#clock.now();
    this.#rules = checkedAdmissionRules(options);
    const moved = this.levels.reload(this.#rules.levels);
    for (const ticket of this.#held.values()) ticket.level = moved[ticket.level] as number;
    this.#targets.reload(options, this.#rules, nowMs);
    this.#tenants.reload(options.tenants, this.#targets.arrivalMarginMs, nowMs);
    for (const pool of this.#targets.pools.values()) pool.reload(this.#rules, moved);
  }

  get rules(): CheckedAdmissionRules {
    return this.#rules;
  }

  get inFlight(): number {
    return this.#held.size;
  }

  get waiting(): number {
    return this.#waiting;
  }

  get tenants(): AdmissionTenants {
    return this.#tenants;
  }

  get pools(): ReadonlyMap<string, AdmissionPool> {
    return this.#targets.pools;
  }

  /** That of a model, made if it was not there. @throws SluiceError `invalid_option` for an empty name */
  poolOf(model: string): AdmissionPool {
    return this.#targets.poolOf(model);
  }

  /**
   * Takes a place in the queue, or refuses. Grants come from {@link next}.
   * @throws SluiceError `invalid_option` for a wrong field
   */
  ask(ask: AdmissionAsk): AdmissionTicket | AdmissionRefusal {
    const nowMs = this.#clock.now();
    const { cost } = ask;
    zeroOrMore('cost.requests', cost.requests);
    zeroOrMore('cost.tokens', cost.tokens);
    const level = this.levels.indexOf(ask.priority);
    this.#targets.tidy(nowMs);
    const pool = this.#targets.poolOf(ask.model);
    const tenant = this.#tenants.at(ask.tenant, this.#targets.arrivalMarginMs, nowMs);
    const tooLarge = cost.explicit ? tooLargeFor(cost, pool, tenant) : undefined;
    if (tooLarge) return tooLarge;
    const unavailableMs = pool.unavailableMs(nowMs);
    if (unavailableMs > 0) return unavailable(unavailableMs);

    const bound = this.#boundOf(nowMs, ask);
    const foreseenMs = this.#foreseenMs(nowMs, pool, tenant, level, cost);
    if (foreseenMs > bound.limitMs) return refusedBy(bound, pool.retryAfterMs(nowMs, foreseenMs));
    const ticket = new AdmissionTicket(pool, tenant, level, cost, this.#order++, nowMs, bound, foreseenMs);
    if (bound.limitMs === 0 && !this.#hasRoomNow(nowMs, ticket)) {
      return refusedBy(bound, pool.retryAfterMs(nowMs, foreseenMs));
    }
    const { maxWaiting } = this.#targets.bounds;
    if (this.#waiting >= maxWaiting && !this.#hasRoomNow(nowMs, ticket) && !this.#evictFor(ticket)) {
      return queueFull(maxWaiting, pool.retryAfterMs(nowMs, foreseenMs));
    }
    pool.join(ticket);
    this.#targets.joined(pool);
    this.#waiting++;
    this.#tenants.move(tenant, 1, 0);
    return ticket;
  }

  /** Leaves the queue. Whether it was still in it. */
  cancel(ticket: AdmissionTicket): boolean {
    if (!ticket.pool.leave(ticket)) return false;
    this.#waiting--;
    this.#tenants.move(ticket.from, -1, 0);
    return true;
  }

  /** The next thing to do. Call it until it says `wait`, and again whenever something was given back or has changed. */
  next(): AdmissionStep {
    const nowMs = this.#clock.now();
    const stuck = this.#targets.advance(nowMs);
    if (stuck) return { kind: 'changed', changes: [stuck] };
    const evicted = this.#evicted.shift();
    if (evicted)
      return this.#refuse(evicted, queueFull(this.#targets.bounds.maxWaiting, evicted.pool.retryAfterMs(nowMs, 1)));
    this.#tenants.wake(nowMs);
    let untilMs = this.#targets.stuckAtMs;
    // Stryker disable next-line ConditionalExpression: nothing is gone through for nobody
    if (this.#waiting === 0) return { kind: 'wait', untilMs };
    let due: AdmissionTicket | undefined;
    for (const pool of this.#targets.busy()) {
      const unavailableMs = pool.unavailableMs(nowMs);
      if (unavailableMs > 0) return this.#refuse(pool.oldest() as AdmissionTicket, unavailable(unavailableMs));
      const first = pool.firstToExpire();
      if (first === undefined) continue;
      const leastMs = pool.foreseenMs(nowMs, NOTHING, { requests: first.cost.requests, tokens: 0 });
      if (first.expiresAtMs < nowMs + leastMs) return this.#expire(nowMs, first, leastMs);
      if (first.expiresAtMs === nowMs) due ??= first;
      untilMs = Math.min(untilMs, first.expiresAtMs);
    }
    const free = Math.min(this.#rules.maxInFlight, this.lent) - this.inFlight;
    if (free > 0) {
      const choice = chooseNext(nowMs, this.#targets.busy(), this.#tenants, {
        free,
        passShare: this.#rules.passShare,
        levelFull: (level) => this.levels.full(level),
      });
      if (choice.kind === 'go') return this.#grant(nowMs, choice);
      untilMs = Math.min(untilMs, choice.untilMs);
    }
    // At its bound itself a ticket may still go.
    return due ? this.#expire(nowMs, due, 0) : { kind: 'wait', untilMs };
  }

  /** The verdict on an attempt, once. Its slot stays taken until {@link close}. */
  end(grant: AdmissionGrant, outcome: Outcome, firstContentMs?: number): AdmissionEnd | undefined {
    const ended = grant.end(this.#clock.now(), outcome, firstContentMs);
    const ticket = this.#held.get(grant);
    if (ended === undefined || ticket === undefined) return ended;
    ticket.from.open--;
    // Stryker disable next-line ConditionalExpression: without a quota of its own it waits for a slot, and is let go as that comes free
    if (ticket.from.layer) this.#tenants.unpark(ticket.from);
    ticket.pool.queueOf(ticket).correct(ticket.tenant, ended.moreTokens);
    return ended;
  }

  /** Nothing of an attempt runs any more: what it had in flight is free. */
  close(grant: AdmissionGrant): void {
    const ticket = this.#held.get(grant);
    if (ticket === undefined || !grant.close()) return;
    this.#held.delete(grant);
    this.levels.move(ticket.level, -1);
    this.#tenants.move(ticket.from, 0, -1);
  }

  #expire(nowMs: number, ticket: AdmissionTicket, leastMs: number): AdmissionStep {
    const { pool, bound, cost } = ticket;
    const ownMs = Math.max(leastMs, pool.foreseenMs(nowMs, NOTHING, cost));
    return this.#refuse(ticket, refusedBy(bound, pool.retryAfterMs(nowMs, ownMs)));
  }

  #grant(nowMs: number, { ticket, targets, passes }: Choice & { kind: 'go' }): AdmissionStep {
    const changes: TargetChange[] = [];
    for (const target of targets) {
      const decision = target.breaker.ask();
      if (decision.changes.length > 0) {
        changes.push({ target, breaker: decision.changes, revoked: revoked(target, decision.changes) });
      }
      if (decision.kind === 'refused') continue;
      const { from } = ticket;
      const cost = target.costOf(ticket.cost);
      ticket.pool.take(ticket, nowMs, (level) => this.levels.full(level));
      this.#tenants.charge(from, cost.tokens);
      this.#tenants.move(from, -1, 1);
      from.open++;
      this.#waiting--;
      this.levels.move(ticket.level, 1);
      for (const passed of passes(target)) passed.passed += cost.tokens;
      const reservation = new QuotaReservation(nowMs, target.routeFor(from), cost, target.rules);
      const grant = new AdmissionGrant(target, reservation, decision.ticket, nowMs);
      this.#targets.sending(target);
      this.#held.set(grant, ticket);
      return { kind: 'granted', ticket, grant, changes };
    }
    const retryAfterMs = Math.max(1, ...targets.map(({ breaker }) => Math.ceil(breaker.snapshot().retryAfterMs)));
    return { ...this.#refuse(ticket, unavailable(retryAfterMs)), changes };
  }

  #refuse(ticket: AdmissionTicket, refusal: AdmissionRefusal): AdmissionStep & { readonly kind: 'refused' } {
    this.cancel(ticket);
    return { kind: 'refused', ticket, refusal, changes: [] };
  }

  #boundOf(nowMs: number, ask: AdmissionAsk): WaitBound {
    const maxWaitMs = zeroOrInfinity('maxWaitMs', ask.maxWaitMs ?? this.#targets.bounds.maxWaitMs);
    const leftMs = (ask.deadlineAtMs ?? Infinity) - nowMs;
    if (leftMs > maxWaitMs) return { code: 'queue_timeout', limitMs: maxWaitMs };
    // At the deadline itself there is no time left for an answer.
    return { code: 'timeout_deadline', limitMs: leftMs > 0 ? leftMs : -1 };
  }

  /** No shorter than this is the wait of a newcomer, unless others leave or give something back. */
  #foreseenMs(nowMs: number, pool: AdmissionPool, tenant: AdmissionTenant, level: number, cost: Cost): number {
    const ahead = queueAt(pool, level).ahead(tenant.name, cost);
    const { layer } = tenant;
    const ownMs = layer?.waitBehindMs(nowMs, ahead, clampTo(layer, cost), true) ?? 0;
    return Math.max(ownMs, pool.foreseenMs(nowMs, ahead, cost));
  }

  #hasRoomNow(nowMs: number, ticket: AdmissionTicket): boolean {
    if (ticket.pool.waiting > 0 || this.inFlight >= this.#rules.maxInFlight || this.levels.full(ticket.level))
      return false;
    if (this.#tenants.blockedMs(ticket.from, ticket.cost, nowMs) > 0) return false;
    return ticket.pool.fit(nowMs, ticket).targets.length > 0;
  }

  /** Makes room for one that is more urgent than another, which must go. */
  #evictFor({ level }: AdmissionTicket): boolean {
    for (let below = this.#rules.levels.length - 1; below > level; below--) {
      for (const pool of this.#targets.busy()) {
        const youngest = queueAt(pool, below).youngest();
        if (youngest === undefined) continue;
        this.cancel(youngest);
        this.#evicted.push(youngest);
        return true;
      }
    }
    return false;
  }
}

function queueAt({ queues }: AdmissionPool, level: number): AdmissionPool['queues'][number] {
  return queues[level] as AdmissionPool['queues'][number];
}

const NOTHING = { requests: 0, tokens: 0 };
