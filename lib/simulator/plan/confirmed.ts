import type { Judge, PlanCandidate } from './Judge.ts';
import type { Knob } from './Knob.ts';

/** Candidates above the one that was found, if that is not confirmed: 1, 2, 4, ... positions. */
const MOST_RAISES = 5;

export interface Confirmation extends Pick<PlanCandidate, 'met' | 'figures'> {
  readonly at: readonly number[];
}

/** The choice was made by its seeds: others may be less kind to it. Then a little more is tried. */
export async function confirmed(
  judge: Pick<Judge, 'judge' | 'confirm'>,
  knobs: readonly Knob[],
  at: readonly number[],
): Promise<Confirmation> {
  const first = await judge.confirm(at);
  let best: Confirmation = { at, met: first.met, figures: first.figures };
  for (let raise = 0; raise < MOST_RAISES && !best.met; raise++) {
    const raised = at.map((position, i) => {
      const { search, values } = knobs[i] as Knob;
      return search === 'best' ? position : Math.min(values.length - 1, position + 2 ** raise);
    });
    if (raised.every((position, i) => position === best.at[i])) break;
    if (!(await judge.judge(raised)).met) continue;
    const { met, figures } = await judge.confirm(raised);
    if (met) best = { at: raised, met, figures };
  }
  return best;
}
