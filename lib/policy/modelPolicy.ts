import type { ModelPolicy, Policy, TenantPolicy } from './Policy.ts';

/**
 * The settings of a model: its own, or those of `default` where it is not listed. Of fallbacks that it has from
 * `default`, those are left that stand after it.
 *
 * @example
 * ```ts
 * import { modelPolicy, parsePolicy } from 'sluice';
 *
 * const policy = parsePolicy({ models: { default: { fallback: ['a', 'b'] } } });
 * console.log(modelPolicy(policy, 'other').fallback.join()); // => a,b
 * console.log(modelPolicy(policy, 'a').fallback.join()); // => b
 * ```
 */
export function modelPolicy(policy: Policy, model: string): ModelPolicy {
  const own = Object.hasOwn(policy.models, model) ? policy.models[model] : undefined;
  if (own) return own;
  const shared = policy.models.default;
  const lists = [shared.fallback, ...Object.values(shared.fallbackOn)];
  if (!lists.some((list) => list.includes(model))) return shared;
  return {
    ...shared,
    fallback: after(shared.fallback, model),
    fallbackOn: Object.fromEntries(Object.entries(shared.fallbackOn).map(([code, list]) => [code, after(list, model)])),
  };
}

/** The settings of a tenant: its own, or those of `default` where it is not listed. */
export function tenantPolicy(policy: Policy, tenant: string): TenantPolicy {
  const own = Object.hasOwn(policy.tenants, tenant) ? policy.tenants[tenant] : undefined;
  return own ?? policy.tenants.default;
}

/** What stands after `model` in the list; all of it where it does not stand there. */
export function after(list: readonly string[], model: string): readonly string[] {
  return list.slice(list.indexOf(model) + 1);
}
