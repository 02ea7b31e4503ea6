import type { ErrorCode } from '../core/errors.ts';
import type { RateLimitHints, Usage } from '../core/hints.ts';
import type { Outcome } from '../core/outcome.ts';
import type { Grant, QuotaRequest } from '../core/ports.ts';
import type { Runtime } from '../core/runtime.ts';
import type { QuotaReservation } from '../limits/QuotaReservation.ts';

/** Who serves those that a change lets pass. */
export interface Serving {
  readonly runtime: Runtime;
  serve(): void;
}

/** A reservation as the port shows it: it knows the time, and whom to tell. */
export class QuotaGrant implements Grant {
  readonly waitedMs: number;
  readonly #reservation: QuotaReservation;
  readonly #request: QuotaRequest;
  readonly #desk: Serving;
  #reason: ErrorCode = 'rate_limited';

  constructor(reservation: QuotaReservation, request: QuotaRequest, waitedMs: number, desk: Serving) {
    this.waitedMs = waitedMs;
    this.#reservation = reservation;
    this.#request = request;
    this.#desk = desk;
  }

  get reservedTokens(): number {
    return this.#reservation.reservedTokens;
  }

  dispatched(sentFollows = false): void {
    this.#reservation.dispatched(this.#nowMs(), sentFollows);
  }

  sent(): void {
    this.#reservation.sent(this.#nowMs());
  }

  responded(status: number): void {
    if (status === 503 || status === 529) this.#reason = 'overloaded';
    this.#reservation.responded(this.#nowMs(), status);
    this.#desk.serve();
  }

  observe(hints: RateLimitHints): void {
    // Whatever a listener does, those who wait are served.
    try {
      this.#paused(this.#reservation.observe(this.#nowMs(), hints), this.#reason);
    } finally {
      this.#desk.serve();
    }
  }

  settle(usage: Usage): void {
    this.#reservation.settle(this.#nowMs(), usage);
    this.#desk.serve();
  }

  release(outcome: Outcome): void {
    const settlement = this.#reservation.release(this.#nowMs(), outcome);
    if (settlement === undefined) return;
    try {
      const { reservedTokens, usedTokens, refundedTokens, cooldownMs } = settlement;
      this.#request.onSettled?.({ reservedTokens, usedTokens, refundedTokens });
      this.#paused(cooldownMs, outcome.kind === 'failure' ? outcome.error.code : this.#reason);
    } finally {
      this.#desk.serve();
    }
  }

  #paused(waitMs: number, reason: ErrorCode): void {
    if (waitMs > 0) this.#request.onCooldown?.(waitMs, reason);
  }

  #nowMs(): number {
    return this.#desk.runtime.clock.now();
  }
}
