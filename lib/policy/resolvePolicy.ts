import { CONVERSATION_LANES_DEFAULTS } from '../limits/ConversationLanes.ts';
import { QUOTA_DEFAULTS } from '../limits/QuotaOptions.ts';
import { RETRY_BUDGET_DEFAULTS } from '../limits/RetryBudget.ts';
import { RETRY_RULE_DEFAULTS } from '../limits/retryRules.ts';
import { overPreset } from './mergeInputs.ts';
import type { GatewayKeyPolicy, Policy, PrioritiesPolicy, TenantPolicy } from './Policy.ts';
import { POLICY_DEFAULTS } from './policyDefaults.ts';
import type { GatewayKeyInput, PolicyInput, PrioritiesInput, TenantInput } from './PolicyInput.ts';
import { resolveModels } from './resolveModels.ts';
import { bound, layerOf, rulesOf } from './resolveQuota.ts';

/** Fills in everything that was left out. The input fits the schema and holds no `undefined`. */
export function resolvePolicy(own: PolicyInput, clients: readonly string[] | undefined): Policy {
  const input = overPreset(own);
  const { quota = {}, retryBudget = {}, conversations = {}, store = {}, telemetry = {} } = input;
  const { account = {} } = quota;
  return {
    clients: input.clients ?? {},
    deadlineMs: bound(input.deadlineMs, POLICY_DEFAULTS.deadlineMs),
    totalMs: bound(input.totalMs, POLICY_DEFAULTS.totalMs),
    maxInFlight: bound(input.maxInFlight, POLICY_DEFAULTS.maxInFlight),
    maxAttempts: bound(input.maxAttempts, RETRY_RULE_DEFAULTS.maxAttempts),
    quota: {
      account: {
        ...layerOf(account),
        ...rulesOf(account),
        maxWaiting: bound(account.maxWaiting, QUOTA_DEFAULTS.maxWaiting),
        maxWaitMs: bound(account.maxWaitMs, QUOTA_DEFAULTS.maxWaitMs),
        passShare: account.passShare ?? POLICY_DEFAULTS.passShare,
      },
      clients: each(quota.clients ?? {}, (layer) => ({ ...layerOf(layer), ...rulesOf(account, layer) })),
    },
    models: resolveModels(input, defaultClient(clients ?? [])),
    tenants: { default: tenantOf({}), ...each(input.tenants ?? {}, tenantOf) },
    priorities: prioritiesOf(input.priorities ?? {}),
    retryBudget: { ...RETRY_BUDGET_DEFAULTS, ...retryBudget } as Policy['retryBudget'],
    conversations: {
      maxWaiting: bound(conversations.maxWaiting, CONVERSATION_LANES_DEFAULTS.maxWaiting),
      maxWaitMs: bound(conversations.maxWaitMs, CONVERSATION_LANES_DEFAULTS.maxWaitMs),
      header: conversations.header ?? POLICY_DEFAULTS.conversationHeader,
    },
    spend: {
      perTenantPerDay: {
        default: POLICY_DEFAULTS.perTenantPerDay,
        ...each(input.spend?.perTenantPerDay ?? {}, (amount) => bound(amount, Infinity)),
      },
    },
    store,
    telemetry: { captureContent: telemetry.captureContent ?? POLICY_DEFAULTS.captureContent },
    gateway: { ...input.gateway, keys: (input.gateway?.keys ?? []).map(gatewayKeyOf) },
  };
}

/** `main` where there is such a client, or none is known; else the first one. */
function defaultClient(clients: readonly string[]): string {
  const { client } = POLICY_DEFAULTS;
  return clients.includes(client) ? client : (clients[0] ?? client);
}

function tenantOf(input: TenantInput): TenantPolicy {
  const { tenant } = POLICY_DEFAULTS;
  return {
    ...layerOf(input),
    maxInFlight: bound(input.maxInFlight, tenant.maxInFlight),
    reservedInFlight: input.reservedInFlight ?? tenant.reservedInFlight,
    weight: input.weight ?? tenant.weight,
  };
}

function prioritiesOf(input: PrioritiesInput): PrioritiesPolicy {
  const { order = POLICY_DEFAULTS.priorityOrder, levels = {}, ageingMs, ...byName } = input;
  const settings = new Map(Object.entries({ ...levels, ...byName }));
  const levelOf = (name: string): { readonly maxInFlight: number } => {
    const { maxInFlight } = (settings.get(name) ?? {}) as { readonly maxInFlight?: number | null };
    return { maxInFlight: bound(maxInFlight, POLICY_DEFAULTS.priority.maxInFlight) };
  };
  return {
    order,
    levels: Object.fromEntries(order.map((name) => [name, levelOf(name)])),
    ageingMs: bound(ageingMs, POLICY_DEFAULTS.ageingMs),
  };
}

function gatewayKeyOf(input: string | GatewayKeyInput): GatewayKeyPolicy {
  const key = typeof input === 'string' ? { hash: input } : input;
  return { ...key, hash: key.hash.toLowerCase() };
}

function each<T, R>(values: Readonly<Record<string, T>>, make: (value: T) => R): Record<string, R> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, make(value)]));
}
