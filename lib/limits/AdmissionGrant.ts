import type { ErrorCode } from '../core/errors.ts';
import type { RateLimitHints, Usage } from '../core/hints.ts';
import type { Outcome } from '../core/outcome.ts';
import type { LevelPlace } from './AdmissionLevels.ts';
import type { AdmissionPool, AdmissionTicket } from './AdmissionPool.ts';
import type { AdmissionTarget } from './AdmissionTarget.ts';
import type { AimdDecision, AimdMark } from './Aimd.ts';
import type { BreakerChange, BreakerTicket } from './CircuitBreaker.ts';
import type { AdmissionTenant } from './AdmissionTenant.ts';
import type { LearnedRate } from './LearnedRate.ts';
import type { LayerCost } from './QuotaLayer.ts';
import { QuotaReservation } from './QuotaReservation.ts';
import type { Settlement } from './QuotaReservation.ts';

/** What the end of an attempt has changed. */
export interface AdmissionEnd {
  readonly settlement: Settlement;
  readonly breaker: readonly BreakerChange[];
  readonly limit: AimdDecision | undefined;
  /** Grants whose attempts must not be sent: the breaker has opened. */
  readonly revoked: readonly AdmissionGrant[];
  /** Tokens that were charged beyond the reservation; below 0: that came back. */
  readonly moreTokens: number;
}

/** What has happened to the breaker of a deployment. */
export interface TargetChange {
  readonly target: AdmissionTarget;
  readonly breaker: readonly BreakerChange[];
  /** Grants whose attempts must not be sent any more. */
  readonly revoked: readonly AdmissionGrant[];
}

/** Everything that one attempt holds. Pure: times are passed in. */
export class AdmissionGrant {
  readonly target: AdmissionTarget;
  readonly pool: AdmissionPool;
  readonly tenant: AdmissionTenant;
  readonly place: LevelPlace;
  /** Kept for whoever holds it, as in a ticket. */
  owner: unknown;
  readonly #reservation: QuotaReservation;
  readonly #pass: BreakerTicket;
  readonly #mark: AimdMark | undefined;
  #reason: ErrorCode = 'rate_limited';
  #hinted: RateLimitHints | undefined;
  /** Its place among those sent, from 1. */
  #sent = 0;
  /** What learned of its sending. Where another rate has been configured since, nothing of it is to be learned. */
  #sentUnder: LearnedRate | undefined;
  #answered = false;
  #ended = false;
  #closed = false;

  /** `cost`: as far as it can pass at `target`. */
  constructor(
    nowMs: number,
    { pool, from }: Pick<AdmissionTicket, 'pool' | 'from'>,
    place: LevelPlace,
    target: AdmissionTarget,
    cost: LayerCost,
    pass: BreakerTicket,
  ) {
    this.target = target;
    this.pool = pool;
    this.tenant = from;
    this.place = place;
    this.owner = undefined;
    this.#reservation = new QuotaReservation(nowMs, target.routeFor(from), cost, target.rules);
    this.#pass = pass;
    this.#mark = target.takeSlot();
    target.unsent.add(this);
  }

  get reservedTokens(): number {
    return this.#reservation.reservedTokens;
  }

  /** Why the provider asked for a wait, as far as it is known. */
  get reason(): ErrorCode {
    return this.#reason;
  }

  dispatched(nowMs: number, sentFollows = false): void {
    if (this.#ended || this.#sent > 0) return;
    this.target.unsent.delete(this);
    this.#sentUnder = this.target.learned;
    this.#sent = this.#sentUnder.sent(nowMs).order;
    this.#reservation.dispatched(nowMs, sentFollows);
  }

  /** It was handed over only now, and what it took begins to come back that much later. */
  sent(nowMs: number): void {
    this.#reservation.sent(nowMs);
  }

  responded(nowMs: number, status: number): void {
    if (this.#ended) return;
    if (status === 503 || status === 529) this.#reason = 'overloaded';
    this.#answered = true;
    this.#reservation.responded(nowMs, status);
  }

  /** Returns the pause that began, in milliseconds, else 0. */
  observe(nowMs: number, hints: RateLimitHints): number {
    if (this.#ended) return 0;
    this.#hinted = hints;
    this.target.learned.reported(nowMs, hints);
    return this.#reservation.observe(nowMs, hints);
  }

  settle(nowMs: number, usage: Usage): void {
    this.#reservation.settle(nowMs, usage);
  }

  firstContent(): void {
    this.target.breaker.firstContent(this.#pass);
  }

  /** The verdict, once. The slot stays taken until {@link close}. */
  end(nowMs: number, outcome: Outcome, firstContentMs?: number): AdmissionEnd | undefined {
    if (this.#ended) return undefined;
    this.#ended = true;
    const { target } = this;
    target.unsent.delete(this);
    const expected = this.#learn(nowMs, outcome);
    const settlement = this.#reservation.release(nowMs, outcome, !expected) as Settlement;
    const breaker = target.breaker.settle(this.#pass, outcome);
    const limit = target.judge(this.#mark, this.#pass.atMs, outcome, firstContentMs);
    const used = (settlement.usedTokens ?? 0) - settlement.reservedTokens;
    const moreTokens = settlement.refundedTokens > 0 ? -settlement.refundedTokens : Math.max(0, used);
    return { settlement, breaker, limit, revoked: revoked(target, breaker), moreTokens };
  }

  /** Nothing of the attempt runs any more. Whether the slot has come free now. */
  close(): boolean {
    if (!this.#ended || this.#closed) return false;
    this.#closed = true;
    this.target.freeSlot();
    return true;
  }

  /** Whether it was a rejection that need make nobody pause: the rate is known, and the wait follows from it. */
  #learn(nowMs: number, outcome: Outcome): boolean {
    // Stryker disable next-line BooleanLiteral: only a failure makes anyone pause
    if (outcome.kind !== 'failure') return false;
    const { code, retryAfterMs } = outcome.error;
    if (code === 'quota_exhausted') this.target.exhausted(nowMs + (retryAfterMs ?? this.target.exhaustedMs));
    const { learned } = this.target;
    if (this.#sentUnder !== learned) return false;
    const sent = { order: this.#sent, atMs: this.#reservation.sentAtMs as number };
    if (code === 'connection' && !this.#answered) learned.lost(sent);
    const slower = code === 'rate_limited' || (code === 'overloaded' && this.#hinted?.slowDown === true);
    return slower && !this.#isAboutTokens && learned.rejected(nowMs, sent);
  }

  /** There was room for the request, and none for its tokens. */
  get #isAboutTokens(): boolean {
    const { requests, tokens } = this.#hinted ?? {};
    const short = tokens?.remaining !== undefined && tokens.remaining < this.reservedTokens;
    return short && requests?.remaining !== undefined && requests.remaining >= 1;
  }
}

/** The grants that must not be used any more, if one of `changes` opened the breaker. */
export function revoked(target: AdmissionTarget, changes: readonly BreakerChange[]): readonly AdmissionGrant[] {
  if (!changes.some(({ to }) => to === 'open')) return [];
  const grants = [...target.unsent] as AdmissionGrant[];
  target.unsent.clear();
  return grants;
}
