import type { Usage } from '../core/hints.ts';
import type { Clock } from '../core/runtime.ts';

/** What a model costs, per million tokens. */
export interface Price {
  readonly inputPerMTok: number;
  readonly outputPerMTok: number;
  readonly cachedInputPerMTok: number;
}

export interface SpendTotal {
  /** In the currency of the prices. */
  readonly cost: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** Those of attempts that gave no answer; they are in the other two as well. */
  readonly wastedTokens: number;
}

export interface SpendSnapshot {
  /** The day that is counted, in UTC. */
  readonly day: string;
  readonly models: Readonly<Record<string, SpendTotal>>;
  /** Calls without a tenant under the empty name. */
  readonly tenants: Readonly<Record<string, SpendTotal>>;
}

export interface Spending {
  readonly tenant: string | undefined;
  readonly model: string;
  readonly usage: Usage;
  readonly price: Price;
  readonly wasted: boolean;
}

export interface SpendRefusal {
  readonly cap: number;
  readonly spent: number;
  /** Until the next day begins. */
  readonly retryAfterMs: number;
}

type Totals = Map<string, { cost: number; inputTokens: number; outputTokens: number; wastedTokens: number }>;

const DAY_MS = 86_400_000;

/**
 * What has been spent since midnight UTC, by model and tenant. Nothing of an earlier day is remembered. It decides and never
 * acts.
 *
 * A wall clock that is set back does not bring an earlier day back.
 */
export class SpendLedger {
  readonly #clock: Pick<Clock, 'wallNow'>;
  #day = -Infinity;
  #models: Totals = new Map();
  #tenants: Totals = new Map();

  constructor(clock: Pick<Clock, 'wallNow'>) {
    this.#clock = clock;
  }

  spend({ tenant = '', model, usage, price, wasted }: Spending): void {
    this.#turn();
    const cost = costOfUsage(usage, price);
    add(this.#models, model, usage, cost, wasted);
    add(this.#tenants, tenant, usage, cost, wasted);
  }

  /** Whether the tenant has spent what it may today. `cap`: `Infinity` for none. */
  refusal(tenant: string | undefined, cap: number): SpendRefusal | undefined {
    this.#turn();
    const spent = this.#tenants.get(tenant ?? '')?.cost ?? 0;
    if (spent < cap) return undefined;
    return { cap, spent, retryAfterMs: Math.max(0, (this.#day + 1) * DAY_MS - this.#clock.wallNow()) };
  }

  snapshot(): SpendSnapshot {
    this.#turn();
    return {
      day: isoDay(this.#day),
      models: shown(this.#models),
      tenants: shown(this.#tenants),
    };
  }

  #turn(): void {
    const day = Math.floor(this.#clock.wallNow() / DAY_MS);
    if (day <= this.#day) return;
    this.#day = day;
    this.#models = new Map();
    this.#tenants = new Map();
  }
}

/** Cached input at its own price, the rest of the input and the output at theirs. */
export function costOfUsage({ inputTokens, outputTokens, cachedInputTokens = 0 }: Usage, price: Price): number {
  const cached = Math.min(cachedInputTokens, inputTokens);
  const input = (inputTokens - cached) * price.inputPerMTok + cached * price.cachedInputPerMTok;
  return (input + outputTokens * price.outputPerMTok) / 1_000_000;
}

function add(totals: Totals, name: string, { inputTokens, outputTokens }: Usage, cost: number, wasted: boolean): void {
  const total = totals.get(name) ?? { cost: 0, inputTokens: 0, outputTokens: 0, wastedTokens: 0 };
  total.cost += cost;
  total.inputTokens += inputTokens;
  total.outputTokens += outputTokens;
  if (wasted) total.wastedTokens += inputTokens + outputTokens;
  totals.set(name, total);
}

function shown(totals: Totals): Readonly<Record<string, SpendTotal>> {
  return Object.fromEntries([...totals].map(([name, total]) => [name, { ...total }]));
}

/** Days since the epoch as a date. Source: H. Hinnant, "chrono-Compatible Low-Level Date Algorithms", `civil_from_days`. */
function isoDay(days: number): string {
  const shifted = days + 719_468;
  const era = Math.floor(shifted / 146_097);
  const ofEra = shifted - era * 146_097;
  const yearOfEra = Math.floor(
    (ofEra - Math.floor(ofEra / 1_460) + Math.floor(ofEra / 36_524) - Math.floor(ofEra / 146_096)) / 365,
  );
  const ofYear = ofEra - (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100));
  const march = Math.floor((5 * ofYear + 2) / 153);
  const day = ofYear - Math.floor((153 * march + 2) / 5) + 1;
  const month = march < 10 ? march + 3 : march - 9;
  const year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0);
  const two = (value: number): string => String(value).padStart(2, '0');
  return `${String(year).padStart(4, '0')}-${two(month)}-${two(day)}`;
}
