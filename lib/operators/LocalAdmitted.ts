import type { ErrorCode, SluiceError } from '../core/errors.ts';
import type { SluiceFact } from '../core/events.ts';
import type { RateLimitHints, Usage } from '../core/hints.ts';
import type { Outcome } from '../core/outcome.ts';
import type { Admitted, AdmissionRequest, Deployment } from '../core/ports.ts';
import type { Runtime } from '../core/runtime.ts';
import type { Admission } from '../limits/Admission.ts';
import type { AdmissionEnd, AdmissionGrant, TargetChange } from '../limits/AdmissionGrant.ts';

/** Who serves those that a change lets pass, and tells of it. */
interface Desk {
  readonly runtime: Runtime;
  readonly machine: Admission;
  serve(): void;
  tell(changes: readonly TargetChange[], request?: AdmissionRequest): void;
  report(fact: SluiceFact, request?: AdmissionRequest): void;
}

/** A grant as the port shows it: it knows the time, and whom to tell. */
export class LocalAdmitted implements Admitted {
  readonly waitedMs: number;
  readonly #grant: AdmissionGrant;
  readonly #request: AdmissionRequest;
  readonly #desk: Desk;
  #refusal: SluiceError | undefined;
  #revoke: ((refusal: SluiceError) => void) | undefined;

  constructor(grant: AdmissionGrant, request: AdmissionRequest, waitedMs: number, desk: Desk) {
    this.waitedMs = waitedMs;
    this.#grant = grant;
    this.#request = request;
    this.#desk = desk;
  }

  get reservedTokens(): number {
    return this.#grant.reservedTokens;
  }

  get deployment(): Deployment {
    return this.#grant.target.deployment;
  }

  onRevoke(revoke: (refusal: SluiceError) => void): void {
    this.#revoke = revoke;
    if (this.#refusal) this.revoke(this.#refusal);
  }

  /** The breaker has opened, and nothing was sent yet. */
  revoke(refusal: SluiceError): void {
    this.#refusal = refusal;
    const revoke = this.#revoke;
    this.#revoke = undefined;
    revoke?.(refusal);
  }

  dispatched(sentFollows = false): void {
    this.#revoke = undefined;
    this.#grant.dispatched(this.#nowMs(), sentFollows);
  }

  sent(): void {
    this.#grant.sent(this.#nowMs());
  }

  responded(status: number): void {
    this.#grant.responded(this.#nowMs(), status);
    this.#desk.serve();
  }

  observe(hints: RateLimitHints): void {
    // Whatever a listener does, those who wait are served.
    try {
      this.#paused(this.#grant.observe(this.#nowMs(), hints), this.#grant.reason);
    } finally {
      this.#desk.serve();
    }
  }

  settle(usage: Usage): void {
    this.#grant.settle(this.#nowMs(), usage);
    this.#desk.serve();
  }

  firstContent(): void {
    this.#grant.firstContent();
  }

  end(outcome: Outcome, firstContentMs?: number): void {
    const ended = this.#desk.machine.end(this.#grant, outcome, firstContentMs);
    this.#revoke = undefined;
    try {
      if (ended) this.#tell(ended, outcome);
    } finally {
      this.#desk.serve();
    }
  }

  release(outcome: Outcome, firstContentMs?: number): void {
    this.end(outcome, firstContentMs);
    this.#desk.machine.close(this.#grant);
    this.#desk.serve();
  }

  #tell({ settlement, breaker, limit, revoked }: AdmissionEnd, outcome: Outcome): void {
    const { target } = this.#grant;
    if (limit?.kind === 'changed') {
      const { from, to, reason } = limit;
      this.#desk.report({ type: 'limit.changed', limiter: target.name, from, to, reason }, this.#request);
    }
    // Stryker disable next-line ConditionalExpression,EqualityOperator: of no change nothing is told
    if (breaker.length > 0) this.#desk.tell([{ target, breaker, revoked }], this.#request);
    const { reservedTokens, usedTokens, refundedTokens, cooldownMs } = settlement;
    this.#request.onSettled?.({ reservedTokens, usedTokens, refundedTokens });
    this.#paused(cooldownMs, outcome.kind === 'failure' ? outcome.error.code : this.#grant.reason);
  }

  #paused(waitMs: number, reason: ErrorCode): void {
    if (waitMs > 0) this.#request.onCooldown?.(waitMs, reason);
  }

  #nowMs(): number {
    return this.#desk.runtime.clock.now();
  }
}
