import { Observable } from 'rxjs';
import { startTimer } from '../../lib/core/runtime.ts';
import type { Runtime } from '../../lib/core/runtime.ts';
import { SluiceError } from '../../lib/core/errors.ts';
import type { CircuitBreakerOptions } from '../../lib/limits/breakerRules.ts';
import { Cooldown } from '../../lib/limits/Cooldown.ts';
import type {
  LimitStore,
  NamedLayer,
  RouteOptions,
  SharedBreaker,
  SharedQuotas,
  SharedRoute,
  SharedSlots,
  SharedSpend,
  StoreChange,
  StoreLoss,
} from '../../lib/limits/LimitStore.ts';
import { QuotaLayer } from '../../lib/limits/QuotaLayer.ts';
import { checkedQuotaRules } from '../../lib/limits/QuotaOptions.ts';
import type { QuotaRules } from '../../lib/limits/QuotaOptions.ts';
import { QuotaRoute } from '../../lib/limits/QuotaRoute.ts';
import { createBreaker } from '../../lib/operators/createBreaker.ts';
import { createLanes } from '../../lib/operators/createLanes.ts';
import { observeOn, snapshotOf } from '../../lib/operators/createQuota.ts';
import { QuotaDesk } from '../../lib/operators/QuotaDesk.ts';

/** One store in memory, seen by several processes. */
export class FakeStore {
  readonly runtime: Runtime;
  /** Of a question and its answer. 0: answers in the same tick. */
  latencyMs: number;
  /** Grants that are out, and places in lines. */
  readonly held = { grants: 0, places: 0 };
  asked = 0;
  losses: StoreLoss[] = [];
  readonly #quotas = new Map<string, FakeQuotas>();
  readonly #lanes = new Map<string, ReturnType<typeof createLanes>>();
  readonly #breakers = new Map<string, FakeBreaker>();
  readonly #slots = new Map<string, FakeSlots>();
  readonly #spend = new Map<string, number>();
  readonly #listeners = new Set<(change: StoreChange) => void>();

  constructor(runtime: Runtime, latencyMs = 0) {
    this.runtime = runtime;
    this.latencyMs = latencyMs;
  }

  /** Leases of slots that are not closed. */
  get leases(): number {
    return [...this.#slots.values()].reduce((sum, slots) => sum + slots.size, 0);
  }

  /** Nobody may have any of its slots, for that reason; `undefined`: they may again. */
  refuse(reason: string | undefined): void {
    for (const slots of this.#slots.values()) slots.refuse(reason);
  }

  tell(type: StoreChange['type'], reason?: string): void {
    for (const listener of this.#listeners) listener({ type, reason, atMs: this.runtime.clock.now() });
  }

  /** As one process sees it. */
  connect(): LimitStore {
    const at = <T>(map: Map<string, T>, name: string, make: () => T): T => {
      const found = map.get(name) ?? make();
      map.set(name, found);
      return found;
    };
    return {
      answerMs: 250,
      quotas: (name, rules) => at(this.#quotas, name, () => new FakeQuotas(this, rules)),
      lanes: (name, options) => at(this.#lanes, name, () => createLanes(options, this.runtime)),
      breaker: (name, options) => at(this.#breakers, name, () => new FakeBreaker(this, name, options ?? {})),
      slots: (name, limit) => at(this.#slots, name, () => new FakeSlots(this, limit)).lease(),
      spend: () => this.#spendOf(new Map()),
      setLoss: (loss) => void this.losses.push(loss),
      onChange: (listener) => {
        this.#listeners.add(listener);
        return () => void this.#listeners.delete(listener);
      },
    };
  }

  /** Does it when the answer is there. */
  after(work: () => void): () => void {
    this.asked++;
    if (this.latencyMs > 0) return startTimer(this.runtime, this.latencyMs, work);
    work();
    return () => {};
  }

  #spendOf(own: Map<string, number>): SharedSpend {
    const heard = new Map<string, number>();
    const key = (day: number, tenant: string): string => `${day} ${tenant}`;
    const hear = (of: string): unknown => heard.set(of, (this.#spend.get(of) ?? 0) - (own.get(of) ?? 0));
    return {
      add: (day, tenant, cost) => {
        const of = key(day, tenant);
        own.set(of, (own.get(of) ?? 0) + cost);
        this.#spend.set(of, (this.#spend.get(of) ?? 0) + cost);
        this.after(() => hear(of));
      },
      others: (day, tenant) => {
        const known = heard.get(key(day, tenant));
        if (known !== undefined) this.after(() => hear(key(day, tenant)));
        return known;
      },
      fresh: (day, tenant) => heard.has(key(day, tenant)),
      ask: (day, tenant, done) =>
        this.after(() => {
          hear(key(day, tenant));
          done();
        }),
      close: () => {},
    };
  }
}

class FakeQuotas implements SharedQuotas {
  readonly #store: FakeStore;
  #rules: QuotaRules;
  readonly #desk: QuotaDesk;
  readonly #layers = new Map<string, QuotaLayer>();
  readonly #pauses = new Map<string, Cooldown>();
  readonly #routes = new Map<string, { route: QuotaRoute; shared: SharedRoute }>();

  constructor(store: FakeStore, rules: QuotaRules) {
    this.#store = store;
    this.#rules = rules;
    this.#desk = new QuotaDesk(checkedQuotaRules(rules), store.runtime);
  }

  reload(rules: QuotaRules): void {
    this.#rules = rules;
  }

  route(layers: readonly NamedLayer[], { reportsTo }: RouteOptions = {}): SharedRoute {
    const nowMs = this.#store.runtime.clock.now();
    const { arrivalMarginMs, cooldown } = checkedQuotaRules(this.#rules);
    const found = layers.map(({ name, ...rates }) => {
      const next = new QuotaLayer(name, rates, arrivalMarginMs, nowMs);
      const known = this.#layers.get(name);
      if (known && (known.requests !== undefined) === (next.requests !== undefined)) {
        if (next.requests ?? next.tokens) known.setRate(nowMs, rates);
        return known;
      }
      this.#layers.set(name, next);
      return next;
    });
    const names = layers.map(({ name }) => name);
    const pause = JSON.stringify(names.filter((name) => !name.startsWith('tenant:')));
    const paused = this.#pauses.get(pause) ?? new Cooldown(cooldown, this.#store.runtime.random);
    this.#pauses.set(pause, paused);
    const key = JSON.stringify(names);
    const known = this.#routes.get(key);
    this.#desk.serve();
    if (known && known.route.layers.every((layer, i) => layer === found[i])) return known.shared;
    const route = new QuotaRoute(
      found,
      paused,
      found.find(({ name }) => name === reportsTo),
    );
    const shared: SharedRoute = {
      acquire: (request) =>
        new Observable((subscriber) => {
          const { held } = this.#store;
          held.places++;
          subscriber.add(() => void held.places--);
          const stop = this.#store.after(() => {
            subscriber.add(
              this.#desk
                .acquire(request, () => route)
                .subscribe({
                  next: (grant) => {
                    held.grants++;
                    let out = true;
                    const release = grant.release.bind(grant);
                    grant.release = (outcome) => {
                      if (out) held.grants--;
                      out = false;
                      release(outcome);
                    };
                    subscriber.next(grant);
                  },
                  error: (error: unknown) => subscriber.error(error),
                  complete: () => subscriber.complete(),
                }),
            );
          });
          subscriber.add(stop);
        }),
      observe: (hints) => observeOn(route, this.#desk, hints),
      snapshot: () => snapshotOf(route, route.line.size, this.#store.runtime),
    };
    this.#routes.set(key, { route, shared });
    return shared;
  }
}

class FakeBreaker implements SharedBreaker {
  readonly #store: FakeStore;
  #local: ReturnType<typeof createBreaker>;

  constructor(store: FakeStore, name: string, options: CircuitBreakerOptions) {
    this.#store = store;
    this.#local = createBreaker({ ...options, name }, store.runtime);
  }

  acquire(request: Parameters<SharedBreaker['acquire']>[0]): ReturnType<SharedBreaker['acquire']> {
    return new Observable((subscriber) => {
      const local = this.#local;
      subscriber.add(this.#store.after(() => subscriber.add(local.acquire(request).subscribe(subscriber))));
    });
  }

  snapshot(): ReturnType<SharedBreaker['snapshot']> {
    return this.#local.snapshot();
  }

  reload(): void {}
}

class FakeSlots {
  readonly #store: FakeStore;
  readonly #leases = new Set<Lease>();
  #limit: number;

  constructor(store: FakeStore, limit: number) {
    this.#store = store;
    this.#limit = limit;
  }

  get size(): number {
    return this.#leases.size;
  }

  refuse(reason: string | undefined): void {
    for (const lease of this.#leases) {
      lease.refusing = reason;
      lease.changed?.();
    }
  }

  lease(): SharedSlots {
    const lease: Lease = { have: 0, wants: 0, taken: 0, changed: undefined, refusing: undefined };
    this.#leases.add(lease);
    return {
      get have() {
        return lease.have;
      },
      get refusing() {
        return lease.refusing;
      },
      get onChange() {
        return lease.changed;
      },
      set onChange(changed) {
        lease.changed = changed;
      },
      use: (taken, wanted) => {
        [lease.taken, lease.wants] = [taken, taken + wanted];
        lease.have = Math.min(lease.have, Math.max(taken, lease.wants));
        this.#store.after(() => this.#share());
      },
      reload: (limit) => {
        this.#limit = limit;
        this.#store.after(() => this.#share());
      },
      close: () => {
        this.#leases.delete(lease);
        this.#share();
      },
    };
  }

  #share(): void {
    const grown: Lease[] = [];
    for (const lease of this.#leases) {
      const others = [...this.#leases].reduce((sum, other) => sum + (other === lease ? 0 : other.have), 0);
      const have = Math.max(lease.taken, Math.min(lease.wants, this.#limit - others));
      if (have > lease.have) grown.push(lease);
      lease.have = have;
    }
    for (const lease of grown) lease.changed?.();
  }
}

interface Lease {
  have: number;
  wants: number;
  taken: number;
  changed: (() => void) | undefined;
  refusing: string | undefined;
}

export const unavailable = (): SluiceError =>
  new SluiceError('limiter_unavailable', 'the store is lost', { while: 'queue' });
