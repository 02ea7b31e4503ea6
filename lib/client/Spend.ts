import { Observable } from 'rxjs';
import type { Clock } from '../core/runtime.ts';
import type { SharedSpend } from '../limits/LimitStore.ts';
import { SpendLedger } from '../limits/SpendLedger.ts';
import type { Spending, SpendRefusal, SpendSnapshot } from '../limits/SpendLedger.ts';

/** What calls cost today: of this process, and, for tenants with a cap, of the others that share the store. */
export class Spend {
  readonly #own: SpendLedger;
  readonly #shared: SharedSpend | undefined;

  constructor(clock: Pick<Clock, 'wallNow'>, shared: SharedSpend | undefined) {
    this.#own = new SpendLedger(clock);
    this.#shared = shared;
  }

  /** Returns the cost. */
  spend(spending: Spending): number {
    const cost = this.#own.spend(spending);
    const { tenant = '', cap } = spending;
    if (cap < Infinity && cost > 0) this.#shared?.add(this.#own.day, tenant, cost);
    return cost;
  }

  /** Completes once it is known what others have spent; `undefined` where it is, or is of no matter. */
  unheard(tenant: string | undefined, cap: number): Observable<never> | undefined {
    const shared = this.#shared;
    if (shared === undefined || cap === Infinity || shared.fresh(this.#own.day, tenant ?? '')) return undefined;
    // Hand-written: the store calls back, and is to be told when nobody waits any more.
    return new Observable((subscriber) => shared.ask(this.#own.day, tenant ?? '', () => subscriber.complete()));
  }

  refusal(tenant: string | undefined, cap: number): SpendRefusal | undefined {
    return this.#own.refusal(tenant, cap, cap < Infinity ? this.#othersOf(tenant) : 0);
  }

  snapshot(): SpendSnapshot {
    return this.#own.snapshot();
  }

  /** What all have spent, where the tenant has a cap. */
  spentBy(tenant: string, own: number): number {
    return own + (this.#othersOf(tenant) ?? 0);
  }

  close(): void {
    this.#shared?.close();
  }

  #othersOf(tenant: string | undefined): number | undefined {
    return this.#shared?.others(this.#own.day, tenant ?? '');
  }
}
