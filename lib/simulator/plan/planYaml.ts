import { commentLines, policyYaml } from '../../policy/policyYaml.ts';
import { count, counted, duration } from '../../policy/words.ts';
import type { PlanCandidate } from './Judge.ts';
import type { PlanFigure } from './judged.ts';
import type { PlanResult } from './plan.ts';
import { shownAmount, shownValue } from './shownFigure.ts';

type Row = readonly string[];

/**
 * What a plan came to: a file that is the policy, ready for `loadPolicy` and `sluice check`, with comments that tell how the
 * targets are met, what was tried, and why each number that was looked for is what it is.
 */
export function planYaml(result: PlanResult): string {
  const { plan, found, policy, simulated } = result;
  const asides = found.flatMap(({ aside }) => aside ?? []);
  const head = [
    plan,
    '',
    ...found.flatMap(({ told, why }) => commentLines(`${told}. ${why}`)),
    ...asides.flatMap(commentLines),
    '',
    ...planTable(targetRows(result)),
    '',
    ...commentLines(basisOf(result)),
    '',
    ...planTable(triedRows(result)),
    '',
    ...commentLines(extentOf(simulated)),
    'Numbers without a comment are those of the scenario.',
  ];
  const comments = found.flatMap(({ places, why }) => places.map((path) => ({ path, text: why })));
  return `${head.map((line) => `# ${line}`.trimEnd()).join('\n')}\n\n${policyYaml(policy, comments)}`;
}

/** Each target with its limit and what was reached. */
export function targetRows({ figures }: PlanResult): readonly Row[] {
  return [
    ['target', 'limit', 'mean', 'worst run', 'next run', 'room'],
    ...figures.map(({ label, side, limit, unit, mean, worst, bound, room }) => [
      label,
      `${side} ${shownAmount(unit, limit)}`,
      ...[mean, worst, bound].map((amount) => shownAmount(unit, amount)),
      Number.isFinite(room) ? `${Math.floor(100 * room)} %` : 'none',
    ]),
  ];
}

/** Each candidate; in order of its value where there is one number only, else of the search. */
export function triedRows({ found, tried }: PlanResult): readonly Row[] {
  const { label } = found[0] ?? { label: '' };
  const alone = found.length === 1;
  const order = alone ? [...tried].sort((a, b) => compared(a.values[0], b.values[0])) : tried;
  const figures = tried[0]?.figures ?? [];
  const headings = alone ? [label] : found.map((finding) => finding.label);
  return [
    [...headings, 'runs', ...figures.map((figure) => figure.label), 'will do'],
    ...order.map((candidate) => [
      ...candidate.values.map(shownValue),
      String(candidate.runs),
      ...candidate.figures.map(cellOf),
      candidate.met ? 'yes' : 'no',
    ]),
  ];
}

function cellOf({ unit, bound, met }: PlanFigure): string {
  return `${shownAmount(unit, bound)}${met ? '' : ' !'}`;
}

function compared(
  a: PlanCandidate['values'][number] | undefined,
  b: PlanCandidate['values'][number] | undefined,
): number {
  return typeof a === 'number' && typeof b === 'number' ? a - b : 0;
}

/** What the figures were taken from. */
function basisOf({ reached, simulated: { seeds } }: PlanResult): string {
  const runs = `${seeds} runs`;
  const margin =
    'The next run is on this side of what its column says with 95 % confidence, by the spread of these and as if they were normally distributed.';
  return reached
    ? `Of ${runs} with seeds that had no part in the choice. ${margin}`
    : `Of the runs of what came nearest. ${margin}`;
}

const PARTS = {
  all: 'the whole load',
  first: 'the beginning of the load, which goes on evenly',
  peak: 'the peak of the load',
} as const;

export function extentOf({ forMs, ofMs, part, runs, calls }: PlanResult['simulated']): string {
  const of = part === 'all' ? '' : ` of ${duration(ofMs)}`;
  return `Each run: ${duration(forMs)}${of}, ${PARTS[part]}. In all ${counted(runs, 'run')} with ${count(calls)} calls.`;
}

/** A table whose first column stands to the left. */
export function planTable(rows: readonly Row[]): readonly string[] {
  const columns = Math.max(0, ...rows.map((row) => row.length));
  const widths = Array.from({ length: columns }, (_, column) =>
    Math.max(...rows.map((row) => row[column]?.length ?? 0)),
  );
  return rows.map((row) =>
    row
      .map((cell, column) => (column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0)))
      .join('   ')
      .trimEnd(),
  );
}
