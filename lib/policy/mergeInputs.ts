import { AIMD_DEFAULTS } from '../limits/Aimd.ts';
import type {
  ConcurrencyInput,
  LayerInput,
  ModelInput,
  ParamsInput,
  PolicyInput,
  PrioritiesInput,
  TenantInput,
} from './PolicyInput.ts';
import { presets } from './presets.ts';
import { retryClasses } from './retryClasses.ts';

// Own values win; objects are merged key by key, lists are replaced. Inputs hold no `undefined` here, so that spreading
// one over another never takes a value away.

/** The policy with its preset under it. */
export function overPreset(own: PolicyInput): PolicyInput {
  const base = own.preset && presets[own.preset];
  if (base === undefined) return own;
  return {
    ...base,
    ...own,
    quota: {
      ...own.quota,
      account: overLayer(base.quota?.account, own.quota?.account),
    },
    models: overEach(base.models, own.models, overModel),
    tenants: overEach(base.tenants, own.tenants, overLayer<TenantInput>),
    priorities: overPriorities(base.priorities, own.priorities),
    conversations: { ...base.conversations, ...own.conversations },
  };
}

/** Rates bring their bursts: a burst that was chosen for another rate is not kept. */
export function overLayer<L extends LayerInput | TenantInput>(base: L | undefined, own: L | undefined): L {
  const kept: LayerInput = { ...base };
  const { burstRequests, burstTokens, ...rest } = kept;
  const given: LayerInput = { ...own };
  return {
    ...rest,
    ...(given.requestsPerMinute === undefined && burstRequests !== undefined && { burstRequests }),
    ...(given.tokensPerMinute === undefined && burstTokens !== undefined && { burstTokens }),
    ...given,
    ...((kept.refundOn ?? given.refundOn) && { refundOn: { ...kept.refundOn, ...given.refundOn } }),
    ...((kept.cooldown ?? given.cooldown) && { cooldown: { ...kept.cooldown, ...given.cooldown } }),
  } as L;
}

/** What a model has of its own: its class, and over it what it says itself. */
export function withClass(own: ModelInput): ModelInput {
  const { class: name, ...rest } = own;
  return name === undefined ? rest : overModel(retryClasses[name], rest);
}

export function overModel(base: ModelInput, own: ModelInput): ModelInput {
  // A model that names its client is not served where the others are.
  const { deployments: shared, ...kept } = base;
  const deployments = own.deployments ?? (own.client === undefined ? shared : undefined);
  return {
    ...kept,
    ...own,
    ...(deployments && { deployments }),
    quota: overLayer(base.quota, own.quota),
    retry: { ...base.retry, ...own.retry },
    breaker: { ...base.breaker, ...own.breaker },
    concurrency: overConcurrency(base.concurrency, own.concurrency),
    fallbackOn: { ...base.fallbackOn, ...own.fallbackOn },
    params: overParams(base.params, own.params),
    timeouts: { ...base.timeouts, ...own.timeouts },
  };
}

/** A limit that stands and one that adapts exclude each other: what is said later holds. */
export function overConcurrency(
  base: ConcurrencyInput | undefined,
  own: ConcurrencyInput | undefined,
): ConcurrencyInput {
  if (own?.limit !== undefined) return own;
  const adapts = own !== undefined && Object.keys(AIMD_DEFAULTS).some((key) => Object.hasOwn(own, key));
  if (adapts && base?.limit !== undefined) return own;
  return { ...base, ...own };
}

function overParams(base: ParamsInput | undefined, own: ParamsInput | undefined): ParamsInput {
  return {
    ...base,
    ...own,
    rename: { ...base?.rename, ...own?.rename },
    set: { ...base?.set, ...own?.set },
  };
}

function overEach<T>(
  base: Readonly<Record<string, T>> | undefined,
  own: Readonly<Record<string, T>> | undefined,
  over: (base: T, own: T) => T,
): Readonly<Record<string, T>> {
  const merged = new Map(Object.entries(base ?? {}));
  for (const [name, value] of Object.entries(own ?? {})) {
    const under = merged.get(name);
    merged.set(name, under === undefined ? value : over(under, value));
  }
  return Object.fromEntries(merged);
}

/** A preset's settings of priorities that the policy does not have are left out. */
function overPriorities(base: PrioritiesInput | undefined, own: PrioritiesInput | undefined): PrioritiesInput {
  if (base === undefined || own === undefined) return own ?? base ?? {};
  const order = own.order ?? base.order;
  const kept = Object.entries(base).filter(
    ([name]) => order === undefined || order.includes(name) || name === 'ageingMs',
  );
  return { ...Object.fromEntries(kept), ...own, ...(order && { order }) };
}
