import { identity } from 'rxjs';
import type { MonoTypeOperatorFunction } from 'rxjs';
import type { Restart } from '../core/restart.ts';
import { fallbackMap } from '../operators/FallbackChain.ts';
import type { FallbackMap } from '../operators/FallbackChain.ts';
import { fallingBack } from '../operators/fallbackModel.ts';
import { withAssistantPrefix } from '../operators/withAssistantPrefix.ts';
import { modelPolicy } from '../policy/modelPolicy.ts';
import type { ModelPolicy, Policy } from '../policy/Policy.ts';
import { askModel } from './askModel.ts';
import type { CallPlan } from './CallPlan.ts';
import { costOf } from './costOf.ts';
import type { Engine } from './Engine.ts';

/** What a policy says is checked, and the same for all calls of the model. */
const maps = new WeakMap<ModelPolicy, FallbackMap | undefined>();

/** The models that are asked when the one of the call fails. What only those need is found out when their turn comes. */
export function fallbacksOf<T>(
  engine: Engine,
  policy: Policy,
  plan: CallPlan<T>,
): MonoTypeOperatorFunction<T | Restart> {
  const { options, request } = plan;
  const settings = modelPolicy(policy, plan.model);
  const map = options.fallback
    ? filled(fallbackMap(options.fallback))
    : plan.policyFallbacks
      ? mapOf(settings)
      : undefined;
  if (map === undefined) return identity;
  let promptTokens: number | undefined;
  return fallingBack<T | Restart>(map, (model) => askModel(engine, policy, plan, model), {
    onlyOn: undefined,
    except: undefined,
    maxAttempts: policy.maxAttempts,
    fits(model) {
      const { maxPromptTokens } = modelPolicy(policy, model);
      if (maxPromptTokens === Infinity) return true;
      promptTokens ??= costOf(engine, plan, request, plan.model).inputTokens;
      return promptTokens <= maxPromptTokens;
    },
    midStream: plan.stream ? (options.midStream ?? settings.midStream) : 'fail',
    restarts: options.restarts ?? false,
    continueWith(model) {
      if (!modelPolicy(policy, model).canContinue) return undefined;
      return (partial) =>
        askModel(engine, policy, { ...plan, request: request && withAssistantPrefix(request, partial) }, model);
    },
    onEvent: undefined,
    runtime: engine.runtime,
  });
}

function mapOf(settings: ModelPolicy): FallbackMap | undefined {
  if (!maps.has(settings)) maps.set(settings, filled({ ...settings.fallbackOn, default: settings.fallback }));
  return maps.get(settings);
}

/** `undefined` where it leads to no model. */
function filled(map: FallbackMap): FallbackMap | undefined {
  return Object.values(map).some((models) => models.length > 0) ? map : undefined;
}
