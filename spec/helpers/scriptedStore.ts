import { Observable } from 'rxjs';
import type { SluiceError } from '../../lib/core/errors.ts';
import type {
  AcquireRequest,
  BreakerPass,
  BreakerSnapshot,
  Grant,
  LayerSnapshot,
  QuotaRequest,
} from '../../lib/core/ports.ts';
import type { CircuitBreakerOptions } from '../../lib/limits/breakerRules.ts';
import type {
  LimitStore,
  NamedLayer,
  RouteOptions,
  SharedBreaker,
  SharedQuotas,
  SharedRoute,
  SharedSlots,
} from '../../lib/limits/LimitStore.ts';
import type { QuotaRules } from '../../lib/limits/QuotaOptions.ts';

/** A store that does only what a test says, and remembers what it was told. */
export class ScriptedStore {
  readonly slots: Map<string, ScriptedSlots> = new Map();
  readonly breakers: Map<string, ScriptedBreaker> = new Map();
  /** By the names of their layers, with a blank between. */
  readonly routes: Map<string, ScriptedRoute> = new Map();
  /** Rules of the quotas, by their name. */
  readonly rules: Map<string, QuotaRules> = new Map();
  /** What new slots have at first. */
  have: number = Infinity;

  /** That of this name. */
  slotsOf(name: string): ScriptedSlots {
    return found(this.slots, name);
  }

  breakerOf(name: string): ScriptedBreaker {
    return found(this.breakers, name);
  }

  routeOf(names: string): ScriptedRoute {
    return found(this.routes, names);
  }

  connect(): LimitStore {
    const missing = (): never => {
      throw new Error('not of this store');
    };
    return {
      answerMs: 250,
      quotas: (quotas, rules) => {
        this.rules.set(quotas, rules);
        return this.#quotas(quotas);
      },
      breaker: (name, options = {}) => {
        const breaker = new ScriptedBreaker(options);
        this.breakers.set(name, breaker);
        return breaker;
      },
      slots: (name, limit) => {
        const slots = new ScriptedSlots(limit, this.have);
        this.slots.set(name, slots);
        return slots;
      },
      lanes: missing,
      spend: missing,
      setLoss: missing,
      onChange: missing,
    };
  }

  #quotas(quotas: string): SharedQuotas {
    return {
      route: (layers, options = {}) => {
        const names = layers.map(({ name }) => name).join(' ');
        const known = this.routes.get(names);
        if (known) return Object.assign(known, { layers, options });
        const route = new ScriptedRoute(layers, options);
        this.routes.set(names, route);
        return route;
      },
      reload: (rules) => void this.rules.set(quotas, rules),
    };
  }
}

export class ScriptedSlots implements SharedSlots {
  limit: number;
  have: number;
  refusing: string | undefined;
  onChange: (() => void) | undefined;
  closed = false;
  /** What is taken and wanted, as last told. */
  used: readonly number[] = [];

  constructor(limit: number, have: number) {
    this.limit = limit;
    this.have = Math.min(limit, have);
  }

  use(taken: number, wanted: number): void {
    this.used = [taken, wanted];
  }

  reload(limit: number): void {
    this.limit = limit;
    this.have = Math.min(this.have, limit);
  }

  close(): void {
    this.closed = true;
  }
}

/** One that asks a breaker of the store, until the test says what becomes of it. */
export interface ScriptedBreakerAsk {
  readonly request: AcquireRequest;
  /** Neither answered nor left. */
  readonly open: boolean;
  /** How its pass was released, once it was. */
  readonly released: unknown[];
  pass(): void;
  refuse(error: SluiceError | Error): void;
}

export class ScriptedBreaker implements SharedBreaker {
  options: CircuitBreakerOptions;
  state: BreakerSnapshot['state'] = 'closed';
  readonly asks: ScriptedBreakerAsk[] = [];
  /** Answers within the tick in which it is asked. Lets all pass at first. */
  answer: ((ask: ScriptedBreakerAsk) => void) | undefined = (ask) => ask.pass();
  retryAfterMs = 0;

  constructor(options: CircuitBreakerOptions) {
    this.options = options;
  }

  acquire(request: AcquireRequest): Observable<BreakerPass> {
    return new Observable((subscriber) => {
      const released: unknown[] = [];
      const pass = {
        onRevoke: () => {},
        dispatched: () => {},
        release: (outcome: unknown) => void released.push(outcome),
      };
      const ask: ScriptedBreakerAsk = {
        request,
        get open() {
          return !subscriber.closed;
        },
        released,
        pass: () => {
          subscriber.next(pass);
          subscriber.complete();
        },
        refuse: (error) => subscriber.error(error),
      };
      this.asks.push(ask);
      this.answer?.(ask);
    });
  }

  snapshot(): BreakerSnapshot {
    const { state, retryAfterMs } = this;
    return { state, retryAfterMs, consecutiveFailures: 0, calls: 0, failures: 0 };
  }

  reload(options: CircuitBreakerOptions): void {
    this.options = options;
  }
}

/** One that waits in a line of the store, until the test says what becomes of it. */
export interface ScriptedAsk {
  readonly request: QuotaRequest;
  /** Neither answered nor left. */
  readonly open: boolean;
  /** How its grant was released, once it was. */
  readonly released: unknown[];
  grant(): void;
  refuse(error: SluiceError | Error): void;
  queued(position: number, waitMs?: number): void;
}

export class ScriptedRoute implements SharedRoute {
  layers: readonly NamedLayer[];
  options: RouteOptions;
  readonly asks: ScriptedAsk[] = [];
  cooldownMs = 0;
  shown: LayerSnapshot[] = [];
  /** Answers within the tick in which it is asked. */
  answer: ((ask: ScriptedAsk) => void) | undefined;

  constructor(layers: readonly NamedLayer[], options: RouteOptions) {
    this.layers = layers;
    this.options = options;
  }

  get open(): ScriptedAsk[] {
    return this.asks.filter(({ open }) => open);
  }

  acquire(request: QuotaRequest): Observable<Grant> {
    return new Observable((subscriber) => {
      const released: unknown[] = [];
      const grant = {
        reservedTokens: request.cost.tokens,
        release: (outcome: unknown) => void released.push(outcome),
        dispatched: () => {},
        shrink: () => {},
        settle: () => {},
        observe: () => {},
      };
      const ask: ScriptedAsk = {
        request,
        get open() {
          return !subscriber.closed;
        },
        released,
        grant: () => {
          subscriber.next(grant as unknown as Grant);
          subscriber.complete();
        },
        refuse: (error) => subscriber.error(error),
        queued: (position, waitMs) => request.onQueued?.(position, waitMs),
      };
      this.asks.push(ask);
      this.answer?.(ask);
    });
  }

  observe(): void {}

  snapshot(): ReturnType<SharedRoute['snapshot']> {
    return { waiting: this.open.length, cooldownMs: this.cooldownMs, layers: this.shown };
  }
}

function found<V>(of: ReadonlyMap<string, V>, name: string): V {
  const one = of.get(name);
  if (one === undefined) throw new Error(`There is no ${name}. There are: ${[...of.keys()].join(', ')}`);
  return one;
}
