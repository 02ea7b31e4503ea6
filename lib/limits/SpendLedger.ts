import type { Usage } from '../core/hints.ts';
import type { Clock } from '../core/runtime.ts';
import { SpendTotals } from './SpendTotals.ts';
import type { SpendTotal } from './SpendTotals.ts';

/** What a model costs, per million tokens. */
export interface Price {
  readonly inputPerMTok: number;
  readonly outputPerMTok: number;
  readonly cachedInputPerMTok: number;
}

export interface SpendSnapshot {
  /** The day that is counted, in UTC. */
  readonly day: string;
  /** Beyond 1,000 names the others together, as `other`. */
  readonly models: Readonly<Record<string, SpendTotal>>;
  /** Calls without a tenant under the empty name. Beyond 1,000 names those without a cap together, as `other`. */
  readonly tenants: Readonly<Record<string, SpendTotal>>;
}

export interface Spending {
  readonly tenant: string | undefined;
  readonly model: string;
  readonly usage: Usage;
  readonly price: Price;
  readonly wasted: boolean;
  /** What the tenant may spend a day; `Infinity` for no cap. */
  readonly cap: number;
}

export interface SpendRefusal {
  readonly cap: number;
  readonly spent: number;
  /** Until the next day begins. */
  readonly retryAfterMs: number;
}

/** Names of models, and of tenants without a cap, that are told apart in one day. */
export const SPEND_NAMES = 1_000;

const OTHER = 'other';
const DAY_MS = 86_400_000;

/**
 * What has been spent since midnight UTC, by model and tenant. Nothing of an earlier day is remembered. It decides and never
 * acts.
 *
 * Memory: names come from callers, so no more than {@link SPEND_NAMES} of them are told apart in a day; what the others spend
 * is counted together. But a tenant with a cap has a sum of its own whatever happens, or it could be spent past its cap:
 * where a cap holds for everyone, each name that has been charged for is remembered until the day is over.
 *
 * A wall clock that is set back does not bring an earlier day back.
 */
export class SpendLedger {
  readonly #clock: Pick<Clock, 'wallNow'>;
  #day = -Infinity;
  #models = new SpendTotals(SPEND_NAMES, OTHER);
  #tenants = new SpendTotals(SPEND_NAMES, OTHER);

  constructor(clock: Pick<Clock, 'wallNow'>) {
    this.#clock = clock;
  }

  /** Returns the cost. */
  spend({ tenant = '', model, usage, price, wasted, cap }: Spending): number {
    this.#turn();
    const part = { usage, cost: costOfUsage(usage, price), wasted };
    this.#models.add(model, part, false);
    this.#tenants.add(tenant, part, cap < Infinity);
    return part.cost;
  }

  /** Days since the epoch, of the day that is counted. */
  get day(): number {
    this.#turn();
    return this.#day;
  }

  /** Whether the tenant has spent what it may today. `cap`: `Infinity` for none; `others`: what it has spent elsewhere. */
  refusal(tenant: string | undefined, cap: number, others = 0): SpendRefusal | undefined {
    this.#turn();
    const spent = this.#tenants.costOf(tenant ?? '') + others;
    if (spent < cap) return undefined;
    return { cap, spent, retryAfterMs: Math.max(0, (this.#day + 1) * DAY_MS - this.#clock.wallNow()) };
  }

  snapshot(): SpendSnapshot {
    this.#turn();
    return {
      day: isoDay(this.#day),
      models: this.#models.snapshot(),
      tenants: this.#tenants.snapshot(),
    };
  }

  #turn(): void {
    const day = Math.floor(this.#clock.wallNow() / DAY_MS);
    if (day <= this.#day) return;
    this.#day = day;
    this.#models = new SpendTotals(SPEND_NAMES, OTHER);
    this.#tenants = new SpendTotals(SPEND_NAMES, OTHER);
  }
}

/** Cached input at its own price, the rest of the input and the output at theirs. */
export function costOfUsage({ inputTokens, outputTokens, cachedInputTokens = 0 }: Usage, price: Price): number {
  const cached = Math.min(cachedInputTokens, inputTokens);
  const input = (inputTokens - cached) * price.inputPerMTok + cached * price.cachedInputPerMTok;
  return (input + outputTokens * price.outputPerMTok) / 1_000_000;
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
  return `${year}-${two(month)}-${two(day)}`;
}
