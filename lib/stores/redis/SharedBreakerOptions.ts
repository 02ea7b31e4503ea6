import type { SluiceFact } from '../../core/events.ts';
import type { CircuitBreakerOptions } from '../../limits/breakerRules.ts';

export interface SharedBreakerOptions extends CircuitBreakerOptions {
  /** Hears `breaker.changed`, after the change, whichever process brought it about. What it throws is ignored. */
  readonly onFact?: ((fact: SluiceFact) => void) | undefined;
}

/** How a breaker uses the store. */
export interface SharedBreakerSettings {
  /** In events and errors. */
  readonly name: string;
  /** Begins its keys in the store, with the hash tag. */
  readonly key: string;
  readonly leaseMs: number;
  readonly keepMs: number;
}
