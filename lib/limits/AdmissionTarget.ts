import { wholeOrInfinity } from '../core/checks.ts';
import type { Clock } from '../core/runtime.ts';
import type { ConcurrencyOptions } from './AdmissionOptions.ts';
import { Aimd } from './Aimd.ts';
import type { AimdDecision, AimdMark } from './Aimd.ts';
import type { CircuitBreakerOptions } from './breakerRules.ts';
import { CircuitBreaker } from './CircuitBreaker.ts';
import { Cooldown } from './Cooldown.ts';
import type { CooldownOptions } from './Cooldown.ts';
import { NOTHING } from './QuotaLayer.ts';
import type { LayerCost, LayerOptions, QuotaLayer } from './QuotaLayer.ts';
import { QuotaRoute } from './QuotaRoute.ts';
import type { SettleRules } from './QuotaReservation.ts';
import type { Outcome } from '../core/outcome.ts';
import type { Deployment, LayerSnapshot } from '../core/ports.ts';
import type { LearnedRate } from './LearnedRate.ts';

export interface TargetParts {
  readonly name: string;
  readonly client: string;
  /** The name the model has there. */
  readonly model: string;
  readonly breaker: CircuitBreakerOptions;
  readonly concurrency: ConcurrencyOptions | undefined;
  readonly layers: readonly QuotaLayer[];
  readonly rules: SettleRules & { readonly cooldown: CooldownOptions };
  readonly exhaustedMs: number;
  readonly learned: LearnedRate;
  /** Those of the deployment's own layer. */
  readonly rates: LayerOptions;
  /** What `learned` began from: with other rates it begins anew. */
  readonly configured: string;
}

/** What is decided about a deployment elsewhere, for several processes together. */
export interface TargetGate {
  /** Until its breaker lets someone try. */
  readonly closedMs: number;
  /** Places in its ceiling that this process may take. */
  readonly places: number;
  /** Whether its quota is decided there for this tenant; then quota and cooldown are not decided here. */
  decides(tenant: string): boolean;
  /** Whether one of this tenant and cost may go by what was granted there. */
  lets(tenant: string, cost: LayerCost): boolean;
  /** Whether it is a quota of this tenant alone that it waits for there, so that nobody else has to wait behind it. */
  waitsAlone(tenant: string): boolean;
}

interface RoutedTenant {
  readonly name: string;
  readonly layer: QuotaLayer | undefined;
  readonly routes: WeakMap<object, QuotaRoute>;
}

/** One deployment of one model: everything that decides whether an attempt may be sent there now. */
export class AdmissionTarget {
  readonly client: string;
  readonly model: string;
  /** As it is shown to those who ask there. */
  deployment: Deployment;
  readonly breaker: CircuitBreaker;
  readonly cooldown: Cooldown;
  /** Grants whose attempts have not been sent. */
  readonly unsent: Set<object> = new Set();
  gate: TargetGate | undefined;
  readonly #clock: Pick<Clock, 'now'>;
  #parts: TargetParts;
  #adaptive: Aimd | undefined;
  #fixed: number;
  #open: QuotaRoute;
  #inFlight = 0;
  #exhaustedUntilMs = -Infinity;

  /** @throws SluiceError `invalid_option` */
  constructor(parts: TargetParts, clock: Pick<Clock, 'now'>, random: () => number) {
    const { concurrency } = parts;
    this.client = parts.client;
    this.model = parts.model;
    this.deployment = deploymentOf(parts);
    this.cooldown = new Cooldown(parts.rules.cooldown, random);
    this.breaker = new CircuitBreaker(parts.breaker, clock);
    this.#clock = clock;
    this.#parts = parts;
    this.#adaptive = concurrency && concurrency.limit === undefined ? new Aimd(concurrency, clock) : undefined;
    this.#fixed = wholeOrInfinity('concurrency.limit', concurrency?.limit ?? Infinity);
    this.#open = this.#routeThrough(parts.layers);
  }

  /** Takes other rules, which have been checked. Client and model are the same. */
  reload(parts: TargetParts): void {
    const { concurrency } = parts;
    const adapts = concurrency && concurrency.limit === undefined ? concurrency : undefined;
    this.#parts = parts;
    this.deployment = deploymentOf(parts);
    this.#fixed = concurrency?.limit ?? Infinity;
    if (adapts && this.#adaptive) this.#adaptive.reload(adapts);
    else this.#adaptive = adapts && new Aimd(adapts, this.#clock);
    this.cooldown.reload(parts.rules.cooldown);
    this.breaker.reload(parts.breaker);
    this.#open = this.#routeThrough(parts.layers);
  }

  /** Of the model; where it has several deployments, `model@client`. */
  get name(): string {
    return this.#parts.name;
  }

  get layers(): readonly QuotaLayer[] {
    return this.#parts.layers;
  }

  get rules(): SettleRules {
    return this.#parts.rules;
  }

  /** So long it is left alone when its quota is exhausted and nobody says for how long. */
  get exhaustedMs(): number {
    return this.#parts.exhaustedMs;
  }

  /** Keeps the last of `layers` at what the provider really allows. */
  get learned(): LearnedRate {
    return this.#parts.learned;
  }

  /** The rates that `learned` began from. */
  get configured(): string {
    return this.#parts.configured;
  }

  get limit(): number {
    return this.#adaptive?.limit ?? this.#fixed;
  }

  get inFlight(): number {
    return this.#inFlight;
  }

  get full(): boolean {
    return this.#inFlight >= Math.min(this.limit, this.gate?.places ?? Infinity);
  }

  /** How much of it is in use, for choosing the least loaded. */
  load(nowMs: number): number {
    let used = this.#inFlight / this.limit;
    for (const { requests, tokens } of this.layers) {
      for (const bucket of [requests, tokens]) {
        if (bucket) used = Math.max(used, 1 - bucket.level(nowMs) / bucket.burst);
      }
    }
    return used;
  }

  /** Milliseconds until it is worth asking: the breaker is open, or the quota of the account is used up. */
  unavailableMs(nowMs: number): number {
    const closedMs = this.gate?.closedMs ?? 0;
    return Math.max(this.breaker.openMs, closedMs, Math.ceil(this.#exhaustedUntilMs - nowMs), 0);
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
    return this.#open.clamped(cost);
  }

  /** Until quota and cooldown let `cost` pass. Slots and breaker aside. */
  waitMs(nowMs: number, cost: LayerCost): number {
    const pausedMs = this.cooldown.waitMs(nowMs);
    const waitMs = this.#open.layersWaitMs(nowMs, cost);
    return Math.max(pausedMs, Math.min(waitMs, this.learned.advance(nowMs, pausedMs, waitMs)));
  }

  /** Whether one of this cost may go now, gate and breaker aside. */
  hasRoom(nowMs: number, cost: LayerCost): boolean {
    if (this.full || this.#exhaustedUntilMs > nowMs || this.cooldown.waitMs(nowMs) > 0) return false;
    return this.#open.layersWaitMs(nowMs, cost) === 0;
  }

  /** At least this long until `cost` can pass behind `ahead`. `alone`: nobody of `ahead` can go elsewhere. */
  foreseenMs(nowMs: number, ahead: LayerCost, cost: LayerCost, alone: boolean): number {
    return this.#open.foreseenMs(nowMs, alone ? ahead : NOTHING, this.costOf(cost), this.rules.settle === 'usage');
  }

  /** Whether one of this tenant and cost may go, where that is decided elsewhere. */
  lets(tenant: string, cost: LayerCost): boolean {
    return this.gate === undefined || !this.gate.decides(tenant) || this.gate.lets(tenant, cost);
  }

  /** Whether what this tenant waits for is its own, where that is decided elsewhere. */
  waitsAlone(tenant: string): boolean {
    return this.gate?.waitsAlone(tenant) ?? false;
  }

  /** The way through for a tenant with a layer of its own, which keeps it. */
  routeFor({ name, layer, routes }: RoutedTenant): QuotaRoute {
    // Stryker disable next-line ArrowFunction: nobody waits for the pauses there
    if (this.gate?.decides(name)) return new QuotaRoute([], new Cooldown({}, () => 0), undefined);
    if (layer === undefined) return this.#open;
    let route = routes.get(this);
    if (route === undefined) {
      route = this.#routeThrough([...this.layers, layer]);
      routes.set(this, route);
    }
    return route;
  }

  /** Layers as they are to be shown: what limits nothing is not. */
  snapshotLayers(nowMs: number): LayerSnapshot[] {
    return this.layers.map((layer) => {
      if (layer !== this.learned.layer) return layer.snapshot(nowMs);
      return { ...this.learned.snapshot(nowMs), layer: this.name };
    });
  }

  /** Whether nothing would be lost if it were forgotten. `stale`: but for what was learned. */
  forgettable(nowMs: number, stale: boolean): boolean {
    if (this.#inFlight > 0 || this.unsent.size > 0 || this.unavailableMs(nowMs) > 0) return false;
    if (this.cooldown.waitMs(nowMs) > 0 || !this.learned.layer.atRest(nowMs)) return false;
    const unchanged = this.cooldown.idle && this.breaker.atRest && (this.#adaptive?.atRest ?? true);
    return stale || (unchanged && this.#isAsConfigured(nowMs));
  }

  /** Returns what {@link judge} is to be told. */
  takeSlot(): AimdMark | undefined {
    this.#inFlight++;
    return this.#adaptive?.start(this.#inFlight);
  }

  /**
   * Cuts or grows the limit. The slot stays taken: nobody may have it before the limit has changed. `takenAtMs`: when it was
   * taken, for one that found no limit to be found then.
   */
  judge(
    mark: AimdMark | undefined,
    takenAtMs: number,
    outcome: Outcome,
    firstContentMs: number | undefined,
  ): AimdDecision | undefined {
    if (this.#adaptive === undefined) return undefined;
    const from = mark ?? { atMs: takenAtMs, cuts: 0, start: 0 };
    return this.#adaptive.end(from, outcome, this.#inFlight, firstContentMs);
  }

  freeSlot(): void {
    this.#inFlight--;
  }

  #isAsConfigured(nowMs: number): boolean {
    const { requests, tokens } = this.learned.snapshot(nowMs);
    const { requestsPerMinute, tokensPerMinute } = this.#parts.rates;
    return requests?.perMinute === requestsPerMinute && tokens?.perMinute === tokensPerMinute;
  }

  /** The provider's reports are about the layer of the deployment, not about one that we made up. */
  #routeThrough(layers: readonly QuotaLayer[]): QuotaRoute {
    return new QuotaRoute(layers, this.cooldown, this.learned.layer);
  }
}

function deploymentOf({ name, client, model }: TargetParts): Deployment {
  return Object.freeze({ name, client, model });
}
