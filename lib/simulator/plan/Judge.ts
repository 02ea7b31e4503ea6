import type { Scenario } from '../scenario/Scenario.ts';
import { SCENARIO_DEFAULTS } from '../scenario/Scenario.ts';
import type { StrategyResult } from '../SimulationRun.ts';
import { figureOf } from './judged.ts';
import type { PlanFigure } from './judged.ts';
import type { Knob } from './Knob.ts';
import type { PlanValue } from './PlanInput.ts';
import type { Target } from './targets.ts';

/** What was tried: a value for each number, and what came of it. */
export interface PlanCandidate {
  /** In the order of `find`. */
  readonly values: readonly PlanValue[];
  readonly figures: readonly PlanFigure[];
  /** Runs it took to know: one that misses a target is not run again. */
  readonly runs: number;
  readonly met: boolean;
  /** Of the target that is furthest off, what is measured as a part of the limit: at most 1 where all are met. */
  readonly score: number;
}

/** Runs Sluice through a scenario with these values in it, once. */
export type RunSluice = (scenario: Scenario, values: readonly PlanValue[]) => Promise<StrategyResult>;

/** Streams of one seed are not those of the next: parts of a run draw from seeds that follow each other. */
const BETWEEN_SEEDS = 1_000_003;

/** Judges candidates by runs with several seeds; remembers what it has judged. */
export class Judge {
  readonly #scenario: Scenario;
  readonly #knobs: readonly Knob[];
  readonly #targets: readonly Target[];
  readonly #seeds: number;
  readonly #run: RunSluice;
  readonly #known = new Map<string, PlanCandidate>();

  constructor(scenario: Scenario, knobs: readonly Knob[], targets: readonly Target[], seeds: number, run: RunSluice) {
    this.#scenario = scenario;
    this.#knobs = knobs;
    this.#targets = targets;
    this.#seeds = seeds;
    this.#run = run;
  }

  /** In the order in which they were tried. */
  get tried(): readonly PlanCandidate[] {
    return [...this.#known.values()];
  }

  /** `at`: the position of each number's value. */
  async judge(at: readonly number[]): Promise<PlanCandidate> {
    const key = at.join();
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const judged = await this.#judge(at, 0);
    this.#known.set(key, judged);
    return judged;
  }

  /** Judges once more, with seeds that had no part in the choice. */
  async confirm(at: readonly number[]): Promise<PlanCandidate> {
    return await this.#judge(at, this.#seeds);
  }

  scenarioAt(at: readonly number[]): Scenario {
    return turned(this.#scenario, this.#knobs, this.#valuesAt(at));
  }

  async #judge(at: readonly number[], firstSeed: number): Promise<PlanCandidate> {
    const scenario = this.scenarioAt(at);
    const values = this.#valuesAt(at);
    const { seed = SCENARIO_DEFAULTS.seed } = scenario;
    const measured: (readonly number[])[] = [];
    let figures: readonly PlanFigure[] = [];
    for (let i = 0; i < this.#seeds; i++) {
      const result = await this.#run({ ...scenario, seed: seed + (firstSeed + i) * BETWEEN_SEEDS }, values);
      measured.push(this.#targets.map(({ measure }) => measure.of(result)));
      figures = this.#targets.map((target, t) =>
        figureOf(
          target,
          measured.map((run) => run[t] as number),
        ),
      );
      // More runs make no worst run better.
      if (this.#targets.some((target, t) => !figureOf(target, [measured[i]?.[t] as number]).met)) break;
    }
    return {
      values,
      figures,
      runs: measured.length,
      met: figures.every(({ met }) => met),
      score: Math.max(...figures.map(({ room }) => 1 - room)),
    };
  }

  #valuesAt(at: readonly number[]): readonly PlanValue[] {
    return this.#knobs.map(({ values }, i) => values[at[i] ?? 0] as PlanValue);
  }
}

/** Further accounts come last: they are such as the first one has become. */
export function turned(scenario: Scenario, knobs: readonly Knob[], values: readonly PlanValue[]): Scenario {
  const turns = knobs.map((knob, i) => ({ knob, value: values[i] as PlanValue }));
  const order = [...turns].sort((a, b) => Number(a.knob.copies ?? false) - Number(b.knob.copies ?? false));
  return order.reduce((of, { knob, value }) => knob.apply(of, value), scenario);
}
