import { createSluice } from '../../client/createSluice.ts';
import { parsePolicy } from '../../policy/parsePolicy.ts';
import type { PolicyInput } from '../../policy/PolicyInput.ts';
import { keptEstimates } from './keptEstimates.ts';
import type { Strategy } from './Strategy.ts';

/** The policy of the scenario, or one of its own, run by the client that runs it in production. */
export function sluiceStrategy(own: PolicyInput | undefined): Strategy {
  return ({ runtime, sources, policy }) => {
    const parsed = parsePolicy(own ?? policy, { clients: Object.keys(sources) });
    const sluice = createSluice(sources, parsed, { runtime, estimate: keptEstimates() });
    return ({ request, conversation, tenant, priority, deadlineMs }) =>
      sluice.chat(request, { conversation, tenant, priority, deadlineMs });
  };
}
