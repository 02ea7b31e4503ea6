import { RetryBudget } from '../../lib/limits/RetryBudget.ts';
import type { RetryBudgetOptions } from '../../lib/limits/RetryBudget.ts';
import type { Deed, World } from './explore.ts';
import { ModelClock, must } from './rules.ts';

interface Entry {
  readonly atMs: number;
  readonly earned: number;
  readonly spent: number;
  readonly retries: number;
}

const WINDOW_MS = 10;
const RATIO = 0.5;
const FLOOR = 1;
export const BUDGET: RetryBudgetOptions = {
  ratio: RATIO,
  minPerSecond: (FLOOR * 1000) / WINDOW_MS,
  windowMs: WINDOW_MS,
};
const STEPS_MS = [1, 4] as const;

/** First attempts and retries of several sizes, at any distance from each other, against sums over the window made anew. */
export class BudgetWorld implements World {
  readonly #clock = new ModelClock();
  readonly #budget: RetryBudget;
  #left: number;
  #log: Entry[] = [];

  constructor(events: number, make: (clock: ModelClock) => RetryBudget = budgetOf) {
    this.#left = events;
    this.#budget = make(this.#clock);
  }

  deeds(): readonly Deed[] {
    const deeds: Deed[] = [];
    if (this.#left > 0) {
      for (const tokens of [1, 4]) deeds.push([`a first attempt of ${tokens}`, () => this.#deposit(tokens)]);
      for (const tokens of [0, 2]) deeds.push([`a retry of ${tokens}`, () => this.#withdraw(tokens)]);
    }
    for (const ms of STEPS_MS) deeds.push([`${ms} ms pass`, () => this.#pass(ms)]);
    return deeds;
  }

  key(): string {
    const log = this.#log.map(({ atMs, earned, spent, retries }) => [this.#clock.nowMs - atMs, earned, spent, retries]);
    return `${this.#left} ${log.join(';')}`;
  }

  wrong(): undefined {
    return undefined;
  }

  ended(): boolean {
    return this.#left === 0 && this.#log.length === 0;
  }

  #deposit(tokens: number): void {
    this.#left--;
    this.#budget.deposit(tokens);
    this.#log.push({ atMs: this.#clock.nowMs, earned: tokens, spent: 0, retries: 0 });
  }

  #withdraw(tokens: number): unknown {
    this.#left--;
    const cost = Math.max(1, tokens);
    const sum = (of: 'earned' | 'spent' | 'retries'): number =>
      this.#log.reduce((total, entry) => total + entry[of], 0);
    const byRatio = sum('spent') + cost <= RATIO * sum('earned');
    const due = byRatio || sum('retries') < FLOOR;
    const allowed = this.#budget.withdraw(tokens);
    must(
      allowed === due,
      `a retry of ${tokens} is ${allowed ? 'allowed' : 'refused'}: earned ${sum('earned')}, spent ${sum('spent')}`,
    );
    if (allowed) this.#log.push({ atMs: this.#clock.nowMs, earned: 0, spent: byRatio ? cost : 0, retries: 1 });
    return allowed;
  }

  #pass(ms: number): void {
    this.#clock.nowMs += ms;
    this.#log = this.#log.filter(({ atMs }) => this.#clock.nowMs - atMs < WINDOW_MS);
  }
}

export function budgetOf(clock: ModelClock): RetryBudget {
  return new RetryBudget(BUDGET, clock);
}
