import { spendCap } from '../policy/spendCap.ts';
import type { Engine } from './Engine.ts';
import type { SluiceSpend } from './Sluice.ts';

/** What has been spent today, and how much of each cap that is. */
export function spendOf({ spend, policy }: Engine): SluiceSpend {
  const spent = spend.snapshot();
  const capUsed: Record<string, number> = {};
  for (const [tenant, { cost }] of Object.entries(spent.tenants)) {
    const cap = spendCap(policy, tenant);
    if (cap < Infinity) capUsed[tenant] = cap > 0 ? spend.spentBy(tenant, cost) / cap : 1;
  }
  return { ...spent, capUsed };
}
