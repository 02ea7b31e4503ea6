import { expect } from 'chai';
import { invariants } from '../invariants/invariants.ts';
import type { ChaosPlan, PlannedCall } from '../plan/ChaosPlan.ts';
import { runPlan } from '../run/runPlan.ts';
import type { ChaosResult } from '../run/runPlan.ts';
import type { Sabotage } from './Sabotage.ts';

const call: PlannedCall = { atMs: 0, api: 'chat', model: 'gold', words: 2, outputLimit: 50 };
const provider = { tokens: 8, firstTokenMs: 50, tokenMs: 5 };

export interface Part extends Partial<Omit<ChaosPlan, 'policy' | 'providers'>> {
  readonly policy?: ChaosPlan['policy'];
  readonly options?: object;
}

/** Twelve calls in two seconds to a provider without limits or faults, but for what is named. */
export function planOf({ options, policy, ...changes }: Part): ChaosPlan {
  return {
    seed: 1,
    world: 'virtual',
    policy: { quota: {}, models: { gold: {} }, ...policy },
    providers: { main: { networkMs: [5, 5], options: { ...provider, ...options } } },
    calls: calls({}),
    shocks: [],
    ...changes,
  };
}

export function calls(changes: Partial<PlannedCall>, count = 12): PlannedCall[] {
  return Array.from({ length: count }, (_, i) => ({ ...call, atMs: i * 150, ...changes }));
}

/** By the plan. Those of several cases are played once. */
const unbroken = new Map<string, Promise<ChaosResult>>();

/** Everything holds in this plan, and the invariant does not where the client is broken. */
export async function notices(name: string, sabotage: Sabotage, plan: ChaosPlan): Promise<void> {
  const watching = invariants.filter((one) => one.name === name);
  expect(watching).to.have.length(1);
  const key = JSON.stringify(plan);
  const playing = unbroken.get(key) ?? runPlan(plan);
  unbroken.set(key, playing);
  const [whole, broken] = await Promise.all([playing, runPlan(plan, { invariants: watching, sabotage })]);
  expect(whole.violations).to.deep.equal([]);
  expect(broken.violations, 'what is seen of one that is broken').to.not.have.length(0);
}

export function words(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
}
