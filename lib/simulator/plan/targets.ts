import type { StrategyResult } from '../SimulationRun.ts';
import { PLAN_DEFAULTS } from './PlanInput.ts';
import type { PlanTarget } from './PlanInput.ts';

export type TargetName = keyof PlanTarget;

/** What is measured of a run, and on which side of the limit it is to be. */
export interface Measure {
  readonly name: TargetName;
  readonly label: string;
  readonly unit: 'ms' | 'share' | 'money';
  readonly side: 'at most' | 'at least';
  of(result: StrategyResult): number;
}

const time = (name: TargetName, label: string, of: (result: StrategyResult) => number): Measure => ({
  name,
  label,
  unit: 'ms',
  side: 'at most',
  // Where nothing was answered, no time is short enough.
  of: (result) => (Number.isNaN(of(result)) ? Infinity : of(result)),
});

export const MEASURES: readonly Measure[] = [
  time('firstContentP50Ms', 'time to first content, p50', ({ firstContentMs }) => firstContentMs.p50),
  time('firstContentP95Ms', 'time to first content, p95', ({ firstContentMs }) => firstContentMs.p95),
  time('firstContentP99Ms', 'time to first content, p99', ({ firstContentMs }) => firstContentMs.p99),
  time('totalP95Ms', 'whole answer, p95', ({ totalMs }) => totalMs.p95),
  {
    name: 'rateLimitedShare',
    label: '429s per request sent',
    unit: 'share',
    side: 'at most',
    of: ({ rateLimitedShare }) => rateLimitedShare,
  },
  {
    name: 'answeredShare',
    label: 'answered',
    unit: 'share',
    side: 'at least',
    of: ({ answered, calls }) => (calls === 0 ? 0 : answered / calls),
  },
  {
    name: 'costPerMonth',
    label: 'cost a month',
    unit: 'money',
    side: 'at most',
    of: ({ costPerMonth }) => costPerMonth,
  },
];

/** A measure and its limit. */
export interface Target {
  readonly measure: Measure;
  readonly limit: number;
}

export function targetsOf(target: PlanTarget): readonly Target[] {
  const limits: PlanTarget = { answeredShare: PLAN_DEFAULTS.answeredShare, ...target };
  return MEASURES.flatMap((measure) => {
    const limit = limits[measure.name];
    return limit === undefined ? [] : [{ measure, limit }];
  });
}
