import { modelPolicy } from '../../../lib/policy/modelPolicy.ts';
import { midStreamOf } from '../run/midStreamOf.ts';
import type { Invariant } from './Invariant.ts';

/** Of one call: at each model, and over all of them. */
export const attemptsStayWithinTheirNumber: Invariant = {
  name: 'attemptsStayWithinTheirNumber',
  promise:
    'no call sends more attempts than its policy allows, in all or to one model, nor to a model that is no fallback',
  watch(_, fail) {
    return {
      see(fact) {
        if (fact.kind !== 'sent') return;
        const { call, model } = fact.attempt;
        const { policy, planned, attempts, index } = call;
        if (attempts.length > policy.maxAttempts) {
          fail(`call ${index} sends attempt ${attempts.length} of ${policy.maxAttempts}`);
        }
        const asked = modelPolicy(policy, planned.model);
        // What brings its own transport is asked of nobody else.
        const fallback = planned.fallback ?? (planned.by === 'call' ? [] : asked.fallback);
        if (model !== planned.model && !fallback.includes(model)) fail(`call ${index} asks ${model}, a stranger`);
        const { retry, deployments, canContinue } = modelPolicy(policy, model);
        // At a limit of one account the others are asked; a model that refuses a beginning is asked once more, without.
        const continues = [midStreamOf(call, model), midStreamOf(call)].includes('continue') && canContinue;
        const most = (planned.attempts ?? retry.attempts) * deployments.length * (continues ? 2 : 1);
        const own = attempts.filter((attempt) => attempt.model === model).length;
        if (own > most) fail(`call ${index} sends attempt ${own} of ${most} to ${model}`);
      },
    };
  },
};
