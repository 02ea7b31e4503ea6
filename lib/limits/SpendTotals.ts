import type { Usage } from '../core/hints.ts';

export interface SpendTotal {
  /** In the currency of the prices. */
  readonly cost: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** Those of attempts that gave no answer; they are in the other two as well. */
  readonly wastedTokens: number;
}

/** What one attempt adds. */
export interface SpendPart {
  readonly usage: Usage;
  readonly cost: number;
  readonly wasted: boolean;
}

type Total = { -readonly [K in keyof SpendTotal]: SpendTotal[K] };

/** Sums by name, of which no more than so many are told apart but for those that must be. */
export class SpendTotals {
  readonly #most: number;
  readonly #rest: string;
  readonly #named = new Map<string, Total>();
  /** Of all names that came when there were too many. */
  #others: Total | undefined;
  #counted = 0;

  /** `most`: names that are told apart; `rest`: what the others are shown under, together. */
  constructor(most: number, rest: string) {
    this.#most = most;
    this.#rest = rest;
  }

  /** `kept`: it has a sum of its own, however many names there are. */
  add(name: string, part: SpendPart, kept: boolean): void {
    let total = this.#named.get(name);
    if (total === undefined && (kept || this.#counted < this.#most)) {
      total = nothing();
      this.#named.set(name, total);
      if (!kept) this.#counted++;
    }
    total ??= this.#others ??= nothing();
    const { inputTokens, outputTokens } = part.usage;
    total.cost += part.cost;
    total.inputTokens += inputTokens;
    total.outputTokens += outputTokens;
    if (part.wasted) total.wastedTokens += inputTokens + outputTokens;
  }

  costOf(name: string): number {
    return this.#named.get(name)?.cost ?? 0;
  }

  snapshot(): Readonly<Record<string, SpendTotal>> {
    const shown = new Map<string, SpendTotal>([...this.#named].map(([name, total]) => [name, { ...total }]));
    if (this.#others) shown.set(this.#rest, sum(this.#others, shown.get(this.#rest)));
    return Object.fromEntries(shown);
  }
}

function nothing(): Total {
  return { cost: 0, inputTokens: 0, outputTokens: 0, wastedTokens: 0 };
}

function sum(a: SpendTotal, b: SpendTotal = nothing()): SpendTotal {
  return {
    cost: a.cost + b.cost,
    inputTokens: a.inputTokens + b.inputTokens,
    outputTokens: a.outputTokens + b.outputTokens,
    wastedTokens: a.wastedTokens + b.wastedTokens,
  };
}
