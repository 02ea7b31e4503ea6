import type { CallFigures } from '../Meter.ts';
import type { StrategyResult } from '../SimulationRun.ts';
import { PLAN_DEFAULTS } from './PlanInput.ts';
import type { PlanTarget, PlanTenantTarget } from './PlanInput.ts';

export type TargetName = Exclude<keyof PlanTarget, 'tenants'>;

/** What is measured of a run, and on which side of the limit it is to be. */
export interface Measure {
  readonly name: TargetName;
  /** Of whose calls; of all of them where it is undefined. */
  readonly tenant?: string | undefined;
  readonly label: string;
  readonly unit: 'ms' | 'share' | 'money';
  readonly side: 'at most' | 'at least';
  of(result: StrategyResult): number;
}

type Calls = Pick<CallFigures, 'calls' | 'answered' | 'firstContentMs'>;
interface CallsMeasure extends Omit<Measure, 'of' | 'tenant'> {
  readonly name: keyof PlanTenantTarget;
  of(calls: Calls): number;
}

const first = (name: keyof PlanTenantTarget, percentile: 'p50' | 'p95' | 'p99'): CallsMeasure => ({
  name,
  label: `time to first content, ${percentile}`,
  unit: 'ms',
  side: 'at most',
  of: ({ firstContentMs }) => timeOf(firstContentMs[percentile]),
});

/** Of all calls, or of those of a tenant. */
const OF_CALLS: readonly CallsMeasure[] = [
  first('firstContentP50Ms', 'p50'),
  first('firstContentP95Ms', 'p95'),
  first('firstContentP99Ms', 'p99'),
  {
    name: 'answeredShare',
    label: 'answered',
    unit: 'share',
    side: 'at least',
    of: ({ answered, calls }) => (calls === 0 ? 0 : answered / calls),
  },
];

const OF_RUNS: readonly Measure[] = [
  {
    name: 'totalP95Ms',
    label: 'whole answer, p95',
    unit: 'ms',
    side: 'at most',
    of: ({ totalMs }) => timeOf(totalMs.p95),
  },
  {
    name: 'rateLimitedShare',
    label: '429s per request sent',
    unit: 'share',
    side: 'at most',
    of: ({ rateLimitedShare }) => rateLimitedShare,
  },
  {
    name: 'costPerMonth',
    label: 'cost a month',
    unit: 'money',
    side: 'at most',
    of: ({ costPerMonth }) => costPerMonth,
  },
];

export const MEASURES: readonly Measure[] = [...OF_CALLS, ...OF_RUNS];

/** A measure and its limit. */
export interface Target {
  readonly measure: Measure;
  readonly limit: number;
}

export function targetsOf(target: PlanTarget): readonly Target[] {
  const limits: PlanTarget = { answeredShare: PLAN_DEFAULTS.answeredShare, ...target };
  return [
    ...MEASURES.flatMap((measure) => limited(measure, limits[measure.name])),
    ...Object.entries(target.tenants ?? {}).flatMap(([tenant, own]) => {
      const ofTenant: PlanTenantTarget = { answeredShare: PLAN_DEFAULTS.answeredShare, ...own };
      return OF_CALLS.flatMap((measure) => limited(measureOf(tenant, measure), ofTenant[measure.name]));
    }),
  ];
}

function limited(measure: Measure, limit: number | undefined): Target[] {
  return limit === undefined ? [] : [{ measure, limit }];
}

const NO_CALLS: Calls = {
  calls: 0,
  answered: 0,
  firstContentMs: { p50: Number.NaN, p95: Number.NaN, p99: Number.NaN, max: Number.NaN },
};

function measureOf(tenant: string, measure: CallsMeasure): Measure {
  return {
    ...measure,
    tenant,
    label: `${tenant}: ${measure.label}`,
    of: ({ tenants }) => measure.of(tenants[tenant] ?? NO_CALLS),
  };
}

/** Where nothing was answered, no time is short enough. */
function timeOf(ms: number): number {
  return Number.isNaN(ms) ? Infinity : ms;
}
