import type { SluiceError } from './errors.ts';
import type { Outcome } from './outcome.ts';
import type { BreakerPass } from './ports.ts';

/** What a breaker wants to know of a pass. */
export interface PassOwner {
  /** It is sent or released: no longer to be revoked. */
  settled(): void;
  firstContent(): void;
  moved(): void;
  release(outcome: Outcome): void;
}

/** A pass of a breaker that may be taken back until its attempt is sent. */
export class RevocablePass implements BreakerPass {
  readonly model: string | undefined;
  readonly #owner: PassOwner;
  #released = false;
  #refusal: SluiceError | undefined;
  #revoke: ((refusal: SluiceError) => void) | undefined;

  constructor(model: string | undefined, owner: PassOwner) {
    this.model = model;
    this.#owner = owner;
  }

  onRevoke(revoke: (refusal: SluiceError) => void): void {
    this.#revoke = revoke;
    this.revoke();
  }

  dispatched(): void {
    this.#owner.settled();
    this.#owner.moved();
  }

  firstContent(): void {
    this.#owner.firstContent();
    this.#owner.moved();
  }

  release(outcome: Outcome): void {
    if (this.#released) return;
    this.#released = true;
    this.#revoke = undefined;
    this.#owner.settled();
    this.#owner.release(outcome);
  }

  doom(refusal: SluiceError): void {
    this.#refusal = refusal;
  }

  /** Does nothing unless it is doomed, and only once. */
  revoke(): void {
    if (this.#refusal === undefined || this.#released) return;
    const revoke = this.#revoke;
    this.#revoke = undefined;
    revoke?.(this.#refusal);
  }
}
