import { fileURLToPath } from 'node:url';
import { loadScenario } from '../../../lib/simulator/index.ts';
import type { Scenario, SimulationResult, StrategyResult } from '../../../lib/simulator/index.ts';

/** What must hold: a sentence, and whether it did. */
export type Claim = readonly [sentence: string, holds: boolean];
export type Rows = readonly (readonly string[])[];

const folder = new URL('../../../examples/scenarios/', import.meta.url);

export function scenarioOf(file: string): Scenario {
  return loadScenario(fileURLToPath(new URL(`${file}.yaml`, folder)));
}

/** Numbers that grow with the load, and those that are times of it. */
const RATES: ReadonlySet<string> = new Set(['perMinute', 'requestsPerMinute', 'burstRequests', 'size']);
const TIMES: ReadonlySet<string> = new Set(['forMs', 'fromMs', 'toMs', 'atMs']);
const AT_LEAST_1: ReadonlySet<string> = new Set(['burstRequests', 'size']);

/** The scenario with a part of the load and of all quotas, and everything that happens in a part of the time. */
export function smaller(scenario: Scenario, rate: number, time: number): Scenario {
  const changed = (value: unknown, key: string): unknown => {
    if (typeof value === 'number') {
      if (TIMES.has(key)) return value * time;
      if (!RATES.has(key)) return value;
      return AT_LEAST_1.has(key) ? Math.max(1, Math.round(value * rate)) : value * rate;
    }
    if (Array.isArray(value)) return value.map((one: unknown) => changed(one, key));
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, changed(one, name)]));
  };
  return changed(scenario, '') as Scenario;
}

/** The figures of a simulation, a row each. Their own, so that tables change only with what happens. */
export function figureRows({ best, strategies }: SimulationResult): Rows {
  const results = [best, ...strategies];
  const row = (label: string, cell: (result: StrategyResult) => string): string[] => [label, ...results.map(cell)];
  const phases = (strategies[0]?.phases ?? []).flatMap(({ name }, i) => [
    row(`*${name}*: answered`, ({ phases: all }) => percent((all[i]?.answered ?? 0) / (all[i]?.calls ?? 1))),
    row(`*${name}*: 429s per request`, ({ phases: all }) => percent(all[i]?.rateLimitedShare ?? 0)),
    row(`*${name}*: attempts per call`, ({ phases: all }) => (all[i]?.attemptsPerCall ?? 0).toFixed(2)),
    row(`*${name}*: whole answer, p95`, ({ phases: all }) => duration(all[i]?.totalMs.p95 ?? Number.NaN)),
  ]);
  const tenants = Object.keys(strategies[0]?.tenants ?? {}).map((tenant) =>
    row(`first content of ${tenant}, p95`, ({ tenants: all }) =>
      duration(all[tenant]?.firstContentMs.p95 ?? Number.NaN),
    ),
  );
  return [
    row('', ({ name }) => name),
    row('calls', ({ calls }) => calls.toLocaleString('en-US')),
    row('answered', ({ answered, calls }) => percent(answered / calls)),
    row('failed', ({ failed }) => failures(failed)),
    row('truncated', ({ truncated }) => String(truncated)),
    row('429s per request', ({ rateLimitedShare }) => percent(rateLimitedShare)),
    row('429s, worst five minutes', ({ worstRateLimitedShare }) => percent(worstRateLimitedShare)),
    row('attempts per call', ({ attemptsPerCall }) => attemptsPerCall.toFixed(2)),
    row('first content, p50', ({ firstContentMs }) => duration(firstContentMs.p50)),
    row('first content, p95', ({ firstContentMs }) => duration(firstContentMs.p95)),
    row('first content, p99', ({ firstContentMs }) => duration(firstContentMs.p99)),
    row('whole answer, p95', ({ totalMs }) => duration(totalMs.p95)),
    row('recovery from a 429, p95', ({ recoveryMs }) => duration(recoveryMs.p95)),
    row('errors went on for', ({ errorWindowMs }) => duration(errorWindowMs)),
    row('turns in order', ({ turns, turnsInOrder }) => (turns === 0 ? '-' : percent(turnsInOrder / turns))),
    row('cost', ({ cost }) => (cost === 0 ? '-' : Math.round(cost).toLocaleString('en-US'))),
    ...tenants,
    ...phases,
  ];
}

export function percent(share: number): string {
  if (!Number.isFinite(share)) return '-';
  if (share === 0 || share === 1) return `${100 * share} %`;
  return `${(100 * share).toFixed(share > 0.995 || share < 0.01 ? 4 : 2)} %`;
}

export function duration(ms: number): string {
  if (!Number.isFinite(ms)) return '-';
  if (ms < 10_000) return `${Math.round(ms)} ms`;
  return ms < 120_000 ? `${(ms / 1000).toFixed(1)} s` : `${(ms / 60_000).toFixed(1)} min`;
}

function failures(failed: Readonly<Record<string, number>>): string {
  const all = Object.entries(failed).map(([code, count]) => `${count.toLocaleString('en-US')} ${code}`);
  return all.length === 0 ? '-' : all.join('<br>');
}
