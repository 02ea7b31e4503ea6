import type { Load, Scenario, Upstream } from '../../lib/simulator/index.ts';
import { plan } from '../../lib/simulator/plan/plan.ts';
import type { PlanResult } from '../../lib/simulator/plan/plan.ts';
import type { PlanInput } from '../../lib/simulator/plan/PlanInput.ts';

// A small plan that can be met, and ways to change it.

export const quota = { requestsPerMinute: 150, burstRequests: 3 };
export const upstream: Upstream = { ...quota, firstTokenMs: 200, tokenMs: 2, tokens: 10 };
export const load: Load = { arrivals: { kind: 'poisson', perMinute: 120 }, model: 'm' };
export const scenario: Scenario = {
  name: 'a spec',
  forMs: 60_000,
  load: [load],
  upstreams: { main: upstream },
  policy: { quota: { account: quota } },
};
export const input: PlanInput = {
  scenario,
  target: { firstContentP95Ms: 1500 },
  find: [{ kind: 'quota', rate: 'requestsPerMinute', from: 100, to: 600 }],
  seeds: 3,
  precision: 0.2,
};
export const run = (changes: Partial<PlanInput>): Promise<PlanResult> => plan({ ...input, ...changes });
export const loaded = (changes: Partial<Load>): Scenario => ({ ...scenario, load: [{ ...load, ...changes }] });
export const before = (changes: Partial<Upstream>): Scenario => ({
  ...scenario,
  upstreams: { main: { ...upstream, ...changes } },
});
