import { Samples } from './Samples.ts';
import type { Percentiles } from './Samples.ts';

/** What became of the calls of one tenant. */
export interface TenantFigures {
  readonly calls: number;
  readonly answered: number;
  /** Requests of these calls that got a 429. */
  readonly rateLimited: number;
  /** From the call to its first request. */
  readonly queueMs: Percentiles;
  /** From the call to its first content, of those that were answered. */
  readonly firstContentMs: Percentiles;
  readonly cost: number;
}

/** The figures of one tenant, as they grow. */
export class TenantTally {
  readonly #queue = new Samples();
  readonly #firstContent = new Samples();
  #calls = 0;
  #rateLimited = 0;
  #cost = 0;

  asked(): void {
    this.#calls++;
  }

  sent(queueMs: number): void {
    this.#queue.add(queueMs);
  }

  rateLimited(): void {
    this.#rateLimited++;
  }

  answered(firstContentMs: number): void {
    this.#firstContent.add(firstContentMs);
  }

  paid(cost: number): void {
    this.#cost += cost;
  }

  figures(): TenantFigures {
    return {
      calls: this.#calls,
      answered: this.#firstContent.size,
      rateLimited: this.#rateLimited,
      queueMs: this.#queue.percentiles(),
      firstContentMs: this.#firstContent.percentiles(),
      cost: this.#cost,
    };
  }
}
