import { nonEmpty, positiveOrInfinity, wholeNumber, zeroOrInfinity } from '../core/checks.ts';
import type { Clock } from '../core/runtime.ts';
import { revoked } from './AdmissionGrant.ts';
import type { TargetChange } from './AdmissionGrant.ts';
import { ADMISSION_DEFAULTS, own } from './AdmissionOptions.ts';
import type {
  AdmissionOptions,
  CheckedAdmissionRules,
  ModelAdmissionOptions,
  ProviderRules,
} from './AdmissionOptions.ts';
import { AdmissionPool } from './AdmissionPool.ts';
import type { AdmissionTicket } from './AdmissionPool.ts';
import { AdmissionStanding } from './AdmissionStanding.ts';
import { AdmissionTarget } from './AdmissionTarget.ts';
import type { TargetParts } from './AdmissionTarget.ts';
import { LearnedRate } from './LearnedRate.ts';
import { placesOf } from './placesOf.ts';
import type { Place } from './placesOf.ts';
import { QuotaLayer } from './QuotaLayer.ts';
import type { LayerOptions } from './QuotaLayer.ts';
import { checkedQuotaRules, QUOTA_DEFAULTS } from './QuotaOptions.ts';

/** So many models that are not listed are looked at, at each request, whether they can be forgotten. */
const LOOKED_AT = 2;

/** The deployments of all models, made as they are asked for, and the layers that they share. */
export class AdmissionTargets {
  readonly pools: Map<string, AdmissionPool> = new Map();
  readonly #clock: Pick<Clock, 'now'>;
  readonly #random: () => number;
  #options: AdmissionOptions = {};
  #rules: CheckedAdmissionRules;
  /** Bounds of the queue as a whole. */
  // Stryker disable next-line ObjectLiteral: the first reload sets them
  bounds: { readonly maxWaiting: number; readonly maxWaitMs: number } = { maxWaiting: 0, maxWaitMs: 0 };
  arrivalMarginMs = 0;
  #account: QuotaLayer | undefined;
  #clients: ReadonlyMap<string, QuotaLayer | undefined> = new Map();
  /** Models that have their pool from `default`, in the order in which they are looked at. */
  #unlisted = new Set<string>();
  /** Those for which someone waits are among these. */
  readonly #busy = new Set<AdmissionPool>();
  /** Those that have probes, and grants whose attempts have not been sent, are among these. */
  readonly probing: Set<AdmissionTarget> = new Set();

  /** @throws SluiceError `invalid_option` */
  constructor(
    options: AdmissionOptions,
    rules: CheckedAdmissionRules,
    clock: Pick<Clock, 'now'>,
    random: () => number,
  ) {
    this.#rules = rules;
    this.#clock = clock;
    this.#random = random;
    this.reload(options, rules, clock.now());
  }

  /** Takes other options, which must have been checked unless these are the first. */
  reload(options: AdmissionOptions, rules: CheckedAdmissionRules, nowMs: number): void {
    const standing = new Map<AdmissionTarget, AdmissionStanding>();
    for (const { targets } of this.pools.values()) {
      for (const target of targets) standing.set(target, new AdmissionStanding(target, nowMs));
    }
    const { account, clients } = options.quota ?? {};
    const maxWaiting = account?.maxWaiting ?? QUOTA_DEFAULTS.maxWaiting;
    this.#options = options;
    this.#rules = rules;
    this.bounds = {
      maxWaiting: maxWaiting === Infinity ? maxWaiting : wholeNumber('maxWaiting', maxWaiting, 0),
      maxWaitMs: zeroOrInfinity('maxWaitMs', account?.maxWaitMs ?? QUOTA_DEFAULTS.maxWaitMs),
    };
    this.arrivalMarginMs = checkedQuotaRules(account ?? {}).arrivalMarginMs;
    this.#account = this.#layer(nowMs, 'account', account, this.arrivalMarginMs, this.#account);
    const before = this.#clients;
    this.#clients = new Map(
      Object.entries(clients ?? {}).map(([client, layer]) => {
        const margin = checkedQuotaRules({ ...account, ...layer }).arrivalMarginMs;
        return [client, this.#layer(nowMs, `clients.${client}`, layer, margin, before.get(client))];
      }),
    );
    // Made to be thrown away: each model has its own, but what is wrong must be found now.
    this.#serve('default', undefined, nowMs);
    for (const [model, pool] of this.pools) {
      for (const target of this.#serve(model, pool, nowMs).targets) standing.get(target)?.carryTo(target, nowMs);
    }
    for (const model of Object.keys(options.models ?? {})) if (model !== 'default') this.poolOf(model);
    this.#unlisted = new Set([...this.pools.keys()].filter((model) => !this.#isListed(model)));
  }

  poolOf(model: string): AdmissionPool {
    let pool = this.pools.get(nonEmpty('model', model));
    if (pool === undefined) {
      pool = this.#serve(model, undefined, this.#clock.now());
      this.pools.set(model, pool);
      if (!this.#isListed(model)) this.#unlisted.add(model);
    }
    return pool;
  }

  /**
   * Forgets models that are not listed and of which nothing would be lost: looks at a few of them, in turn, so that they
   * cost a request the same however many there are.
   */
  tidy(nowMs: number): void {
    const looks = Math.min(LOOKED_AT, this.#unlisted.size);
    for (let i = 0; i < looks; i++) {
      const model = this.#unlisted.values().next().value as string;
      this.#unlisted.delete(model);
      if ((this.pools.get(model) as AdmissionPool).forgettable(nowMs)) this.pools.delete(model);
      else this.#unlisted.add(model);
    }
  }

  /** Someone waits for it. */
  joined(pool: AdmissionPool): void {
    this.#busy.add(pool);
  }

  /** A grant is out for it. Nothing that is unsent outlives the opening of a breaker, so no probe comes to it later. */
  granted(target: AdmissionTarget): void {
    if (target.breaker.stuckAtMs !== undefined) this.probing.add(target);
  }

  /** Those for which someone waits. */
  busy(): AdmissionPool[] {
    for (const pool of this.#busy) if (pool.waiting === 0) this.#busy.delete(pool);
    return [...this.#busy];
  }

  /** The youngest of those that are less urgent than `level`, of the least urgent first. */
  youngestBelow(level: number): AdmissionTicket | undefined {
    const pools = this.busy();
    for (let below = this.#rules.levels.length - 1; below > level; below--) {
      for (const { queues } of pools) {
        const youngest = (queues[below] as AdmissionPool['queues'][number]).youngest();
        if (youngest) return youngest;
      }
    }
    return undefined;
  }

  /** When a probe that has not been sent will have been kept too long. */
  get stuckAtMs(): number {
    let atMs = Infinity;
    for (const target of this.probing) {
      const { stuckAtMs } = target.breaker;
      if (target.unsent.size === 0 || stuckAtMs === undefined) this.probing.delete(target);
      else atMs = Math.min(atMs, stuckAtMs);
    }
    return atMs;
  }

  /** What time alone has done to a breaker. */
  advance(nowMs: number): TargetChange | undefined {
    for (const target of this.probing) {
      const { breaker, unsent } = target;
      if (unsent.size === 0 || (breaker.stuckAtMs ?? Infinity) > nowMs) continue;
      const changes = breaker.advance();
      return { target, breaker: changes, revoked: revoked(target, changes) };
    }
    return undefined;
  }

  #isListed(model: string): boolean {
    return model !== 'default' && Object.hasOwn(this.#options.models ?? {}, model);
  }

  /** Serves a model as the options say, by what there is of it. */
  #serve(model: string, pool: AdmissionPool | undefined, nowMs: number): AdmissionPool {
    const options = own(this.#options.models, model) ?? {};
    const places = placesOf(model, options);
    // It stands in front of all of them, so it covers the widest margin.
    const marginMs = Math.max(...places.map((place) => checkedQuotaRules(this.#provider(place)).arrivalMarginMs));
    const layer = this.#layer(nowMs, `models.${model}`, options.quota, marginMs, pool?.layer);
    const known = new Set(pool?.targets);
    const targets = places.map((place) => {
      const same = [...known].find((target) => target.client === place.client && target.model === place.model);
      if (same) known.delete(same);
      return this.#target(place, options, layer, same, nowMs);
    });
    if (pool === undefined) return new AdmissionPool(targets, layer, this.#rules);
    pool.serveAt(targets, layer);
    return pool;
  }

  /** How the provider of a place counts, and how it is approached. */
  #provider({ client, deployment }: Pick<Place, 'client' | 'deployment'>): Partial<ProviderRules> {
    const { account, clients } = this.#options.quota ?? {};
    const from: ProviderRules | undefined = clients && Object.hasOwn(clients, client) ? clients[client] : account;
    return { ...given(from), ...given(deployment.quota) };
  }

  #target(
    { name, client, model, deployment }: Place,
    options: ModelAdmissionOptions,
    shared: QuotaLayer | undefined,
    known: AdmissionTarget | undefined,
    nowMs: number,
  ): AdmissionTarget {
    const account = this.#clients.has(client) ? this.#clients.get(client) : this.#account;
    const provider = this.#provider({ client, deployment });
    const rules = checkedQuotaRules(provider);
    const rates = deployment.quota ?? {};
    const sharedPerMinute = Math.min(...[account, shared].map((layer) => layer?.requests?.perMinute ?? Infinity));
    const { requestsPerMinute, burstRequests, tokensPerMinute, burstTokens } = rates;
    const configured = [sharedPerMinute, requestsPerMinute, burstRequests, tokensPerMinute, burstTokens].join();
    const learned =
      known !== undefined && known.configured === configured
        ? known.learned
        : new LearnedRate(name, rates, sharedPerMinute, rules.arrivalMarginMs, nowMs);
    const parts: TargetParts = {
      name,
      client,
      model,
      breaker: deployment.breaker ?? options.breaker ?? {},
      concurrency: deployment.concurrency ?? options.concurrency,
      layers: [account, shared, learned.layer].filter((layer) => layer !== undefined),
      rules,
      exhaustedMs: positiveOrInfinity('exhaustedMs', provider.exhaustedMs ?? ADMISSION_DEFAULTS.exhaustedMs),
      learned,
      rates,
      configured,
    };
    if (known === undefined) return new AdmissionTarget(parts, this.#clock, this.#random);
    learned.layer.succeed(nowMs, known.learned.layer);
    known.reload(parts);
    return known;
  }

  #layer(
    nowMs: number,
    name: string,
    rates: LayerOptions | undefined,
    arrivalMarginMs: number,
    previous: QuotaLayer | undefined,
  ): QuotaLayer | undefined {
    const layer = new QuotaLayer(name, rates ?? {}, arrivalMarginMs, nowMs);
    if (previous) layer.succeed(nowMs, previous);
    return layer.requests || layer.tokens ? layer : undefined;
  }
}

function given<T extends object>(options: T | undefined): Partial<T> {
  return Object.fromEntries(Object.entries(options ?? {}).filter(([, value]) => value !== undefined)) as Partial<T>;
}
