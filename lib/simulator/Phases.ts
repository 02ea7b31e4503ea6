import { Samples } from './Samples.ts';
import type { Percentiles } from './Samples.ts';
import type { Phase } from './scenario/Scenario.ts';

/** What became of the calls of one phase. */
export interface PhaseFigures {
  readonly name: string;
  readonly calls: number;
  readonly answered: number;
  /** Requests of these calls that reached a provider. */
  readonly attempts: number;
  readonly attemptsPerCall: number;
  readonly rateLimited: number;
  /** 429s per request sent. */
  readonly rateLimitedShare: number;
  readonly firstContentMs: Percentiles;
  readonly totalMs: Percentiles;
}

/** The figures of one phase, as they grow. */
export class PhaseTally {
  readonly #name: string;
  readonly #firstContent = new Samples();
  readonly #total = new Samples();
  #calls = 0;
  #attempts = 0;
  #rateLimited = 0;

  constructor(name: string) {
    this.#name = name;
  }

  asked(): void {
    this.#calls++;
  }

  arrived(rejected: boolean): void {
    this.#attempts++;
    if (rejected) this.#rateLimited++;
  }

  answered(firstContentMs: number, totalMs: number): void {
    this.#firstContent.add(firstContentMs);
    this.#total.add(totalMs);
  }

  figures(): PhaseFigures {
    return {
      name: this.#name,
      calls: this.#calls,
      answered: this.#firstContent.size,
      attempts: this.#attempts,
      attemptsPerCall: this.#attempts / Math.max(1, this.#calls),
      rateLimited: this.#rateLimited,
      rateLimitedShare: this.#rateLimited / Math.max(1, this.#attempts),
      firstContentMs: this.#firstContent.percentiles(),
      totalMs: this.#total.percentiles(),
    };
  }
}

const NONE: readonly PhaseTally[] = [];

/** Which phases a call belongs to: by when it was made, and what it asks for. */
export class Phases {
  readonly #phases: readonly (readonly [Phase, PhaseTally])[];

  constructor(phases: readonly Phase[] = []) {
    this.#phases = phases.map((phase) => [phase, new PhaseTally(phase.name)]);
  }

  /** Those of a call made now. */
  of(model: string, nowMs: number): readonly PhaseTally[] {
    if (this.#phases.length === 0) return NONE;
    return this.#phases
      .filter(([phase]) => nowMs >= phase.fromMs && nowMs < phase.toMs && (phase.model ?? model) === model)
      .map(([, tally]) => tally);
  }

  figures(): readonly PhaseFigures[] {
    return this.#phases.map(([, tally]) => tally.figures());
  }
}
