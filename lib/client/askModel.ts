import type { Observable } from 'rxjs';
import type { Answer } from '../core/answer.ts';
import { currentScope } from '../core/currentScope.ts';
import type { Restart } from '../core/restart.ts';
import { adaptParams } from '../operators/adaptParams.ts';
import { retrying } from '../operators/retryWithJitter.ts';
import { scoped } from '../operators/scoped.ts';
import { withAssistantPrefix } from '../operators/withAssistantPrefix.ts';
import { modelPolicy } from '../policy/modelPolicy.ts';
import type { Policy } from '../policy/Policy.ts';
import { acrossDeployments } from './acrossDeployments.ts';
import type { CallPlan, Fields } from './CallPlan.ts';
import { costOf } from './costOf.ts';
import type { Engine } from './Engine.ts';

/** One model's part of a call: its attempts, each of which is admitted first. */
export function askModel<T>(engine: Engine, policy: Policy, plan: CallPlan<T>, model: string): Observable<T | Restart> {
  const settings = modelPolicy(policy, model);
  const { options } = plan;
  const request = plan.request && adaptParams({ ...plan.request, model }, settings.params);
  const cost = costOf(engine, plan, request, model);
  const attempt = (body: Fields | undefined, needed = cost): Observable<T> =>
    acrossDeployments(
      engine.admissions.admit(model, needed, (deployment) =>
        sent(engine, plan, { model, settings, deployment, headers: headersOf(policy, plan) }, body),
      ),
      settings.deployments.length,
      policy.maxAttempts,
    );
  const { retry } = settings;
  return attempt(request).pipe(
    retrying<T>({
      attempts: options.attempts ?? retry.attempts,
      maxAttempts: policy.maxAttempts,
      maxHintMs: retry.maxHintMs,
      backoff: retry,
      tokens: Math.max(1, cost.tokens),
      midStream: plan.stream ? (options.midStream ?? settings.midStream) : 'fail',
      budget: engine.budgetOf(model),
      shouldRetry: undefined,
      restarts: options.restarts ?? false,
      continueWith:
        settings.canContinue && request !== undefined
          ? (partial: Answer) => {
              const longer = withAssistantPrefix(request, partial);
              return attempt(longer, costOf(engine, plan, longer, model));
            }
          : undefined,
      leastMs: () => engine.leastTimesOf(plan).of(model),
      model,
      onEvent: undefined,
      runtime: engine.runtime,
    }),
  );
}

/** The attempt inside what observes it. Called while it is being subscribed to. */
function sent<T>(
  engine: Engine,
  plan: CallPlan<T>,
  target: Parameters<CallPlan<T>['attempt']>[0],
  request: Fields | undefined,
): Observable<T> {
  const scope = currentScope();
  const attempt$ = plan.attempt(target, request);
  const around = scope && engine.hub.aroundOf(scope.callId, scope.attempt);
  return around ? scoped(attempt$, scope.with({ around }), scope) : attempt$;
}

function headersOf(
  { conversations }: Policy,
  { options }: { readonly options: { conversation?: string | undefined } },
): Readonly<Record<string, string>> {
  const { header } = conversations;
  return header === null || options.conversation === undefined ? {} : { [header]: options.conversation };
}
