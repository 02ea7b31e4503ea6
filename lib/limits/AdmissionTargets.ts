import { nonEmpty, wholeNumber, zeroOrInfinity } from '../core/checks.ts';
import { invalidOption } from '../core/errors.ts';
import type { Clock } from '../core/runtime.ts';
import { revoked } from './AdmissionGrant.ts';
import type { TargetChange } from './AdmissionGrant.ts';
import { ADMISSION_DEFAULTS, own } from './AdmissionOptions.ts';
import type {
  AdmissionOptions,
  CheckedAdmissionRules,
  DeploymentOptions,
  ModelAdmissionOptions,
  ProviderRules,
} from './AdmissionOptions.ts';
import { AdmissionPool } from './AdmissionPool.ts';
import { AdmissionTarget } from './AdmissionTarget.ts';
import { Cooldown } from './Cooldown.ts';
import { LearnedRate } from './LearnedRate.ts';
import { QuotaLayer } from './QuotaLayer.ts';
import type { LayerOptions } from './QuotaLayer.ts';
import { checkedQuotaRules, QUOTA_DEFAULTS } from './QuotaOptions.ts';

/** The deployments of all models, made as they are asked for, and the layers that they share. */
export class AdmissionTargets {
  /** Bounds of the queue as a whole. */
  readonly bounds: { readonly maxWaiting: number; readonly maxWaitMs: number };
  readonly arrivalMarginMs: number;
  readonly pools: Map<string, AdmissionPool> = new Map();
  readonly #options: AdmissionOptions;
  readonly #rules: CheckedAdmissionRules;
  readonly #clock: Pick<Clock, 'now'>;
  readonly #random: () => number;
  readonly #account: QuotaLayer | undefined;
  readonly #clients = new Map<string, QuotaLayer | undefined>();
  readonly #targets: AdmissionTarget[] = [];

  /** @throws SluiceError `invalid_option` */
  constructor(
    options: AdmissionOptions,
    rules: CheckedAdmissionRules,
    clock: Pick<Clock, 'now'>,
    random: () => number,
  ) {
    this.#options = options;
    this.#rules = rules;
    this.#clock = clock;
    this.#random = random;
    const { account, clients } = options.quota ?? {};
    const maxWaiting = account?.maxWaiting ?? QUOTA_DEFAULTS.maxWaiting;
    this.bounds = {
      maxWaiting: maxWaiting === Infinity ? maxWaiting : wholeNumber('maxWaiting', maxWaiting, 0),
      maxWaitMs: zeroOrInfinity('maxWaitMs', account?.maxWaitMs ?? QUOTA_DEFAULTS.maxWaitMs),
    };
    this.arrivalMarginMs = checkedQuotaRules(account ?? {}).arrivalMarginMs;
    this.#account = this.#layer('account', account, this.arrivalMarginMs);
    for (const [client, layer] of Object.entries(clients ?? {})) {
      const margin = checkedQuotaRules({ ...account, ...layer }).arrivalMarginMs;
      this.#clients.set(client, this.#layer(`clients.${client}`, layer, margin));
    }
    for (const model of Object.keys(options.models ?? {})) {
      // That of `default` is made to be thrown away: each model has its own, but what is wrong must be found now.
      if (model === 'default') this.#make(model);
      else this.poolOf(model);
    }
    if (options.models?.['default'] !== undefined) this.#targets.splice(0, this.#targets.length, ...this.#kept());
  }

  poolOf(model: string): AdmissionPool {
    let pool = this.pools.get(nonEmpty('model', model));
    if (pool === undefined) this.pools.set(model, (pool = this.#make(model)));
    return pool;
  }

  /** Those for which someone waits. */
  busy(): AdmissionPool[] {
    const busy: AdmissionPool[] = [];
    for (const pool of this.pools.values()) if (pool.waiting > 0) busy.push(pool);
    return busy;
  }

  /** When a probe that has not been sent will have been kept too long. */
  get stuckAtMs(): number {
    let atMs = Infinity;
    for (const { unsent, breaker } of this.#targets)
      if (unsent.size > 0) atMs = Math.min(atMs, breaker.stuckAtMs ?? Infinity);
    return atMs;
  }

  /** What time alone has done to a breaker. */
  advance(nowMs: number): TargetChange | undefined {
    for (const target of this.#targets) {
      const { unsent, breaker } = target;
      if (unsent.size === 0 || (breaker.stuckAtMs ?? Infinity) > nowMs) continue;
      const changes = breaker.advance();
      if (changes.length > 0) return { target, breaker: changes, revoked: revoked(target, changes) };
    }
    return undefined;
  }

  #make(model: string): AdmissionPool {
    const options = own(this.#options.models, model) ?? {};
    const { deployments = [{}] } = options;
    if (deployments.length === 0)
      throw invalidOption(`models.${model}.deployments`, 'a list of at least one', deployments);
    const shared = this.#layer(`models.${model}`, options.quota, this.arrivalMarginMs);
    const targets = deployments.map((deployment, i) => {
      const client = deployment.client ?? options.client ?? ADMISSION_DEFAULTS.client;
      const name = deployments.length === 1 ? model : `${model}@${client}${sameBefore(deployments, i, client)}`;
      return this.#target(name, client, model, deployment, options, shared);
    });
    this.#targets.push(...targets);
    return new AdmissionPool(targets, this.#rules.levels.length, this.#rules.ageingMs);
  }

  #target(
    name: string,
    client: string,
    model: string,
    deployment: DeploymentOptions,
    options: ModelAdmissionOptions,
    shared: QuotaLayer | undefined,
  ): AdmissionTarget {
    const ownAccount = this.#clients.has(client);
    const account = ownAccount ? this.#clients.get(client) : this.#account;
    const from: ProviderRules | undefined = ownAccount
      ? this.#options.quota?.clients?.[client]
      : this.#options.quota?.account;
    const rules = checkedQuotaRules(given({ ...given(from), ...given(deployment.quota) }));
    const configured = [account, shared].map((layer) => layer?.requests?.perMinute ?? Infinity);
    const learned = new LearnedRate(
      name,
      deployment.quota ?? {},
      Math.min(...configured),
      rules.arrivalMarginMs,
      this.#clock.now(),
    );
    return new AdmissionTarget(
      {
        name,
        client,
        model: deployment.model ?? model,
        breaker: deployment.breaker ?? options.breaker ?? {},
        concurrency: deployment.concurrency ?? options.concurrency,
        layers: [account, shared, learned.layer].filter((layer) => layer !== undefined),
        rules,
        cooldown: new Cooldown(rules.cooldown, this.#random),
        learned,
      },
      this.#clock,
    );
  }

  #layer(name: string, rates: LayerOptions | undefined, arrivalMarginMs: number): QuotaLayer | undefined {
    const layer = new QuotaLayer(name, rates ?? {}, arrivalMarginMs, this.#clock.now());
    return layer.requests || layer.tokens ? layer : undefined;
  }

  #kept(): AdmissionTarget[] {
    return [...this.pools.values()].flatMap(({ targets }) => targets);
  }
}

/** Deployments at one client are numbered from the second on. */
function sameBefore(deployments: readonly DeploymentOptions[], index: number, client: string): string {
  const before = deployments.slice(0, index).filter((other) => (other.client ?? client) === client).length;
  return before === 0 ? '' : `#${before + 1}`;
}

function given<T extends object>(options: T | undefined): Partial<T> {
  return Object.fromEntries(Object.entries(options ?? {}).filter(([, value]) => value !== undefined)) as Partial<T>;
}
