import type { DeploymentSnapshot } from '../../core/ports.ts';
import { clipped } from './clipped.ts';
import type { LiveDeployment, LiveModel, LiveStanding, LiveTenant } from './LiveFrame.ts';
import type { LiveSnapshot } from './LiveSource.ts';

/** What is shown one by one. */
export interface LiveBounds {
  readonly maxModels: number;
  readonly maxTenants: number;
}

/** Cuts a snapshot to what a page can show: models as they come, tenants that wait most first. */
export function liveStanding(snapshot: LiveSnapshot, { maxModels, maxTenants }: LiveBounds): LiveStanding {
  const { closed, calls, conversations, admission, spend } = snapshot;
  const models = Object.entries(admission.models);
  const tenants = tenantsOf(snapshot);
  const hidden = tenants.slice(maxTenants);
  const costs = Object.entries(spend.models);
  const sumOf = (count: (total: (typeof costs)[number][1]) => number): number =>
    costs.reduce((sum, [, total]) => sum + count(total), 0);
  return {
    ...{ closed, calls },
    inFlight: admission.inFlight,
    waiting: admission.waiting,
    conversations: conversations.conversations,
    turnsWaiting: conversations.waiting,
    models: models.slice(0, maxModels).map(modelOf),
    moreModels: Math.max(0, models.length - maxModels),
    tenants: tenants.slice(0, maxTenants),
    moreTenants: {
      count: hidden.length,
      inFlight: hidden.reduce((sum, { inFlight }) => sum + inFlight, 0),
      waiting: hidden.reduce((sum, { waiting }) => sum + waiting, 0),
    },
    spend: {
      day: spend.day,
      cost: sumOf(({ cost }) => cost),
      tokens: sumOf(({ inputTokens, outputTokens }) => inputTokens + outputTokens),
      wastedTokens: sumOf(({ wastedTokens }) => wastedTokens),
      models: costs
        .map(([name, { cost }]) => [clipped(name), cost] as const)
        .sort(([, a], [, b]) => b - a)
        .slice(0, maxModels),
    },
  };
}

function modelOf([name, { waiting, deployments }]: [
  string,
  { readonly waiting: number; readonly deployments: readonly DeploymentSnapshot[] },
]): LiveModel {
  return { name: clipped(name), waiting, deployments: deployments.map(deploymentOf) };
}

function deploymentOf(deployment: DeploymentSnapshot): LiveDeployment {
  const { name, inFlight, limit, cooldownMs, unavailableMs, breaker, layers } = deployment;
  return {
    ...{ name: clipped(name), inFlight, cooldownMs, unavailableMs, breaker },
    limit: Number.isFinite(limit) ? limit : null,
    layers: layers.filter(({ requests, tokens }) => requests !== undefined || tokens !== undefined),
  };
}

function tenantsOf({ admission, spend }: LiveSnapshot): readonly LiveTenant[] {
  const names = new Set([...Object.keys(admission.tenants), ...Object.keys(spend.capUsed)]);
  const tenants = [...names].map((name) => ({
    name: clipped(name),
    inFlight: admission.tenants[name]?.inFlight ?? 0,
    waiting: admission.tenants[name]?.waiting ?? 0,
    capUsed: spend.capUsed[name] ?? null,
  }));
  return tenants.sort(
    (a, b) => b.waiting - a.waiting || b.inFlight - a.inFlight || (b.capUsed ?? 0) - (a.capUsed ?? 0),
  );
}
