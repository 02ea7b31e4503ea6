import type { RateLimitHints, Usage } from '../core/hints.ts';
import type { Outcome } from '../core/outcome.ts';
import type { QuotaSettlement } from '../core/ports.ts';
import type { LayerCost, SentAmong } from './QuotaLayer.ts';
import type { QuotaRoute } from './QuotaRoute.ts';
import { refundFor } from './refunds.ts';
import type { RefundRules } from './refunds.ts';

export interface SettleRules {
  readonly settle: 'usage' | 'reserved';
  readonly refundOn: RefundRules;
}

export interface Settlement extends QuotaSettlement {
  /** The pause that the ending began, in milliseconds, else 0. */
  readonly cooldownMs: number;
}

const NO_WAIT = 0;

/** What one attempt has taken from all layers of a route, until it is released. Pure: times are passed in. */
export class QuotaReservation {
  /** Tokens that were reserved. */
  readonly reservedTokens: number;
  readonly #requests: number;
  readonly #route: QuotaRoute;
  readonly #rules: SettleRules;
  /** Of what was taken of each bucket: requests first, then tokens. */
  readonly #marks: number[];
  readonly #trial: number | undefined;
  readonly #chargedAtMs: number;
  #sent: SentAmong | undefined;
  #answered = false;
  #hinted = false;
  #released = false;
  #usedTokens: number | undefined;
  /** Tokens charged now. */
  #tokens: number;
  /** Tokens that are being handed over, with all requests. */
  #inHand: number | undefined;

  constructor(nowMs: number, route: QuotaRoute, cost: LayerCost, rules: SettleRules) {
    const { requests, tokens } = route;
    this.reservedTokens = cost.tokens;
    this.#requests = cost.requests;
    this.#chargedAtMs = nowMs;
    this.#route = route;
    this.#rules = rules;
    this.#tokens = cost.tokens;
    // Of its size from the start: one that grows keeps room for more.
    // Stryker disable next-line ArrayDeclaration: as full in the end
    this.#marks = new Array<number>(requests.length + tokens.length);
    let at = 0;
    for (const bucket of requests) this.#marks[at++] = bucket.charge(nowMs, cost.requests);
    for (const bucket of tokens) {
      this.#marks[at++] = bucket.charge(nowMs, cost.tokens);
      bucket.reserved += cost.tokens;
    }
    this.#trial = route.cooldown.passed(nowMs);
    route.open++;
  }

  get sentAtMs(): number | undefined {
    return this.#sent?.atMs;
  }

  /**
   * The attempt is sent now. Reports of limits are ordered by this. `sentFollows`: it is still being handed over, and nothing
   * of what it took comes back before {@link sent}, or the first word of an answer.
   */
  dispatched(nowMs: number, sentFollows = false): void {
    if (this.#released || this.#sent !== undefined) return;
    const { requests, tokens, reported } = this.#route;
    for (const bucket of requests) bucket.dispatch(nowMs, this.#requests);
    for (const bucket of tokens) bucket.dispatch(nowMs, this.#tokens);
    this.#sent = { atMs: nowMs, requests: reported?.requests?.moment, tokens: reported?.tokens?.moment };
    if (!sentFollows) return;
    this.#inHand = this.#tokens;
    this.#hold(this.#requests, this.#inHand);
  }

  /** It was handed over only now, and what it took begins to come back that much later. */
  sent(nowMs: number): void {
    this.#handedOver();
    if (this.#released || this.#answered) return;
    // Stryker disable next-line ConditionalExpression: charged again at once it is the same
    if (nowMs === this.#chargedAtMs) return;
    const marks = this.#marks;
    const { requests, tokens } = this.#route;
    requests.forEach((bucket, i) => (marks[i] = bucket.postpone(nowMs, this.#requests, marks[i] as number)));
    tokens.forEach((bucket, k) => {
      const i = requests.length + k;
      marks[i] = bucket.postpone(nowMs, this.#tokens, marks[i] as number);
    });
  }

  /** A response has begun: the first one back after a cooldown no longer keeps the others. */
  responded(nowMs: number, status: number): void {
    this.#handedOver();
    this.#answered = true;
    // A rejection is an answer that asks for more patience, which its hint or its end will bring.
    if (status !== 429) this.#route.cooldown.answered(nowMs, this.#trial);
  }

  /** What the answer said of limits. Returns the pause that it began, in milliseconds, else 0. */
  observe(nowMs: number, hints: RateLimitHints): number {
    if (this.#released) return NO_WAIT;
    this.#answered = true;
    this.#route.report(nowMs, hints, this.#sent);
    const { retryAfterMs } = hints;
    if (retryAfterMs === undefined) return NO_WAIT;
    this.#hinted = true;
    return this.#route.cooldown.hint(nowMs, retryAfterMs);
  }

  /** What the provider says it counted, so far. */
  settle(nowMs: number, usage: Usage): void {
    if (this.#released) return;
    this.#answered = true;
    this.#usedTokens = usage.totalTokens;
    const reserved = this.#rules.settle === 'reserved';
    this.#chargeTokens(nowMs, reserved ? Math.max(usage.totalTokens, this.reservedTokens) : usage.totalTokens);
  }

  /**
   * Ends the reservation, once. What is refunded depends on how the attempt ended. `pauses`: whether a rejection that named
   * no wait begins a pause.
   */
  release(nowMs: number, outcome: Outcome, pauses = true): Settlement | undefined {
    if (this.#released) return undefined;
    this.#released = true;
    this.#handedOver();
    this.#route.open--;
    const refund = refundFor(outcome, this.#answered, this.#rules.refundOn);
    const back = refund === 'all' || refund === 'tokens' ? Math.min(this.#tokens, this.reservedTokens) : 0;
    if (refund === 'all' || refund === 'requests') this.#giveBackRequests(nowMs);
    // Stryker disable next-line ConditionalExpression,EqualityOperator: nothing is given back of nothing
    if (back > 0) this.#giveBackTokens(nowMs, back);
    for (const bucket of this.#route.tokens) bucket.reserved -= this.#tokens;
    return {
      reservedTokens: this.reservedTokens,
      usedTokens: this.#usedTokens,
      refundedTokens: Math.max(0, this.reservedTokens - this.#tokens) + back,
      cooldownMs: this.#endTrial(nowMs, outcome, pauses),
    };
  }

  #handedOver(): void {
    if (this.#inHand === undefined) return;
    this.#hold(-this.#requests, -this.#inHand);
    this.#inHand = undefined;
  }

  #hold(requests: number, tokens: number): void {
    for (const bucket of this.#route.requests) bucket.hold(requests);
    for (const bucket of this.#route.tokens) bucket.hold(tokens);
  }

  #giveBackRequests(nowMs: number): void {
    let at = 0;
    for (const bucket of this.#route.requests) {
      bucket.giveBack(nowMs, this.#requests, this.#marks[at++] as number, this.#sent !== undefined);
    }
  }

  #giveBackTokens(nowMs: number, amount: number): void {
    let at = this.#route.requests.length;
    for (const bucket of this.#route.tokens) {
      bucket.giveBack(nowMs, amount, this.#marks[at++] as number, this.#sent !== undefined);
    }
  }

  #endTrial(nowMs: number, outcome: Outcome, pauses: boolean): number {
    const { cooldown } = this.#route;
    let pausedMs = NO_WAIT;
    if (outcome.kind === 'failure' && !this.#hinted) {
      const { code, retryAfterMs } = outcome.error;
      if (retryAfterMs !== undefined) pausedMs = cooldown.hint(nowMs, retryAfterMs);
      else if (code === 'rate_limited' && pauses) pausedMs = cooldown.rejected(nowMs, this.sentAtMs ?? nowMs);
    }
    if (outcome.kind === 'dropped' && !this.#answered) cooldown.gaveUp(nowMs, this.#trial);
    else cooldown.answered(nowMs, this.#trial);
    return pausedMs;
  }

  #chargeTokens(nowMs: number, tokens: number): void {
    if (!(tokens >= 0)) return;
    const more = tokens - this.#tokens;
    // Stryker disable next-line ConditionalExpression: nothing is corrected by nothing
    if (more === 0) return;
    this.#tokens = tokens;
    // Stryker disable next-line EqualityOperator: it is not 0
    if (more < 0) this.#giveBackTokens(nowMs, -more);
    for (const bucket of this.#route.tokens) {
      // Stryker disable next-line EqualityOperator: it is not 0
      if (more > 0) bucket.chargeMore(nowMs, more);
      bucket.reserved += more;
    }
  }
}
