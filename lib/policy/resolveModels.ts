import type { ErrorCode } from '../core/errors.ts';
import { STAGE_TIMER_DEFAULTS } from '../core/stageTimeouts.ts';
import { AIMD_DEFAULTS } from '../limits/Aimd.ts';
import { CIRCUIT_BREAKER_DEFAULTS } from '../limits/breakerRules.ts';
import { RETRY_RULE_DEFAULTS } from '../limits/retryRules.ts';
import { overConcurrency, overModel, withClass } from './mergeInputs.ts';
import { after } from './modelPolicy.ts';
import type {
  BreakerPolicy,
  ConcurrencyPolicy,
  DeploymentPolicy,
  ModelPolicy,
  Policy,
  RetryPolicy,
  TimeoutsPolicy,
} from './Policy.ts';
import { POLICY_DEFAULTS } from './policyDefaults.ts';
import type {
  BreakerInput,
  ConcurrencyInput,
  DeploymentInput,
  LayerInput,
  ModelInput,
  PolicyInput,
  QuotaInput,
  RetryInput,
  TimeoutsInput,
} from './PolicyInput.ts';
import { bound, layerOf, rulesOf } from './resolveQuota.ts';

/** Each model over `default`, and that over the defaults. */
export function resolveModels(input: PolicyInput, client: string): Policy['models'] {
  const quota = input.quota ?? {};
  const shared = withClass(input.models?.['default'] ?? {});
  const resolved: Record<string, ModelPolicy> = {};
  for (const [name, own] of Object.entries(input.models ?? {})) {
    if (name !== 'default')
      resolved[name] = modelOf(overModel(fallbacksAfter(shared, name), withClass(own)), client, quota);
  }
  return { ...resolved, default: modelOf(shared, client, quota) };
}

/** Of shared fallbacks a model takes those that stand after it, or two of them would lead to each other. */
function fallbacksAfter(shared: ModelInput, name: string): ModelInput {
  const { fallback = [], fallbackOn = {} } = shared;
  const byCode = Object.entries(fallbackOn).map(([code, list]) => [code, after(list ?? [], name)] as const);
  return { ...shared, fallback: after(fallback, name), fallbackOn: Object.fromEntries(byCode) };
}

function modelOf(input: ModelInput, standard: string, quota: QuotaInput): ModelPolicy {
  const { client = standard, price, params = {}, deployments = [{}] } = input;
  return {
    client,
    deployments: deployments.map((deployment) => deploymentOf(deployment, client, input, quota)),
    quota: layerOf(input.quota ?? {}),
    retry: retryOf(input.retry ?? {}),
    breaker: breakerOf(input.breaker ?? {}),
    concurrency: concurrencyOf(input.concurrency ?? {}, covered(quota, client, input.quota)),
    fallback: input.fallback ?? [],
    fallbackOn: (input.fallbackOn ?? {}) as Partial<Record<ErrorCode, readonly string[]>>,
    params: { omit: params.omit ?? [], rename: params.rename ?? {}, set: params.set ?? {} },
    ...(price && { price: { ...price, cachedInputPerMTok: price.cachedInputPerMTok ?? price.inputPerMTok } }),
    timeouts: timeoutsOf(input.timeouts ?? {}),
    midStream: input.midStream ?? POLICY_DEFAULTS.midStream,
    canContinue: input.canContinue ?? POLICY_DEFAULTS.canContinue,
    maxPromptTokens: bound(input.maxPromptTokens, POLICY_DEFAULTS.maxPromptTokens),
    includeUsage: input.includeUsage ?? POLICY_DEFAULTS.includeUsage,
  };
}

function deploymentOf(own: DeploymentInput, standard: string, model: ModelInput, quota: QuotaInput): DeploymentPolicy {
  const client = own.client ?? standard;
  const byClient = quota.clients && Object.hasOwn(quota.clients, client) ? quota.clients[client] : undefined;
  return {
    client,
    ...(own.model !== undefined && { model: own.model }),
    quota: { ...layerOf(own.quota ?? {}), ...rulesOf(quota.account, byClient, model.quota, own.quota) },
    breaker: breakerOf({ ...model.breaker, ...own.breaker }),
    concurrency: concurrencyOf(
      overConcurrency(model.concurrency, own.concurrency),
      covered(quota, client, model.quota, own.quota),
    ),
  };
}

function retryOf(input: RetryInput): RetryPolicy {
  const { attempts, baseMs, capMs, jitter, maxHintMs } = RETRY_RULE_DEFAULTS;
  return { attempts, baseMs, capMs, jitter, ...input, maxHintMs: bound(input.maxHintMs, maxHintMs) } as RetryPolicy;
}

function breakerOf(input: BreakerInput): BreakerPolicy {
  const defaults = CIRCUIT_BREAKER_DEFAULTS;
  const openMs = input.openMs ?? defaults.openMs;
  return {
    ...defaults,
    ...input,
    openMs,
    openCapMs: input.openCapMs ?? Math.max(openMs, defaults.openCapMs),
    consecutiveFailures: bound(input.consecutiveFailures, defaults.consecutiveFailures),
    errorRatio: bound(input.errorRatio, defaults.errorRatio),
  } as BreakerPolicy;
}

/** Whether a rate is configured for what `client` serves under these layers. */
function covered(quota: QuotaInput, client: string, ...layers: readonly (LayerInput | undefined)[]): boolean {
  const ofClient = quota.clients && Object.hasOwn(quota.clients, client) ? quota.clients[client] : undefined;
  return [quota.account, ofClient, ...layers].some(
    (layer) => layer?.requestsPerMinute !== undefined || layer?.tokensPerMinute !== undefined,
  );
}

/**
 * Where a quota is known it is limit enough: a guess at concurrency would only keep long answers below it. Bounds that were
 * not given make room for those that were, as the machine itself does it.
 */
function concurrencyOf(input: ConcurrencyInput, hasQuota: boolean): ConcurrencyPolicy {
  if (input.limit !== undefined) return { limit: bound(input.limit, Infinity) };
  if (hasQuota && Object.values(input).every((value) => value === undefined)) return { limit: Infinity };
  const { initial, decrease, growEveryMs } = input;
  const defaults = AIMD_DEFAULTS;
  const min = input.min ?? Math.min(defaults.min, initial ?? Infinity, input.max ?? Infinity);
  const max = input.max ?? Math.max(defaults.max, initial ?? 0, min);
  return {
    initial: initial ?? Math.min(max, Math.max(min, defaults.initial)),
    min,
    max,
    decrease: decrease ?? defaults.decrease,
    growEveryMs: growEveryMs ?? defaults.growEveryMs,
    maxOverMeasured: bound(input.maxOverMeasured, defaults.maxOverMeasured),
    maxFirstContentMs: bound(input.maxFirstContentMs, defaults.maxFirstContentMs),
  };
}

function timeoutsOf(input: TimeoutsInput): TimeoutsPolicy {
  const { headersMs, idleMs, tailMs } = STAGE_TIMER_DEFAULTS;
  return {
    headersMs: bound(input.headersMs, headersMs),
    idleMs: bound(input.idleMs, idleMs),
    tailMs: bound(input.tailMs, tailMs),
    ...(input.firstContentMs !== undefined && { firstContentMs: bound(input.firstContentMs, Infinity) }),
    ...(input.responseMs !== undefined && { responseMs: bound(input.responseMs, Infinity) }),
  };
}
