import type { SimulationResult } from '../simulate.ts';
import type { StrategyResult } from '../SimulationRun.ts';

type Cell = (result: StrategyResult) => string;

/** The figures of a simulation, a row each, with a column for each strategy and the yardstick first. */
export function resultRows({ best, strategies }: SimulationResult): readonly (readonly string[])[] {
  const results = [best, ...strategies];
  const rows: (readonly [label: string, cell: Cell, shown?: boolean])[] = [
    ['', ({ name }) => name],
    ['answered', ({ answered, calls }) => percent(answered / calls)],
    ['failed', ({ failed }) => count(sum(Object.values(failed)))],
    ['truncated', ({ truncated }) => count(truncated), some(results, ({ truncated }) => truncated)],
    ['left by users', ({ left }) => count(left), some(results, ({ left }) => left)],
    ['429s per request sent', ({ rateLimitedShare }) => percent(rateLimitedShare)],
    ['429s, worst five minutes', ({ worstRateLimitedShare }) => percent(worstRateLimitedShare)],
    ['attempts per call', ({ attemptsPerCall }) => attemptsPerCall.toFixed(2)],
    ['queue wait, p95', ({ queueMs }) => duration(queueMs.p95)],
    ['time to first content, p50', ({ firstContentMs }) => duration(firstContentMs.p50)],
    ['time to first content, p95', ({ firstContentMs }) => duration(firstContentMs.p95)],
    ['time to first content, p99', ({ firstContentMs }) => duration(firstContentMs.p99)],
    ['whole answer, p95', ({ totalMs }) => duration(totalMs.p95)],
    ['recovery from a 429, p95', ({ recoveryMs }) => duration(recoveryMs.p95)],
    ['errors went on for', ({ errorWindowMs }) => duration(errorWindowMs)],
    ['quota used', ({ quotaUsed }) => percent(Math.max(...Object.values(quotaUsed)))],
    ['turns in order', ({ turns, turnsInOrder }) => percent(turnsInOrder / turns), some(results, ({ turns }) => turns)],
    ['cost', ({ cost }) => money(cost), some(results, ({ cost }) => cost)],
    ['cost a month', monthly, some(results, ({ cost }) => cost)],
  ];
  return rows.filter(([, , shown = true]) => shown).map(([label, cell]) => [label, ...results.map(cell)]);
}

const MONTH_MS = (365 / 12) * 86_400_000;

function monthly({ cost, tookMs }: StrategyResult): string {
  return money((cost * MONTH_MS) / tookMs);
}

function some(results: readonly StrategyResult[], value: (result: StrategyResult) => number): boolean {
  return results.some((result) => value(result) > 0);
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

function count(value: number): string {
  return value.toLocaleString('en-US');
}

function percent(share: number): string {
  if (!Number.isFinite(share)) return '-';
  const digits = share > 0 && share < 0.01 ? 3 : 2;
  return `${(100 * share).toFixed(digits)} %`;
}

function money(value: number): string {
  return value.toLocaleString('en-US', { maximumFractionDigits: 2, minimumFractionDigits: 2 });
}

function duration(ms: number): string {
  if (!Number.isFinite(ms)) return '-';
  if (ms < 1000) return `${Math.round(ms)} ms`;
  return ms < 120_000 ? `${(ms / 1000).toFixed(1)} s` : `${(ms / 60_000).toFixed(1)} min`;
}
