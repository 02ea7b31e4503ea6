import { identity } from 'rxjs';
import type { MonoTypeOperatorFunction } from 'rxjs';
import type { Restart } from '../core/restart.ts';
import { fallbackMap } from '../operators/FallbackChain.ts';
import type { FallbackMap } from '../operators/FallbackChain.ts';
import { fallingBack } from '../operators/fallbackModel.ts';
import { modelPolicy } from '../policy/modelPolicy.ts';
import type { ModelPolicy, Policy } from '../policy/Policy.ts';
import type { CallPlan } from './CallPlan.ts';
import type { Engine } from './Engine.ts';
import { ModelFallbacks } from './ModelFallbacks.ts';

/** What a policy says is checked, and the same for all calls of the model. */
const maps = new WeakMap<ModelPolicy, FallbackMap | undefined>();

/** The models that are asked when the one of the call fails. What only those need is found out when their turn comes. */
export function fallbacksOf<T>(
  engine: Engine,
  policy: Policy,
  plan: CallPlan<T>,
): MonoTypeOperatorFunction<T | Restart> {
  const { fallback } = plan.options;
  const map = fallback
    ? filled(fallbackMap(fallback))
    : plan.policyFallbacks
      ? mapOf(modelPolicy(policy, plan.model))
      : undefined;
  if (map === undefined) return identity;
  const fallbacks = new ModelFallbacks(engine, policy, plan);
  return fallingBack<T | Restart>(map, (model) => fallbacks.ask(model), fallbacks);
}

function mapOf(settings: ModelPolicy): FallbackMap | undefined {
  if (!maps.has(settings)) maps.set(settings, filled({ ...settings.fallbackOn, default: settings.fallback }));
  return maps.get(settings);
}

/** `undefined` where it leads to no model. */
function filled(map: FallbackMap): FallbackMap | undefined {
  return Object.values(map).some((models) => models.length > 0) ? map : undefined;
}
