/** One number that is looked for, by the positions of its values. */
export interface Axis {
  readonly size: number;
  /**
   * `least`: later positions are never worse, and the first one that will do is wanted. `best`: any position may be the best
   * one.
   */
  readonly wanted: 'least' | 'best';
  /** Where a search for the best begins. */
  readonly start: number;
}

export interface Verdict {
  readonly met: boolean;
  /** The lower the better, over all targets; at most 1 where they are met. */
  readonly score: number;
}

/** Judges one position of each axis. Asked again, it is to say the same. */
export type Ask = (at: readonly number[]) => Promise<Verdict>;

/** Candidates of the first look along an axis whose best position may be anywhere. */
const COARSE = 6;
/** Scores that differ by less are alike. */
const ALIKE = 0.02;
const MOST_ROUNDS = 3;
/** Joint steps between what each number needs by itself, and the far ends. */
const JOINT = 64;

/**
 * Looks for the least position of each axis at which the targets are met, earlier axes before later ones, and for the best
 * position of the others. In the answer no `least` axis can go down by one position, the others staying where they are. Where
 * nothing that was tried will do, it is the one that came nearest.
 */
export async function searchAxes(
  axes: readonly Axis[],
  ask: Ask,
): Promise<{ readonly at: readonly number[]; readonly met: boolean }> {
  const search = new Search(axes, ask);
  return await search.run();
}

class Search {
  readonly #axes: readonly Axis[];
  readonly #ask: Ask;
  readonly #least: readonly number[];
  readonly #best: readonly number[];

  constructor(axes: readonly Axis[], ask: Ask) {
    this.#axes = axes;
    this.#ask = ask;
    const of = (wanted: Axis['wanted']): number[] => axes.flatMap((axis, i) => (axis.wanted === wanted ? [i] : []));
    this.#least = of('least');
    this.#best = of('best');
  }

  async run(): Promise<{ at: readonly number[]; met: boolean }> {
    let at: readonly number[] = this.#axes.map(({ wanted, size, start }) => (wanted === 'best' ? start : size - 1));
    at = await this.#tuned(at);
    if (!(await this.#ask(at)).met) at = await this.#elsewhere(at);
    if (!(await this.#ask(at)).met) return { at, met: false };
    at = await this.#lowered(at);
    for (let round = 1; round < MOST_ROUNDS && this.#best.length > 0 && this.#least.length > 0; round++) {
      const again = await this.#lowered(await this.#tuned(at));
      const moved = this.#least.some((i) => again[i] !== at[i]);
      at = again;
      if (!moved) break;
    }
    return { at, met: true };
  }

  /** The far ends do not do, though they should be the best: perhaps something before them does. */
  async #elsewhere(at: readonly number[]): Promise<readonly number[]> {
    let best = at;
    for (const i of this.#least) best = await this.#bestAlong(best, i);
    return best;
  }

  async #tuned(at: readonly number[]): Promise<readonly number[]> {
    let best = at;
    for (const i of this.#best) best = await this.#bestAlong(best, i);
    return best;
  }

  /** A coarse look along the axis, and then ever closer around the best of it. */
  async #bestAlong(at: readonly number[], i: number): Promise<readonly number[]> {
    const size = this.#axes[i]?.size ?? 1;
    const scores = new Map<number, number>();
    const look = async (position: number): Promise<void> => {
      if (!scores.has(position)) scores.set(position, (await this.#ask(moved(at, i, position))).score);
    };
    const steps = Math.min(COARSE, size - 1);
    for (let step = 0; step <= steps; step++) await look(Math.round(((size - 1) * step) / Math.max(1, steps)));
    await look(at[i] as number);
    for (
      let stride = Math.ceil((size - 1) / COARSE / 2);
      stride >= 1;
      stride = stride === 1 ? 0 : Math.ceil(stride / 2)
    ) {
      const middle = lowestOf(scores);
      for (const position of [middle - stride, middle + stride]) {
        if (position >= 0 && position < size) await look(position);
      }
    }
    return moved(at, i, lowestOf(scores));
  }

  /** `at`, which will do, with each of the least as far down as it can be. */
  async #lowered(at: readonly number[]): Promise<readonly number[]> {
    const floor = [...at];
    for (const i of this.#least) floor[i] = await this.#lowest(at, i, 0);
    let low: readonly number[] = floor;
    if (this.#least.length > 1) {
      low = await this.#jointly(floor, at);
      // What one of them needs with all others at their far ends, it needs in any case.
      for (const i of this.#least) low = moved(low, i, await this.#lowest(low, i, floor[i] as number));
    }
    return low;
  }

  /** The lowest position of one axis, from `from` on, that will do; that of `at` does. */
  async #lowest(at: readonly number[], i: number, from: number): Promise<number> {
    let high = at[i] as number;
    if (high <= from || (await this.#ask(moved(at, i, from))).met) return Math.min(from, high);
    let low = from;
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2);
      if ((await this.#ask(moved(at, i, middle))).met) high = middle;
      else low = middle;
    }
    return high;
  }

  /** All of the least between `floor` and `top` by the same part of the way, as near to the floor as will do. */
  async #jointly(floor: readonly number[], top: readonly number[]): Promise<readonly number[]> {
    const between = (step: number): readonly number[] =>
      top.map((high, i) => {
        const low = floor[i] as number;
        return low + Math.ceil(((high - low) * step) / JOINT);
      });
    if ((await this.#ask(floor)).met) return floor;
    let low = 0;
    let high = JOINT;
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2);
      if ((await this.#ask(between(middle))).met) high = middle;
      else low = middle;
    }
    return between(high);
  }
}

function moved(at: readonly number[], i: number, position: number): readonly number[] {
  return at.map((old, j) => (j === i ? position : old));
}

/** Of those that are alike the first. */
function lowestOf(scores: ReadonlyMap<number, number>): number {
  const least = Math.min(...scores.values());
  const near = [...scores].filter(([, score]) => score <= least * (1 + ALIKE));
  return Math.min(...near.map(([position]) => position));
}
