import { virtualRuntime } from '../testing/virtualRuntime.ts';
import type { VirtualRuntime } from '../testing/virtualRuntime.ts';
import { SCENARIO_DEFAULTS } from './scenario/Scenario.ts';
import type { Scenario } from './scenario/Scenario.ts';
import { ScenarioRun } from './ScenarioRun.ts';
import type { StrategyResult } from './ScenarioRun.ts';
import type { Strategy } from './strategies/Strategy.ts';
import { virtualSources } from './upstream/virtualSources.ts';

export type { StrategyResult } from './ScenarioRun.ts';

/** Progress is told of so many times. */
const TELLINGS = 200;

/** One strategy's run of a scenario, in a virtual time of its own. */
export class SimulationRun {
  readonly #forMs: number;
  readonly #runtime: VirtualRuntime;
  readonly #run: ScenarioRun;

  /** `free`: before providers without limits and faults, where `strategy` keeps them by itself. */
  constructor(scenario: Scenario, strategy: Strategy, free = false) {
    const { seed = SCENARIO_DEFAULTS.seed, forMs } = scenario;
    this.#forMs = forMs;
    this.#runtime = virtualRuntime({ seed });
    this.#run = new ScenarioRun(scenario, strategy, this.#runtime, virtualSources(scenario, this.#runtime, free));
  }

  run(name: string, tell: (atMs: number, calls: number) => void): StrategyResult {
    this.#run.start();
    const stepMs = this.#forMs / TELLINGS;
    for (let i = 1; i <= TELLINGS; i++) {
      this.#runtime.run(i * stepMs);
      tell(i * stepMs, this.#run.calls);
    }
    this.#runtime.run();
    return this.#run.result(name);
  }
}
