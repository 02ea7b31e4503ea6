import type { PlanCandidate } from './Judge.ts';
import type { PlanFigure } from './judged.ts';
import { rangeOf } from './Knob.ts';
import type { Knob } from './Knob.ts';
import type { PlanValue } from './PlanInput.ts';
import { shownMiss, shownValue, tightest } from './shownFigure.ts';

interface Choice {
  readonly knobs: readonly Knob[];
  readonly tried: readonly PlanCandidate[];
  /** What was chosen, of each number. */
  readonly values: readonly PlanValue[];
  /** Positions that the search ended at, before they were confirmed. */
  readonly searched: readonly number[];
  readonly figures: readonly PlanFigure[];
}

/** Why each number is what it is. */
export function reasonsOf(choice: Choice): readonly string[] {
  const met = choice.figures.every((figure) => figure.met);
  return choice.knobs.map((knob, i) => {
    if (!met) return 'Came nearest of what was tried.';
    return knob.search === 'best' ? ofBest(choice, i) : ofLeast(choice, i);
  });
}

function ofLeast({ knobs, tried, values, searched }: Choice, i: number): string {
  const { search, values: all } = knobs[i] as Knob;
  const value = values[i] as PlanValue;
  const position = all.indexOf(value);
  if (position === 0) return `The ${search} that was tried: all targets are met there too.`;
  const found = all[searched[i] as number] as PlanValue;
  if (found !== value) {
    return `One that was confirmed: ${shownValue(found)} met all targets, but not with other seeds.`;
  }
  // Where the others do even more than here, and it is not enough, it is not enough here either.
  const before = tried.find(
    (candidate) =>
      !candidate.met &&
      candidate.values[i] === all[position - 1] &&
      knobs.every((knob, j) => j === i || doesAsMuch(knob, candidate.values[j] as PlanValue, values[j] as PlanValue)),
  );
  const [from, to] = rangeOf(knobs[i] as Knob);
  const range = `The ${search} of ${shownValue(from)} to ${shownValue(to)} that will do`;
  const missed = before && tightest(before.figures.filter((figure) => !figure.met));
  if (before === undefined || missed === undefined) return `${range}.`;
  return `${range}: at ${shownValue(before.values[i] as PlanValue)} ${shownMiss(missed)}.`;
}

function ofBest({ knobs, tried, values }: Choice, i: number): string {
  const { values: all } = knobs[i] as Knob;
  const along = others(tried, values, i);
  const sorted = [...along].sort(
    (a, b) => all.indexOf(a.values[i] as PlanValue) - all.indexOf(b.values[i] as PlanValue),
  );
  const [first, last] = [sorted[0]?.values[i] ?? '', sorted.at(-1)?.values[i] ?? ''];
  const told = `Leaves the most room of ${sorted.length} tried from ${shownValue(first)} to ${shownValue(last)}`;
  const missing = [sorted[0], sorted.at(-1)].flatMap((candidate) => {
    const missed = candidate && tightest(candidate.figures.filter((figure) => !figure.met));
    if (candidate === undefined || missed === undefined || candidate.values[i] === values[i]) return [];
    return [`at ${shownValue(candidate.values[i] as PlanValue)} ${shownMiss(missed)}`];
  });
  return missing.length === 0 ? `${told}.` : `${told}: ${missing.join('; ')}.`;
}

function doesAsMuch({ search, values }: Knob, one: PlanValue, other: PlanValue): boolean {
  return search === 'best' ? one === other : values.indexOf(one) >= values.indexOf(other);
}

/** Candidates that differ from the chosen one in this number at most. */
function others(tried: readonly PlanCandidate[], values: readonly PlanValue[], i: number): readonly PlanCandidate[] {
  return tried.filter((candidate) => candidate.values.every((value, j) => j === i || value === values[j]));
}
