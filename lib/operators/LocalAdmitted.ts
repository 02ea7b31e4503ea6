import type { ErrorCode, SluiceError } from '../core/errors.ts';
import type { SluiceFact } from '../core/events.ts';
import type { RateLimitHints, Usage } from '../core/hints.ts';
import type { Outcome } from '../core/outcome.ts';
import type { Admitted, AdmissionRequest, Deployment } from '../core/ports.ts';
import type { Runtime } from '../core/runtime.ts';
import type { Admission } from '../limits/Admission.ts';
import type { AdmissionGrant, TargetChange } from '../limits/AdmissionGrant.ts';

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
    const { name, client, model } = this.#grant.target;
    return { name, client, model };
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
    this.#changing(() => this.#grant.responded(this.#nowMs(), status));
  }

  observe(hints: RateLimitHints): void {
    this.#changing(() => this.#paused(this.#grant.observe(this.#nowMs(), hints), this.#grant.reason));
  }

  settle(usage: Usage): void {
    this.#changing(() => this.#grant.settle(this.#nowMs(), usage));
  }

  firstContent(): void {
    this.#grant.firstContent();
  }

  end(outcome: Outcome, firstContentMs?: number): void {
    this.#changing(() => {
      const ended = this.#desk.machine.end(this.#grant, outcome, firstContentMs);
      this.#revoke = undefined;
      if (ended === undefined) return;
      const { target } = this.#grant;
      const { cooldownMs, ...settled } = ended.settlement;
      if (ended.limit?.kind === 'changed') {
        const { from, to, reason } = ended.limit;
        this.#desk.report({ type: 'limit.changed', limiter: target.name, from, to, reason }, this.#request);
      }
      this.#desk.tell([{ target, breaker: ended.breaker, revoked: ended.revoked }], this.#request);
      this.#request.onSettled?.(settled);
      this.#paused(cooldownMs, outcome.kind === 'failure' ? outcome.error.code : this.#grant.reason);
    });
  }

  release(outcome: Outcome, firstContentMs?: number): void {
    this.end(outcome, firstContentMs);
    this.#changing(() => this.#desk.machine.close(this.#grant));
  }

  #paused(waitMs: number, reason: ErrorCode): void {
    if (waitMs > 0) this.#request.onCooldown?.(waitMs, reason);
  }

  /** Whatever a listener does, those who wait are served. */
  #changing(work: () => void): void {
    try {
      work();
    } finally {
      this.#desk.serve();
    }
  }

  #nowMs(): number {
    return this.#desk.runtime.clock.now();
  }
}
