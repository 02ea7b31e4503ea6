import type { BreakerState, SluiceFact } from '../../core/events.ts';
import type { AcquireRequest } from '../../core/ports.ts';
import type { BreakerChangeReason } from '../../limits/CircuitBreaker.ts';

/** Tells of each change of a breaker once: whoever brought it about, and who listens to all. */
export class BreakerFacts {
  readonly #name: string;
  readonly #onFact: ((fact: SluiceFact) => void) | undefined;
  #shown: BreakerState = 'closed';

  constructor(name: string, onFact: ((fact: SluiceFact) => void) | undefined) {
    this.#name = name;
    this.#onFact = onFact;
  }

  /** Nothing is told if that is known. */
  changed(to: BreakerState, reason: BreakerChangeReason, request?: AcquireRequest): void {
    const from = this.#shown;
    if (from === to) return;
    this.#shown = to;
    const fact: SluiceFact = { type: 'breaker.changed', breaker: this.#name, from, to, reason };
    for (const listener of [this.#onFact, request?.onFact]) {
      try {
        listener?.(fact);
      } catch {
        // A listener's fault is its own.
      }
    }
  }
}
