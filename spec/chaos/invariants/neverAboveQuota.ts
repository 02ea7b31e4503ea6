import { parsePolicy } from '../../../lib/index.ts';
import type { Policy } from '../../../lib/index.ts';
import type { Invariant } from './Invariant.ts';
import { knowsLimits } from './knownLimits.ts';

/** As the provider counts, with its own buckets at the other end of the network. */
export const neverAboveQuota: Invariant = {
  name: 'neverAboveQuota',
  promise: 'a provider whose limits the policy tells refuses nothing for its rate',
  watch({ plan }, fail) {
    const clients = Object.keys(plan.providers);
    const reloads = plan.shocks.flatMap((shock) => (shock.kind === 'reload' ? [shock.policy] : []));
    const policies = [plan.policy, ...reloads].map((input): Policy => parsePolicy(input, { clients }));
    const known = new Set(clients.filter((client) => policies.every((policy) => knowsLimits(plan, policy, client))));
    // What processes take while they do not hear of each other, nobody can count.
    if (plan.world === 'redis') known.clear();
    return {
      see(fact) {
        if (fact.kind !== 'judged' || !known.has(fact.client)) return;
        const { client, model, refusal } = fact;
        if (refusal === 'requests' || refusal === 'tokens')
          fail(`${client} refused a request for ${model}: ${refusal}`);
      },
    };
  },
};
