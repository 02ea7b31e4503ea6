import { invariants as all } from './invariants/invariants.ts';
import type { Invariant } from './invariants/Invariant.ts';
import type { ChaosPlan } from './plan/ChaosPlan.ts';
import { runPlan } from './run/runPlan.ts';
import type { ChaosResult, RunOptions } from './run/runPlan.ts';
import { shrink } from './shrink.ts';

/** Plays a plan whatever it does: one that cannot be played to its end fails too. */
export async function played(plan: ChaosPlan, options: RunOptions = {}): Promise<ChaosResult> {
  try {
    return await runPlan(plan, options);
  } catch (error) {
    const what = error instanceof Error ? (error.stack ?? error.message) : String(error);
    return { ...NOTHING, violations: [{ invariant: 'everyPlanCanBePlayed', atMs: 0, what }] };
  }
}

const NOTHING: ChaosResult = {
  violations: [],
  calls: 0,
  answered: 0,
  left: 0,
  failed: {},
  attempts: 0,
  restarts: 0,
};

/** The smallest plan that breaks the first invariant that `plan` breaks. */
export async function shrunk(plan: ChaosPlan, result: ChaosResult, forMs: number): Promise<ChaosPlan> {
  const broken = result.violations[0]?.invariant;
  const invariants: readonly Invariant[] = all.filter(({ name }) => name === broken);
  const untilMs = performance.now() + forMs;
  return shrink(
    plan,
    async (smaller) => {
      try {
        return (await runPlan(smaller, { invariants })).violations.length > 0;
      } catch {
        // A plan that cannot be played, such as one with half a policy, is another matter.
        return broken === 'everyPlanCanBePlayed';
      }
    },
    () => performance.now() > untilMs,
  );
}
