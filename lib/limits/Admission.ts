import { zeroOrMore } from '../core/checks.ts';
import type { Clock } from '../core/runtime.ts';
import { AdmissionGrant, revoked } from './AdmissionGrant.ts';
import type { AdmissionEnd, TargetChange } from './AdmissionGrant.ts';
import { queueFull, refusedBy, tooLargeFor, unavailable } from './admissionRefusals.ts';
import type { AdmissionRefusal } from './admissionRefusals.ts';
import { AdmissionLevels } from './AdmissionLevels.ts';
import type { LevelPlace } from './AdmissionLevels.ts';
import { checkedAdmissionRules } from './AdmissionOptions.ts';
import type { AdmissionOptions, CheckedAdmissionRules } from './AdmissionOptions.ts';
import { AdmissionTicket } from './AdmissionPool.ts';
import type { AdmissionPool } from './AdmissionPool.ts';
import type { AdmissionAsk, AdmissionStep } from './AdmissionStep.ts';
import type { AdmissionTarget } from './AdmissionTarget.ts';
import { AdmissionTargets } from './AdmissionTargets.ts';
import { AdmissionTenants } from './AdmissionTenant.ts';
import { chooseNext } from './chooseNext.ts';
import type { Choice } from './chooseNext.ts';
import type { BreakerTicket } from './CircuitBreaker.ts';
import { foreseenMs } from './foreseenMs.ts';
import { NOTHING } from './QuotaLayer.ts';
import type { LayerCost } from './QuotaLayer.ts';
import { waitBound } from './waitBound.ts';
import type { Outcome } from '../core/outcome.ts';

/** What of a place in the queue a grant goes on with. */
type Asked = Pick<AdmissionTicket, 'pool' | 'from' | 'level'>;

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
  readonly tenants: AdmissionTenants;
  /** What the priorities have in flight, and what they may have. */
  readonly levels: AdmissionLevels;
  readonly #random: () => number;
  /** Have had to make room for more urgent ones. */
  readonly #evicted: AdmissionTicket[] = [];
  /** What this process may have of `maxInFlight`. */
  lent: number = Infinity;
  rules: CheckedAdmissionRules;
  #inFlight = 0;
  #waiting = 0;
  #order = 0;

  /** @throws SluiceError `invalid_option` */
  constructor(options: AdmissionOptions, clock: Pick<Clock, 'now'>, random: () => number) {
    this.rules = checkedAdmissionRules(options);
    this.#clock = clock;
    this.#random = random;
    this.#targets = new AdmissionTargets(options, this.rules, clock, random);
    this.tenants = new AdmissionTenants(options.tenants, clock.now());
    this.levels = new AdmissionLevels(this.rules.levels);
  }

  /**
   * Takes other options, and goes on from where everything is.
   *
   * - What is in flight stays in every count, and is given back there. A lower ceiling takes nothing back.
   * - Those who wait keep their places and bounds, under the new limits: call {@link next} afterwards. A priority that is
   *   gone: see `AdmissionLevels.reload`.
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
    this.rules = checkedAdmissionRules(options);
    const moved = this.levels.reload(this.rules.levels);
    this.#targets.reload(options, this.rules, nowMs);
    this.tenants.reload(options.tenants, this.#targets.arrivalMarginMs, nowMs);
    for (const pool of this.#targets.pools.values()) pool.reload(this.rules, moved);
  }

  get waiting(): number {
    return this.#waiting;
  }

  get inFlight(): number {
    return this.#inFlight;
  }

  get pools(): ReadonlyMap<string, AdmissionPool> {
    return this.#targets.pools;
  }

  /** That of a model, made if it was not there. @throws SluiceError `invalid_option` for an empty name */
  poolOf(model: string): AdmissionPool {
    return this.#targets.poolOf(model);
  }

  /** Takes a place in the queue, or refuses; grants come from {@link next}. @throws SluiceError `invalid_option` */
  ask(ask: AdmissionAsk): AdmissionTicket | AdmissionRefusal {
    return this.#enter(ask, false) as AdmissionTicket | AdmissionRefusal;
  }

  /**
   * As {@link ask}, but where nobody waits and there is room, the grant that {@link next} would give: no place is taken for
   * it, as a queue of one remembers nothing of who has gone.
   * @throws SluiceError `invalid_option` for a wrong field
   */
  admit(ask: AdmissionAsk): AdmissionGrant | AdmissionTicket | AdmissionRefusal {
    return this.#enter(ask, true);
  }

  #enter(ask: AdmissionAsk, atOnce: boolean): AdmissionGrant | AdmissionTicket | AdmissionRefusal {
    const nowMs = this.#clock.now();
    const { cost } = ask;
    zeroOrMore('cost.requests', cost.requests);
    zeroOrMore('cost.tokens', cost.tokens);
    const level = this.levels.indexOf(ask.priority);
    this.#targets.tidy(nowMs);
    const pool = this.#targets.poolOf(ask.model);
    const tenant = this.tenants.at(ask.tenant, this.#targets.arrivalMarginMs, nowMs);
    const tooLarge = cost.explicit ? tooLargeFor(cost, pool, tenant) : undefined;
    if (tooLarge) return tooLarge;
    const grant = atOnce ? this.#grantAtOnce(nowMs, ask, { pool, from: tenant, level }) : undefined;
    if (grant) return grant;
    const unavailableMs = pool.unavailableMs(nowMs);
    if (unavailableMs > 0) return unavailable(unavailableMs);

    const { maxWaiting, maxWaitMs } = this.#targets.bounds;
    const bound = waitBound(ask, maxWaitMs, nowMs);
    const leastMs = foreseenMs(nowMs, pool, tenant, level, cost);
    if (leastMs > bound.limitMs) return refusedBy(bound, pool.retryAfterMs(nowMs, leastMs));
    const ticket = new AdmissionTicket(pool, tenant, level, cost, this.#order++, nowMs, bound, leastMs);
    if (bound.limitMs === 0 && !this.#hasRoomNow(nowMs, ticket)) {
      return refusedBy(bound, pool.retryAfterMs(nowMs, leastMs));
    }
    if (this.#waiting >= maxWaiting && !this.#hasRoomNow(nowMs, ticket) && !this.#evictFor(ticket)) {
      return queueFull(maxWaiting, pool.retryAfterMs(nowMs, leastMs));
    }
    pool.join(ticket);
    this.#targets.joined(pool);
    this.#waiting++;
    this.tenants.move(tenant, 1, 0);
    return ticket;
  }

  /** Leaves the queue. Whether it was still in it. */
  cancel(ticket: AdmissionTicket): boolean {
    if (!ticket.pool.leave(ticket)) return false;
    this.#waiting--;
    this.tenants.move(ticket.from, -1, 0);
    return true;
  }

  /** The next thing to do. Call it until it says `wait`, and again whenever something was given back or has changed. */
  next(): AdmissionStep {
    // Stryker disable next-line ConditionalExpression: it is found below too
    if (this.#isIdle) return NOTHING_TO_DO;
    const nowMs = this.#clock.now();
    const stuck = this.#targets.advance(nowMs);
    if (stuck) return { kind: 'changed', changes: [stuck] };
    const evicted = this.#evicted.shift();
    const { maxWaiting } = this.#targets.bounds;
    if (evicted) return this.#refuse(evicted, queueFull(maxWaiting, evicted.pool.retryAfterMs(nowMs, 1)));
    this.tenants.wake(nowMs);
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
    const free = this.#free;
    if (free > 0) {
      const rules = { free, passShare: this.rules.passShare, levelFull: (level: number) => this.levels.full(level) };
      const choice = chooseNext(nowMs, this.#targets.busy(), this.tenants, rules);
      if (choice.kind === 'go') return this.#grant(nowMs, choice);
      untilMs = Math.min(untilMs, choice.untilMs);
    }
    // At its bound itself a ticket may still go.
    return due ? this.#expire(nowMs, due, 0) : { kind: 'wait', untilMs };
  }

  /** The verdict on an attempt, once. Its slot stays taken until {@link close}. */
  end(grant: AdmissionGrant, outcome: Outcome, firstContentMs?: number): AdmissionEnd | undefined {
    const ended = grant.end(this.#clock.now(), outcome, firstContentMs);
    if (ended === undefined) return undefined;
    const { tenant, pool, place } = grant;
    tenant.open--;
    // Stryker disable next-line ConditionalExpression: without a quota of its own it waits for a slot, and is let go as that comes free
    if (tenant.layer) this.tenants.unpark(tenant);
    // Stryker disable next-line ConditionalExpression,EqualityOperator: a queue in which nobody waits remembers no tenant
    if (this.#waiting > 0) pool.queueOf({ level: this.levels.levelOf(place) }).correct(tenant.name, ended.moreTokens);
    return ended;
  }

  /** Nothing of an attempt runs any more: what it had in flight is free. */
  close(grant: AdmissionGrant): void {
    if (!grant.close()) return;
    this.#inFlight--;
    this.levels.move(this.levels.levelOf(grant.place), -1);
    this.tenants.move(grant.tenant, 0, -1);
  }

  /** Whether there is nothing to do before somebody asks. */
  get #isIdle(): boolean {
    return this.#waiting === 0 && this.#evicted.length === 0 && this.#targets.probing.size === 0;
  }

  #grantAtOnce(nowMs: number, ask: AdmissionAsk, asked: Asked): AdmissionGrant | undefined {
    const { pool, from, level } = asked;
    const { cost } = ask;
    if (!this.#isIdle || this.#free <= 0 || this.levels.full(level)) return undefined;
    if (this.tenants.blockedMs(from, cost, nowMs) > 0 || !pool.hasRoom(nowMs, cost)) return undefined;
    if (waitBound(ask, this.#targets.bounds.maxWaitMs, nowMs).limitMs < 0) return undefined;
    const target = pool.passNow(nowMs, level, { cost, tenant: from.name });
    const costThere = target.costOf(cost);
    this.tenants.pass(from, costThere.tokens);
    return this.#hold(nowMs, asked, target, costThere, target.breaker.join());
  }

  get #free(): number {
    return Math.min(this.rules.maxInFlight, this.lent) - this.#inFlight;
  }

  /** What is granted is in flight from now on. */
  #hold(nowMs: number, asked: Asked, target: AdmissionTarget, cost: LayerCost, pass: BreakerTicket): AdmissionGrant {
    asked.from.open++;
    this.#inFlight++;
    this.levels.move(asked.level, 1);
    const grant = new AdmissionGrant(nowMs, asked, this.levels.places[asked.level] as LevelPlace, target, cost, pass);
    this.#targets.granted(target);
    return grant;
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
      this.tenants.charge(from, cost.tokens);
      this.tenants.move(from, -1, 1);
      this.#waiting--;
      for (const passed of passes(target)) passed.passed += cost.tokens;
      const grant = this.#hold(nowMs, ticket, target, cost, decision.ticket);
      return { kind: 'granted', ticket, grant, changes };
    }
    const retryAfterMs = Math.max(1, ...targets.map(({ breaker }) => Math.ceil(breaker.snapshot().retryAfterMs)));
    return { ...this.#refuse(ticket, unavailable(retryAfterMs)), changes };
  }

  #refuse(ticket: AdmissionTicket, refusal: AdmissionRefusal): AdmissionStep & { readonly kind: 'refused' } {
    this.cancel(ticket);
    return { kind: 'refused', ticket, refusal, changes: [] };
  }

  #hasRoomNow(nowMs: number, ticket: AdmissionTicket): boolean {
    const { pool, from, level, cost } = ticket;
    if (pool.waiting > 0 || this.inFlight >= this.rules.maxInFlight || this.levels.full(level)) return false;
    return this.tenants.blockedMs(from, cost, nowMs) === 0 && pool.fit(nowMs, ticket).targets.length > 0;
  }

  /** Makes room for one that is more urgent than another, which must go. */
  #evictFor({ level }: AdmissionTicket): boolean {
    const youngest = this.#targets.youngestBelow(level);
    if (youngest === undefined) return false;
    this.cancel(youngest);
    this.#evicted.push(youngest);
    return true;
  }
}

const NOTHING_TO_DO: AdmissionStep = { kind: 'wait', untilMs: Infinity };
