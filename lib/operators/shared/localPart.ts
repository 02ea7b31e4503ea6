import { own } from '../../limits/AdmissionOptions.ts';
import type { AdmissionOptions, DeploymentOptions, ModelAdmissionOptions } from '../../limits/AdmissionOptions.ts';
import type { CircuitBreakerOptions } from '../../limits/breakerRules.ts';
import type { NamedLayer } from '../../limits/LimitStore.ts';
import { placesOf } from '../../limits/placesOf.ts';
import type { Place } from '../../limits/placesOf.ts';
import type { LayerOptions } from '../../limits/QuotaLayer.ts';
import { QUOTA_DEFAULTS } from '../../limits/QuotaOptions.ts';

/** Those who wait for an answer of the store only do not count as waiting; more than these are not asking at a time. */
const ASKING = 64;
const NO_RATES: LayerOptions = {
  requestsPerMinute: undefined,
  burstRequests: undefined,
  tokensPerMinute: undefined,
  burstTokens: undefined,
};
/** Never opens. */
const NO_BREAKER: CircuitBreakerOptions = { consecutiveFailures: Infinity, errorRatio: Infinity };

/** What a process decides by itself: the options without rates and breakers, which are decided in the store. */
export function localPart(options: AdmissionOptions): AdmissionOptions {
  const { account, clients } = options.quota ?? {};
  const maxWaiting = Math.max(ASKING, account?.maxWaiting ?? QUOTA_DEFAULTS.maxWaiting);
  return {
    ...options,
    quota: {
      account: { ...account, ...NO_RATES, maxWaiting },
      clients: each(clients, (client) => ({ ...client, ...NO_RATES })),
    },
    models: each({ default: {}, ...options.models }, withoutLimits),
    tenants: each(options.tenants, (tenant) => ({ ...tenant, ...NO_RATES })),
  };
}

function withoutLimits({ deployments, ...model }: ModelAdmissionOptions): ModelAdmissionOptions {
  return {
    ...model,
    quota: undefined,
    breaker: NO_BREAKER,
    deployments: deployments?.map(({ quota, ...deployment }) => ({
      ...deployment,
      quota: { ...quota, ...NO_RATES },
      breaker: NO_BREAKER,
    })),
  };
}

/** What the options say of one deployment of a model. */
export interface DeploymentPart {
  readonly place: Place;
  readonly model: ModelAdmissionOptions;
  readonly deployment: DeploymentOptions;
}

export function deploymentPart(options: AdmissionOptions, model: string, name: string): DeploymentPart | undefined {
  const rules = own(options.models, model) ?? {};
  const place = placesOf(model, rules).find((each) => each.name === name);
  return place && { place, model: rules, deployment: place.deployment };
}

/**
 * All layers that an attempt of the tenant takes its cost from at a deployment. That of the deployment is always one of
 * them, with or without rates: a pause that it asks for is its own.
 */
export function layersAt(
  options: AdmissionOptions,
  model: string,
  { place, model: rules, deployment }: DeploymentPart,
  tenant: string,
): readonly NamedLayer[] {
  const { account, clients } = options.quota ?? {};
  const ownAccount = clients !== undefined && Object.hasOwn(clients, place.client);
  const layers: NamedLayer[] = [
    ownAccount
      ? { name: `clients.${place.client}`, ...ratesOf(clients[place.client]) }
      : { name: 'account', ...ratesOf(account) },
    { name: `models.${model}`, ...ratesOf(rules.quota) },
    { name: place.name, ...ratesOf(deployment.quota) },
    { name: `tenant:${tenant}`, ...ratesOf(tenant === '' ? undefined : own(options.tenants, tenant)) },
  ];
  return layers.filter((layer, i) => i === 2 || isLimited(layer));
}

export function isLimited({ requestsPerMinute, tokensPerMinute }: LayerOptions): boolean {
  return requestsPerMinute !== undefined || tokensPerMinute !== undefined;
}

function ratesOf(layer: LayerOptions | undefined): LayerOptions {
  const { requestsPerMinute, burstRequests, tokensPerMinute, burstTokens } = layer ?? {};
  return { requestsPerMinute, burstRequests, tokensPerMinute, burstTokens };
}

function each<V>(record: Readonly<Record<string, V>> | undefined, change: (value: V) => V): Record<string, V> {
  return Object.fromEntries(Object.entries(record ?? {}).map(([name, value]) => [name, change(value)]));
}
