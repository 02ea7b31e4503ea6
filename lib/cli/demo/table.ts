import { alignColumns } from '../alignColumns.ts';
import type { Score } from './Scoreboard.ts';

export interface DemoResult extends Score {
  readonly name: string;
  /** What the provider saw. */
  readonly requests: number;
  readonly rateLimited: number;
}

/** The runs side by side, one column each. */
export function demoTable(results: readonly DemoResult[]): string {
  const rows: [string, (result: DemoResult) => string][] = [
    ['', ({ name }) => name],
    ['answered', ({ answered, calls }) => `${answered} of ${calls}`],
    ['429s per request sent', ({ rateLimited, requests }) => fixed(rateLimited / requests, 2)],
    ['attempts per call', ({ requests, calls }) => fixed(requests / calls, 2)],
    ['time to first content, p50', ({ firstContentMs }) => duration(firstContentMs.p50)],
    ['time to first content, p95', ({ firstContentMs }) => duration(firstContentMs.p95)],
    ['time to first content, p99', ({ firstContentMs }) => duration(firstContentMs.p99)],
    ['conversations in order', ({ inOrder, conversations }) => `${inOrder} of ${conversations}`],
    ['took', ({ tookMs }) => duration(tookMs)],
  ];
  return alignColumns(rows.map(([label, cell]) => [label, ...results.map(cell)]));
}

function fixed(value: number, digits: number): string {
  return Number.isFinite(value) ? value.toFixed(digits) : '-';
}

function duration(ms: number): string {
  if (!Number.isFinite(ms)) return '-';
  return ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
}
