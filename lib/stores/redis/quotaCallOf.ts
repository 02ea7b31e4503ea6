import type { BucketRule, QuotaCall, QuotaOp, RouteOp } from './QuotaCall.ts';
import type { RoutePlan } from './QuotaLayers.ts';

/** Something to ask about a route. */
export interface RouteAsk {
  readonly plan: RoutePlan;
  readonly op: RouteOp;
}

/** What a process used by itself while the store was lost. */
export interface UsedAlone {
  /** How long others may go on so. */
  readonly othersMs: number;
  readonly used: readonly { readonly of: BucketRule; readonly leftMs: number }[];
}

/** What goes with a call: each bucket and each route once. `current`: of a bucket, whose rates may have changed meanwhile. */
export function quotaCallOf(
  asks: readonly RouteAsk[],
  alone: UsedAlone | undefined,
  current: (rule: BucketRule) => BucketRule,
): Pick<QuotaCall, 'buckets' | 'routes' | 'alone' | 'ops'> {
  const at = new Map<string, number>();
  const buckets: BucketRule[] = [];
  const bucket = (rule: BucketRule): number => {
    let known = at.get(rule.key);
    if (known === undefined) {
      known = buckets.push(current(rule)) - 1;
      at.set(rule.key, known);
    }
    return known;
  };
  // The first ones: what was used is named in the same order.
  for (const { of } of alone?.used ?? []) bucket(of);
  const plans = new Map<RoutePlan, number>();
  const ops = asks.map(({ plan, op: [name, ...rest] }): QuotaOp => {
    let route = plans.get(plan);
    if (route === undefined) plans.set(plan, (route = plans.size));
    return [name, route, ...rest] as unknown as QuotaOp;
  });
  const routes = [...plans.keys()].map((plan) => ({ cooldown: plan.cooldown, buckets: plan.buckets.map(bucket) }));
  const used = alone?.used.map(({ leftMs }) => Math.ceil(leftMs * 1000)) ?? [];
  return { buckets, routes, alone: alone ? [Math.ceil(alone.othersMs * 1000), ...used] : [], ops };
}
