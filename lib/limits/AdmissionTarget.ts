import type { Clock } from '../core/runtime.ts';
import type { ConcurrencyOptions } from './AdmissionOptions.ts';
import { Aimd } from './Aimd.ts';
import type { AimdDecision, AimdMark } from './Aimd.ts';
import type { CircuitBreakerOptions } from './breakerRules.ts';
import { CircuitBreaker } from './CircuitBreaker.ts';
import type { Cooldown } from './Cooldown.ts';
import type { LayerCost, QuotaLayer } from './QuotaLayer.ts';
import { QuotaRoute } from './QuotaRoute.ts';
import type { SettleRules } from './QuotaReservation.ts';
import { wholeNumber } from '../core/checks.ts';
import type { Outcome } from '../core/outcome.ts';
import type { LearnedRate } from './LearnedRate.ts';

export interface TargetParts {
  readonly name: string;
  readonly client: string;
  /** The name the model has there. */
  readonly model: string;
  readonly breaker: CircuitBreakerOptions;
  readonly concurrency: ConcurrencyOptions | undefined;
  readonly layers: readonly QuotaLayer[];
  readonly rules: SettleRules;
  readonly cooldown: Cooldown;
  /** Keeps the last of `layers` at what the provider really allows. */
  readonly learned: LearnedRate;
}

interface RoutedTenant {
  readonly layer: QuotaLayer | undefined;
  readonly routes: Map<object, QuotaRoute>;
}

/** One deployment of one model: everything that decides whether an attempt may be sent there now. */
export class AdmissionTarget {
  readonly name: string;
  readonly client: string;
  readonly model: string;
  readonly breaker: CircuitBreaker;
  readonly cooldown: Cooldown;
  readonly layers: readonly QuotaLayer[];
  readonly rules: SettleRules;
  readonly learned: LearnedRate;
  /** Grants whose attempts have not been sent. */
  readonly unsent: Set<object> = new Set();
  readonly #adaptive: Aimd | undefined;
  readonly #fixed: number;
  readonly #open: QuotaRoute;
  #inFlight = 0;
  #exhaustedUntilMs = -Infinity;

  /** @throws SluiceError `invalid_option` */
  constructor(parts: TargetParts, clock: Pick<Clock, 'now'>) {
    const { concurrency } = parts;
    this.name = parts.name;
    this.client = parts.client;
    this.model = parts.model;
    this.layers = parts.layers;
    this.rules = parts.rules;
    this.cooldown = parts.cooldown;
    this.learned = parts.learned;
    this.breaker = new CircuitBreaker(parts.breaker, clock);
    this.#adaptive = concurrency && concurrency.limit === undefined ? new Aimd(concurrency, clock) : undefined;
    this.#fixed = concurrency?.limit === undefined ? Infinity : wholeNumber('concurrency.limit', concurrency.limit);
    this.#open = new QuotaRoute(parts.layers, parts.cooldown, parts.layers.at(-1));
  }

  get limit(): number {
    return this.#adaptive?.limit ?? this.#fixed;
  }

  get inFlight(): number {
    return this.#inFlight;
  }

  get full(): boolean {
    return this.#inFlight >= this.limit;
  }

  /** How much of it is in use, for choosing the least loaded. */
  load(nowMs: number): number {
    const { limit } = this;
    const slots = limit === Infinity ? 0 : this.#inFlight / limit;
    let used = 0;
    for (const { requests, tokens } of this.layers) {
      for (const bucket of [requests, tokens]) {
        if (bucket) used = Math.max(used, 1 - bucket.level(nowMs) / bucket.burst);
      }
    }
    return Math.max(slots, used);
  }

  /** Milliseconds until it is worth asking: the breaker is open, or the quota of the account is used up. */
  unavailableMs(nowMs: number): number {
    return Math.max(this.breaker.openMs, Math.ceil(this.#exhaustedUntilMs - nowMs), 0);
  }

  /** Leaves it alone until then. */
  exhausted(untilMs: number): void {
    this.#exhaustedUntilMs = Math.max(this.#exhaustedUntilMs, untilMs);
  }

  /** What can never pass as one attempt is above this. */
  most(unit: keyof LayerCost): number {
    return this.#open.most(unit);
  }

  costOf(cost: LayerCost): LayerCost {
    const requests = Math.min(cost.requests, this.most('requests'));
    const tokens = Math.min(cost.tokens, this.most('tokens'));
    return requests === cost.requests && tokens === cost.tokens ? cost : { requests, tokens };
  }

  /** Until quota and cooldown let `cost` pass. Slots and breaker aside. */
  waitMs(nowMs: number, cost: LayerCost): number {
    const lookMs = this.learned.advance(nowMs);
    return Math.max(this.cooldown.waitMs(nowMs), Math.min(lookMs, this.#open.layersWaitMs(nowMs, cost)));
  }

  /** At least this long until `cost` can pass behind `ahead`. `alone`: nobody of `ahead` can go elsewhere. */
  foreseenMs(nowMs: number, ahead: LayerCost, cost: LayerCost, alone: boolean): number {
    return this.#open.foreseenMs(nowMs, alone ? ahead : NOTHING, this.costOf(cost), this.rules.settle === 'usage');
  }

  /** The way through for a tenant with a layer of its own, which keeps it. */
  routeFor({ layer, routes }: RoutedTenant): QuotaRoute {
    if (layer === undefined) return this.#open;
    let route = routes.get(this);
    if (route === undefined) {
      // The provider's reports are about the last layer of the open route, of which the tenant's own is none.
      route = new QuotaRoute([...this.layers, layer], this.cooldown, this.layers.at(-1));
      routes.set(this, route);
    }
    return route;
  }

  takeSlot(nowMs: number): AimdMark {
    this.#inFlight++;
    return this.#adaptive?.start(this.#inFlight) ?? { atMs: nowMs, cuts: 0, start: 0 };
  }

  /** Cuts or grows the limit. The slot stays taken: nobody may have it before the limit has changed. */
  judge(mark: AimdMark, outcome: Outcome, firstContentMs: number | undefined): AimdDecision | undefined {
    return this.#adaptive?.end(mark, outcome, this.#inFlight, firstContentMs);
  }

  freeSlot(): void {
    this.#inFlight--;
  }
}

const NOTHING: LayerCost = { requests: 0, tokens: 0 };
