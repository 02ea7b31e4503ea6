import { fingerprintOf } from './answerText.ts';
import { ProviderQuota } from './ProviderQuota.ts';
import type { LimitState, QuotaSettings, QuotaVerdict } from './ProviderQuota.ts';
import { PROVIDER_DEFAULTS } from './settings.ts';
import type { ModelSettings, ProviderOptions } from './settings.ts';

/** A model of the provider: its settings, its own limits, and what runs on it. */
export interface ProviderModel {
  readonly name: string;
  readonly fingerprint: string;
  readonly settings: ModelSettings;
  readonly quota: ProviderQuota;
  running: number;
}

/** Limits of the account and of each model. A request must fit both, and takes from both or from none. */
export class ProviderLimits {
  readonly #options: ProviderOptions;
  readonly #account: ProviderQuota;
  readonly #models = new Map<string, ProviderModel>();
  #running = 0;

  constructor(options: ProviderOptions, nowMs: number) {
    this.#options = options;
    this.#account = new ProviderQuota(limitsOf(options), nowMs);
    for (const name of Object.keys(options.models ?? {})) this.model(name, nowMs);
  }

  get running(): number {
    return this.#running;
  }

  get modelNames(): readonly string[] {
    return [...this.#models.keys()];
  }

  /** `undefined` for a name that the provider does not know. */
  model(name: string, nowMs: number): ProviderModel | undefined {
    const known = this.#models.get(name);
    if (known !== undefined) return known;
    const { models } = this.#options;
    if (models !== undefined && !Object.hasOwn(models, name)) return undefined;
    const own = models?.[name] ?? {};
    // Answers are inherited from the provider; limits are not, as the account's stand beside the model's.
    const settings = { ...this.#options, ...own, maxConcurrent: own.maxConcurrent };
    const fingerprint = fingerprintOf(name, this.#options.seed ?? PROVIDER_DEFAULTS.seed);
    const model = { name, fingerprint, settings, quota: new ProviderQuota(limitsOf(own), nowMs), running: 0 };
    this.#models.set(name, model);
    return model;
  }

  change(account: QuotaSettings | undefined, models: Readonly<Record<string, QuotaSettings>>, nowMs: number): void {
    if (account) this.#account.change(account, nowMs);
    for (const [name, settings] of Object.entries(models)) this.model(name, nowMs)?.quota.change(settings, nowMs);
  }

  /** Whether both layers would admit a request of `tokens`. Takes nothing. */
  check(model: ProviderModel, tokens: number, nowMs: number): QuotaVerdict {
    const [account, own] = [this.#account.check(tokens, nowMs), model.quota.check(tokens, nowMs)];
    if (account.kind === 'admitted') return own;
    return own.kind === 'refused' && own.retryAfterMs > account.retryAfterMs ? own : account;
  }

  /** Whether another request may run. */
  hasSlot(model: ProviderModel): boolean {
    const { maxConcurrent = Infinity } = this.#options;
    return this.#running < maxConcurrent && model.running < (model.settings.maxConcurrent ?? Infinity);
  }

  start(model: ProviderModel, tokens: number, nowMs: number): void {
    this.#account.take(tokens, nowMs);
    model.quota.take(tokens, nowMs);
    model.running++;
    this.#running++;
  }

  /** The request is over. `used` corrects what was reserved for it. */
  end(model: ProviderModel, reserved: number, used: number, nowMs: number): void {
    model.running--;
    this.#running--;
    if (reserved === used) return;
    this.#account.settle(reserved, used, nowMs);
    model.quota.settle(reserved, used, nowMs);
  }

  countRefused(model: ProviderModel | undefined, nowMs: number): void {
    this.#account.countRefused(nowMs);
    model?.quota.countRefused(nowMs);
  }

  /** The tighter limit on requests. */
  requests(model: ProviderModel | undefined, nowMs: number): LimitState | undefined {
    return fewer(this.#account.requests(nowMs), model?.quota.requests(nowMs));
  }

  tokens(model: ProviderModel | undefined, nowMs: number): LimitState | undefined {
    return fewer(this.#account.tokens(nowMs), model?.quota.tokens(nowMs));
  }
}

function limitsOf(settings: QuotaSettings): QuotaSettings {
  const { requestsPerMinute, burstRequests, tokensPerMinute, burstTokens, noiseShare } = settings;
  return { requestsPerMinute, burstRequests, tokensPerMinute, burstTokens, noiseShare };
}

function fewer(a: LimitState | undefined, b: LimitState | undefined): LimitState | undefined {
  if (a === undefined || b === undefined) return a ?? b;
  return b.remaining < a.remaining ? b : a;
}
