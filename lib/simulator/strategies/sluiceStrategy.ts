import { createSluice } from '../../client/createSluice.ts';
import { parsePolicy } from '../../policy/parsePolicy.ts';
import type { StrategyInput } from '../scenario/Scenario.ts';
import { keptEstimates } from './keptEstimates.ts';
import type { Strategy } from './Strategy.ts';

type SluiceInput = Extract<StrategyInput, { kind: 'sluice' }>;

/** The policy of the scenario, or one of its own, run by the client that runs it in production. */
export function sluiceStrategy({ policy: own, tenants = true }: Pick<SluiceInput, 'policy' | 'tenants'>): Strategy {
  return ({ runtime, sources, policy }) => {
    const parsed = parsePolicy(own ?? policy, { clients: Object.keys(sources) });
    const sluice = createSluice(sources, parsed, { runtime, estimate: keptEstimates() });
    return ({ request, conversation, tenant, priority, deadlineMs }) =>
      sluice.chat(request, { conversation, tenant: tenants ? tenant : undefined, priority, deadlineMs });
  };
}
