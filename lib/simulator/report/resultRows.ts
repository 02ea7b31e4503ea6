import type { PhaseFigures } from '../Phases.ts';
import type { SimulationResult } from '../simulate.ts';
import type { StrategyResult } from '../SimulationRun.ts';
import { count, duration, money, percent } from './page/format.js';

type Cell = (result: StrategyResult) => string;
type Row = readonly [label: string, cell: Cell, shown?: boolean];

/** A table of texts: a line of names first, and what each row is in its first column. */
export type Rows = readonly (readonly string[])[];

/** The figures of a simulation, a row each, with a column for each strategy and the yardstick first. */
export function resultRows({ best, strategies }: SimulationResult): Rows {
  const results = [best, ...strategies];
  const some = (value: (result: StrategyResult) => number): boolean => results.some((result) => value(result) > 0);
  const rows: Row[] = [
    ['', ({ name }) => name],
    ['answered', ({ answered, calls }) => percent(answered / calls)],
    ['failed', ({ failed }) => count(sum(Object.values(failed)))],
    ['truncated', ({ truncated }) => count(truncated)],
    ['left by users', ({ left }) => count(left), some(({ left }) => left)],
    ['429s per request sent', ({ rateLimitedShare }) => percent(rateLimitedShare)],
    ['429s, worst five minutes', ({ worstRateLimitedShare }) => percent(worstRateLimitedShare)],
    ['attempts per call', ({ attemptsPerCall }) => attemptsPerCall.toFixed(2)],
    ...percentileRows('queue wait', ({ queueMs }) => queueMs),
    ...percentileRows('time to first content', ({ firstContentMs }) => firstContentMs),
    ...percentileRows('whole answer', ({ totalMs }) => totalMs),
    ['recovery from a 429, p95', ({ recoveryMs }) => duration(recoveryMs.p95)],
    ['errors went on for', ({ errorWindowMs }) => duration(errorWindowMs)],
    ...quotaRows(results),
    ['turns in order', ({ turns, turnsInOrder }) => percent(turnsInOrder / turns), some(({ turns }) => turns)],
    ['cost', ({ cost }) => money(cost), some(({ cost }) => cost)],
    ['cost a month', ({ costPerMonth }) => money(costPerMonth), some(({ cost }) => cost)],
  ];
  return rows.filter(([, , shown = true]) => shown).map(([label, cell]) => [label, ...results.map(cell)]);
}

/** What calls failed of: a row for each code, the most frequent first. Only the names where none failed. */
export function failureRows({ best, strategies }: SimulationResult): Rows {
  const results = [best, ...strategies];
  const all = (code: string): number => sum(results.map(({ failed }) => failed[code] ?? 0));
  const codes = [...new Set(results.flatMap(({ failed }) => Object.keys(failed)))].sort((a, b) => all(b) - all(a));
  return [
    ['', ...results.map(({ name }) => name)],
    ...codes.map((code) => [code, ...results.map(({ failed }) => count(failed[code] ?? 0))]),
  ];
}

const MOST_TENANTS = 10;

/** By tenant: those with the most calls, a row for each figure of each. Only the names where there are no tenants. */
export function tenantRows({ best, strategies }: SimulationResult): Rows {
  const results = [best, ...strategies];
  const callsOf = (tenant: string): number => best.tenants[tenant]?.calls ?? 0;
  const names = Object.keys(best.tenants).sort((a, b) => callsOf(b) - callsOf(a));
  const rows = names.slice(0, MOST_TENANTS).flatMap((tenant) => {
    const row = (label: string, cell: (figures: StrategyResult['tenants'][string]) => string): readonly string[] => [
      `${tenant}: ${label}`,
      ...results.map(({ tenants }) => (tenants[tenant] === undefined ? '-' : cell(tenants[tenant]))),
    ];
    return [
      row('calls', ({ calls }) => count(calls)),
      row('answered', ({ answered, calls }) => percent(answered / calls)),
      row('429s', ({ rateLimited }) => count(rateLimited)),
      row('queue wait, p95', ({ queueMs }) => duration(queueMs.p95)),
      row('time to first content, p95', ({ firstContentMs }) => duration(firstContentMs.p95)),
      ...(results.some(({ cost }) => cost > 0) ? [row('cost', ({ cost }) => money(cost))] : []),
    ];
  });
  const more = names.length - MOST_TENANTS;
  return [
    ['', ...results.map(({ name }) => name)],
    ...rows,
    ...(more > 0 ? [[`${count(more)} more, with fewer calls`, ...results.map(() => '')]] : []),
  ];
}

/** By phase, as the scenario names them: a row for each figure of each. Only the names where there are none. */
export function phaseRows({ best, strategies }: SimulationResult): Rows {
  const results = [best, ...strategies];
  return [
    ['', ...results.map(({ name }) => name)],
    ...best.phases.flatMap(({ name }, i) => {
      const row = (label: string, cell: (figures: PhaseFigures) => string): readonly string[] => [
        `${name}: ${label}`,
        ...results.map(({ phases }) => (phases[i] === undefined ? '-' : cell(phases[i]))),
      ];
      return [
        row('calls', ({ calls }) => count(calls)),
        row('answered', ({ answered, calls }) => percent(answered / calls)),
        row('429s per request sent', ({ rateLimitedShare }) => percent(rateLimitedShare)),
        row('attempts per call', ({ attemptsPerCall }) => attemptsPerCall.toFixed(2)),
        row('time to first content, p95', ({ firstContentMs }) => duration(firstContentMs.p95)),
        row('whole answer, p95', ({ totalMs }) => duration(totalMs.p95)),
      ];
    }),
  ];
}

function percentileRows(label: string, of: (result: StrategyResult) => StrategyResult['totalMs']): Row[] {
  return (['p50', 'p95', 'p99'] as const).map((percentile) => [
    `${label}, ${percentile}`,
    (result) => duration(of(result)[percentile]),
  ]);
}

/** Of the client that used most of its quota, or of each where there are several. */
function quotaRows(results: readonly StrategyResult[]): Row[] {
  const clients = [...new Set(results.flatMap(({ quotaUsed }) => Object.keys(quotaUsed)))];
  return clients.map((client) => [
    clients.length === 1 ? 'quota used' : `quota used, ${client}`,
    ({ quotaUsed }) => percent(quotaUsed[client] ?? 0),
  ]);
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
