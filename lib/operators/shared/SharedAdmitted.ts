import type { RateLimitHints, Usage } from '../../core/hints.ts';
import type { Outcome } from '../../core/outcome.ts';
import type { Admitted, BreakerPass, Deployment, Grant } from '../../core/ports.ts';
import type { SluiceError } from '../../core/errors.ts';

/** What one attempt holds here and in the store. */
export class SharedAdmitted implements Admitted {
  readonly #local: Admitted;
  readonly #grant: Grant | undefined;
  readonly #released: () => void;
  #pass: BreakerPass | undefined;

  /** `grant`: of the store's quota, where that decides. `released`: called when nothing is held any more. */
  constructor(local: Admitted, grant: Grant | undefined, released: () => void) {
    this.#local = local;
    this.#grant = grant;
    this.#released = released;
  }

  get waitedMs(): number {
    return this.#local.waitedMs;
  }

  get reservedTokens(): number {
    return this.#local.reservedTokens;
  }

  get deployment(): Deployment {
    return this.#local.deployment;
  }

  /** The breaker lets it go. */
  passes(pass: BreakerPass): void {
    this.#pass = pass;
  }

  onRevoke(revoke: (refusal: SluiceError) => void): void {
    this.#pass?.onRevoke(revoke);
  }

  dispatched(sentFollows?: boolean): void {
    this.#pass?.dispatched();
    (this.#grant ?? this.#local).dispatched(sentFollows);
  }

  sent(): void {
    (this.#grant ?? this.#local).sent?.();
  }

  responded(status: number): void {
    this.#grant?.responded?.(status);
    this.#local.responded(status);
  }

  observe(hints: RateLimitHints): void {
    (this.#grant ?? this.#local).observe(hints);
  }

  settle(usage: Usage): void {
    this.#grant?.settle(usage);
    this.#local.settle(usage);
  }

  firstContent(): void {
    this.#pass?.firstContent?.();
  }

  end(outcome: Outcome, firstContentMs?: number): void {
    this.#pass?.release(outcome);
    this.#grant?.release(outcome);
    this.#local.end(outcome, firstContentMs);
  }

  release(outcome: Outcome, firstContentMs?: number): void {
    this.end(outcome, firstContentMs);
    this.#local.release(outcome, firstContentMs);
    this.#released();
  }
}
