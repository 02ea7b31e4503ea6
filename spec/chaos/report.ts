import type { ChaosPlan } from './plan/ChaosPlan.ts';
import { worldOf } from './plan/drawPlan.ts';
import type { ChaosResult } from './run/runPlan.ts';

/** What to type to see it again. */
export function reproduction({ seed, world }: ChaosPlan): string {
  return `npm run chaos -- --seed ${seed}${world === worldOf(seed) ? '' : ` --${world}`}`;
}

export function oneLine({ seed, world }: ChaosPlan, result: ChaosResult, tookMs: number): string {
  const { calls, answered, left, attempts, restarts, failed, violations } = result;
  const codes = Object.entries(failed)
    .sort(([, a], [, b]) => b - a)
    .map(([code, count]) => `${code} ${count}`);
  const parts = [
    `${calls} calls`,
    `${answered} answered`,
    `${left} left`,
    ...codes,
    `${attempts} attempts`,
    ...(restarts > 0 ? [`${restarts} restarts`] : []),
    `${Math.round(tookMs)} ms`,
  ];
  return `${violations.length === 0 ? 'held  ' : 'FAILED'} seed ${seed}, ${world}: ${parts.join(', ')}`;
}

/** What was seen, by invariant. */
export function told({ violations }: ChaosResult): string {
  return violations.map(({ invariant, atMs, what }) => `  ${invariant}, at ${atMs} ms: ${what}`).join('\n');
}
