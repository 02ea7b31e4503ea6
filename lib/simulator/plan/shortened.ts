import type { Arrivals, Load, Scenario, Upstream } from '../scenario/Scenario.ts';
import { callsPerMinute } from './averages.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
/** Limits count by the minute: what happens only once a minute is to happen often enough. */
const LEAST_MS = 10 * MINUTE_MS;
const LEAST_BURSTS = 10;
/** Part of a swing in which the rate hardly leaves its peak: 0.9 % of the swing at most. */
const PEAK_PART = 1 / 24;

export interface Shortened {
  readonly scenario: Scenario;
  /** What of the load is simulated. */
  readonly part: 'all' | 'first' | 'peak';
}

/**
 * The scenario with less of its load, where less of it tells the same: arrivals that go on evenly are cut, and of a daily curve
 * its peak is left. Not where something is to happen at a set time, nor where calls are recorded or counted.
 *
 * `whole`: the mean of the load matters too, and not only its peak.
 */
export function shortened(scenario: Scenario, calls: number, whole: boolean): Shortened {
  const { load, upstreams, forMs } = scenario;
  const all: Shortened = { scenario, part: 'all' };
  if (Object.values(upstreams).some(isTimed) || load.some(isListed)) return all;
  const perMs = load.reduce((sum, one) => sum + callsPerMinute(one, upstreams), 0) / MINUTE_MS;
  const bursts = load.map(({ arrivals }) => (arrivals.kind === 'bursts' ? LEAST_BURSTS * arrivals.everyMs : 0));
  const enoughMs = Math.ceil(Math.max(LEAST_MS, calls / perMs, ...bursts));
  if (enoughMs >= forMs) return all;

  const curves = load.flatMap(({ arrivals }) => (arrivals.kind === 'daily' ? [curveOf(arrivals)] : []));
  const [curve] = curves;
  if (curve === undefined) return { scenario: { ...scenario, forMs: enoughMs }, part: 'first' };
  const together = curves.every(({ peakAtMs, periodMs }) => peakAtMs === curve.peakAtMs && periodMs === curve.periodMs);
  const isPeakIn = curve.peakAtMs <= forMs;
  if (whole || !together || !isPeakIn || enoughMs > curve.periodMs * PEAK_PART) return all;
  const atPeak = load.map((one): Load => {
    const { arrivals } = one;
    return arrivals.kind === 'daily' ? { ...one, arrivals: { ...arrivals, peakAtMs: enoughMs / 2 } } : one;
  });
  return { scenario: { ...scenario, forMs: enoughMs, load: atPeak }, part: 'peak' };
}

function isTimed({ outages = [], changes = [], script = [] }: Upstream): boolean {
  return outages.length + changes.length + script.length > 0;
}

function isListed({ arrivals, fromMs, toMs }: Load): boolean {
  if (fromMs !== undefined || toMs !== undefined) return true;
  return arrivals.kind === 'trace' || (arrivals.kind === 'workers' && arrivals.calls !== undefined);
}

function curveOf(arrivals: Arrivals & { readonly kind: 'daily' }): {
  readonly peakAtMs: number;
  readonly periodMs: number;
} {
  const { periodMs = DAY_MS, peakAtMs = periodMs / 2 } = arrivals;
  return { peakAtMs, periodMs };
}
