import { virtualRuntime } from '../testing/virtualRuntime.ts';
import type { VirtualRuntime } from '../testing/virtualRuntime.ts';
import { SCENARIO_DEFAULTS } from './scenario/Scenario.ts';
import type { Scenario } from './scenario/Scenario.ts';
import { ScenarioRun } from './ScenarioRun.ts';
import type { StrategyResult } from './ScenarioRun.ts';
import type { Strategy } from './strategies/Strategy.ts';
import { virtualSources } from './upstream/virtualSources.ts';

export type { StrategyResult } from './ScenarioRun.ts';

export interface RunSettings {
  /** Before providers without limits and faults, where the strategy keeps them by itself. */
  readonly free?: boolean;
  /** Writes down what happens when. */
  readonly timeline?: boolean;
}

/** How far a run is: the virtual time while calls are made, the calls so far, and the requests that reached a provider. */
export interface RunProgress {
  readonly atMs: number;
  readonly calls: number;
  readonly requests: number;
}

/** Calls and requests of a step, about: some tens of milliseconds. */
const STEP_WORK = 1000;
/** Steps as parts of the load's time. */
const FIRST_STEP = 1e-6;
const LONGEST_STEP = 1 / 200;

/** One strategy's run of a scenario, in a virtual time of its own. */
export class SimulationRun {
  readonly #forMs: number;
  readonly #runtime: VirtualRuntime;
  readonly #run: ScenarioRun;

  constructor(scenario: Scenario, strategy: Strategy, { free = false, timeline = false }: RunSettings = {}) {
    const { seed = SCENARIO_DEFAULTS.seed, forMs } = scenario;
    this.#forMs = forMs;
    this.#runtime = virtualRuntime({ seed });
    const sources = virtualSources(scenario, this.#runtime, free);
    this.#run = new ScenarioRun(scenario, strategy, this.#runtime, sources, timeline);
  }

  run(name: string, tell: (atMs: number, calls: number) => void): StrategyResult {
    const steps = this.steps(name);
    for (;;) {
      const step = steps.next();
      if (step.done === true) return step.value;
      tell(step.value.atMs, step.value.calls);
    }
  }

  /** Yields how far it is, each time that a small part of the work is done. */
  *steps(name: string): Generator<RunProgress, StrategyResult, void> {
    this.#run.start();
    let untilMs = 0;
    let widthMs = this.#forMs * FIRST_STEP;
    // What is still going on when the load ends may take as long again, or wait for something that is far off.
    while (untilMs < this.#forMs || this.#runtime.pending > 0) {
      const isLoaded = untilMs < this.#forMs;
      const before = this.#run.calls + this.#run.requests;
      untilMs = isLoaded ? Math.min(this.#forMs, untilMs + widthMs) : untilMs + widthMs;
      yield this.#runUntil(untilMs);
      const work = this.#run.calls + this.#run.requests - before;
      if (work > STEP_WORK) widthMs /= 2;
      else if (work < STEP_WORK / 4)
        widthMs = isLoaded ? Math.min(2 * widthMs, this.#forMs * LONGEST_STEP) : 2 * widthMs;
    }
    return this.#run.result(name);
  }

  #runUntil(untilMs: number): RunProgress {
    this.#runtime.run(untilMs);
    return { atMs: Math.min(untilMs, this.#forMs), calls: this.#run.calls, requests: this.#run.requests };
  }
}
