import type { ErrorCode } from '../../core/errors.ts';
import type { LimitReading, RateLimitHints, Usage } from '../../core/hints.ts';
import type { Outcome } from '../../core/outcome.ts';
import type { QuotaRequest } from '../../core/ports.ts';
import type { SharedQuotaGrant } from '../../limits/LimitStore.ts';
import { remainingOf } from '../../limits/MinuteBucket.ts';
import type { LayerCost } from '../../limits/QuotaLayer.ts';
import { refundFor } from '../../limits/refunds.ts';
import type { CheckedQuotaRules } from '../../limits/QuotaOptions.ts';
import { REPLY } from './QuotaCall.ts';
import type { Marks, OpReply, RouteOp } from './QuotaCall.ts';
import type { RoutePlan } from './QuotaLayers.ts';

/** Whom a grant tells what becomes of it. */
export interface GrantDesk {
  nowMs(): number;
  /** Tells whoever granted it. Not `soon`: whenever something else is told. */
  tell(op: RouteOp, soon: boolean, hear?: (reply: OpReply) => void): void;
}

export interface Granted {
  readonly cost: LayerCost;
  /** What was taken, where that is more than the cost. */
  readonly takenTokens: number;
  readonly marks: Marks;
  /** Number of the trial, 0 if nobody waits for its answer. */
  readonly trial: number;
  readonly waitedMs: number;
}

/** What it may be sent late without being charged anew. */
const LATE_MS = 20;
const MINUTE_MS = 60_000;

/** A reservation in a shared quota. The rules are those of limits/QuotaReservation. */
export class SharedGrant implements SharedQuotaGrant {
  readonly waitedMs: number;
  readonly #granted: Granted;
  readonly #request: QuotaRequest;
  readonly #plan: RoutePlan;
  readonly #desk: GrantDesk;
  readonly #grantedAtMs: number;
  #sentAtMs: number | undefined;
  #answered = false;
  #answerTold = false;
  #hinted = false;
  #released = false;
  #usedTokens: number | undefined;
  #reservedTokens: number;
  #takenTokens: number;
  #reason: ErrorCode = 'rate_limited';

  constructor(granted: Granted, request: QuotaRequest, plan: RoutePlan, desk: GrantDesk) {
    this.waitedMs = granted.waitedMs;
    this.#reservedTokens = granted.cost.tokens;
    this.#takenTokens = granted.takenTokens;
    this.#granted = granted;
    this.#request = request;
    this.#plan = plan;
    this.#desk = desk;
    this.#grantedAtMs = desk.nowMs();
  }

  get reservedTokens(): number {
    return this.#reservedTokens;
  }

  shrink(tokens: number): void {
    const fewer = Math.min(tokens, this.#reservedTokens);
    if (this.#released || this.#sentAtMs !== undefined || !(fewer > 0)) return;
    this.#reservedTokens -= fewer;
    this.#takenTokens -= fewer;
    this.#desk.tell(['back', 0, fewer, ...this.#granted.marks], false);
  }

  dispatched(): void {
    this.#sentAtMs ??= this.#desk.nowMs();
  }

  sent(): void {
    if (this.#released || this.#answered) return;
    const lateMs = this.#desk.nowMs() - this.#grantedAtMs;
    this.#sentAtMs = this.#desk.nowMs();
    if (lateMs <= LATE_MS) return;
    const { cost, marks } = this.#granted;
    this.#desk.tell(['again', cost.requests, this.#reservedTokens, ...marks], true);
  }

  responded(status: number): void {
    this.#answered = true;
    if (status === 503 || status === 529) this.#reason = 'overloaded';
    // A rejection is an answer that asks for more patience, which its hint or its end will bring.
    if (status !== 429) this.#tellAnswered();
  }

  observe(hints: RateLimitHints): void {
    if (this.#released) return;
    this.#answered = true;
    this.#report('requests', hints.requests);
    this.#report('tokens', hints.tokens);
    if (hints.retryAfterMs === undefined) return;
    this.#hinted = true;
    this.#pause(['hint', hints.retryAfterMs], this.#reason);
  }

  settle(usage: Usage): void {
    if (this.#released) return;
    this.#answered = true;
    if (usage.totalTokens >= 0) this.#usedTokens = usage.totalTokens;
  }

  release(outcome: Outcome): void {
    if (this.#released) return;
    this.#released = true;
    const { cost, marks } = this.#granted;
    const refund = refundFor(outcome, this.#answered, this.#rules.refundOn);
    const tokens = this.#settledTokens();
    const requests = refund === 'all' || refund === 'requests' ? cost.requests : 0;
    const back = refund === 'all' || refund === 'tokens' ? Math.min(tokens, this.#reservedTokens) : 0;
    const lessTokens = this.#takenTokens - tokens + back;
    if (requests > 0 || lessTokens > 0) this.#desk.tell(['back', requests, Math.max(0, lessTokens), ...marks], false);
    if (lessTokens < 0) this.#desk.tell(['more', 0, -lessTokens], true);
    this.#endPause(outcome);
    this.#request.onSettled?.({
      reservedTokens: this.#reservedTokens,
      usedTokens: this.#usedTokens,
      refundedTokens: Math.max(0, this.#reservedTokens - tokens) + back,
    });
  }

  get #rules(): CheckedQuotaRules {
    return this.#plan.own;
  }

  /** Tokens that it is charged in the end, refunds aside. */
  #settledTokens(): number {
    const tokens = this.#reservedTokens;
    if (this.#usedTokens === undefined) return tokens;
    return this.#rules.settle === 'reserved' ? Math.max(this.#usedTokens, tokens) : this.#usedTokens;
  }

  #endPause(outcome: Outcome): void {
    if (outcome.kind === 'failure' && !this.#hinted) {
      const { code, retryAfterMs } = outcome.error;
      if (retryAfterMs !== undefined) this.#pause(['hint', retryAfterMs], code);
      else if (code === 'rate_limited') {
        this.#pause(['rejected', this.#desk.nowMs() - (this.#sentAtMs ?? this.#grantedAtMs)], code);
      }
    }
    if (outcome.kind === 'dropped' && !this.#answered) this.#tellTrial('gaveUp');
    else this.#tellAnswered();
  }

  #pause(op: RouteOp, reason: ErrorCode): void {
    this.#desk.tell(op, true, ([kind, pausedMs = 0]) => {
      if (kind === REPLY.paused && pausedMs > 0) this.#request.onCooldown?.(pausedMs, reason);
    });
  }

  #tellAnswered(): void {
    if (!this.#answerTold) this.#tellTrial('answered');
    this.#answerTold = true;
  }

  #tellTrial(what: 'answered' | 'gaveUp'): void {
    const { trial } = this.#granted;
    if (trial > 0) this.#desk.tell([what, trial], true);
  }

  #report(unit: 'requests' | 'tokens', reading: LimitReading | undefined): void {
    if (this.#sentAtMs === undefined) return;
    const chargedUs = this.#granted.marks[3 * this.#plan.reported[unit] + 2] ?? -1;
    const op = reportOf(this.#plan, unit, reading, this.#desk.nowMs() - this.#sentAtMs, chargedUs);
    if (op) this.#desk.tell(op, false);
  }
}

/** What a provider said was left, `agoMs` ago. Undefined where it says nothing of a minute. */
export function reportOf(
  plan: RoutePlan,
  unit: 'requests' | 'tokens',
  reading: LimitReading | undefined,
  agoMs: number,
  chargedUs: number,
): RouteOp | undefined {
  const bucket = plan.reported[unit];
  if (bucket < 0 || !reading || !(reading.windowMs <= MINUTE_MS)) return undefined;
  const remaining = remainingOf(reading);
  return remaining === undefined
    ? undefined
    : ['report', bucket, remaining, Math.max(0, Math.floor(agoMs * 1000)), chargedUs];
}
