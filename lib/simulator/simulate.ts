import { parseScenario } from './scenario/parseScenario.ts';
import { SCENARIO_DEFAULTS } from './scenario/Scenario.ts';
import type { Scenario, StrategyInput } from './scenario/Scenario.ts';
import { SimulationRun } from './SimulationRun.ts';
import type { StrategyResult } from './SimulationRun.ts';
import { bestSchedule } from './strategies/bestSchedule.ts';
import { nameOf, strategyOf } from './strategies/strategyOf.ts';

export interface SimulationResult {
  readonly scenario: string;
  readonly seed: number;
  /** What a schedule could do at best that knows all limits and outages beforehand. */
  readonly best: StrategyResult;
  /** In the order of the scenario. */
  readonly strategies: readonly StrategyResult[];
}

/** How far a simulation is. */
export interface SimulationProgress {
  readonly strategy: string;
  /** Virtual time, and when the load ends. */
  readonly atMs: number;
  readonly forMs: number;
  /** Calls made so far, and requests that have reached a provider. */
  readonly calls: number;
  readonly requests: number;
}

export interface SimulateOptions {
  /** Called now and then. */
  readonly onProgress?: ((progress: SimulationProgress) => void) | undefined;
  /** Each strategy's result tells also what happened when, as `timeline`. Default: false. */
  readonly timeline?: boolean | undefined;
}

const DEFAULT_STRATEGIES: readonly StrategyInput[] = [
  { kind: 'bare' },
  { kind: 'sdk' },
  { kind: 'backoff' },
  { kind: 'sluice' },
];

/**
 * Runs a scenario in virtual time, once for each strategy: the same calls before the same providers. The strategy `sluice`
 * is `createSluice` with the scenario's policy, with all that runs in production but the network; the provider is that of
 * the emulator. The same scenario gives the same result, to the last digit.
 *
 * Synchronous: it takes some tens of microseconds a call. Nothing is shared between two simulations.
 *
 * @throws SluiceError `invalid_option` that names everything that is wrong with the scenario.
 *
 * @example
 * ```ts
 * import { simulate } from 'sluice/simulator';
 *
 * const quota = { requestsPerMinute: 600, burstRequests: 20 };
 * const { strategies } = simulate({
 *   name: 'ten minutes at nine tenths of the quota',
 *   forMs: 600_000,
 *   load: [{ arrivals: { kind: 'poisson', perMinute: 540 }, model: 'gpt-5.5' }],
 *   upstreams: { main: { ...quota, firstTokenMs: { median: 300, sigma: 0.3 } } },
 *   policy: { quota: { account: quota } },
 * });
 * for (const { name, answered, calls, rateLimited } of strategies) console.log(name, answered, calls, rateLimited);
 * ```
 */
export function simulate(scenario: Scenario, { onProgress, timeline }: SimulateOptions = {}): SimulationResult {
  const steps = simulateInSteps(scenario, { timeline });
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
    onProgress?.(step.value);
  }
}

/**
 * The same as {@link simulate}, in steps of some milliseconds for whoever has something else to do between them, or may not
 * want to wait for the end. Yields how far it is.
 *
 * @throws SluiceError `invalid_option`, from the first step, that names everything that is wrong with the scenario.
 */
export function* simulateInSteps(
  scenario: Scenario,
  { timeline = false }: Pick<SimulateOptions, 'timeline'> = {},
): Generator<SimulationProgress, SimulationResult, void> {
  const checked = parseScenario(scenario);
  const { name, seed = SCENARIO_DEFAULTS.seed, forMs } = checked;
  const inputs: NonNullable<Scenario['strategies']> = checked.strategies ?? DEFAULT_STRATEGIES;
  const running = function* (
    strategy: string,
    run: SimulationRun,
  ): Generator<SimulationProgress, StrategyResult, void> {
    const steps = run.steps(strategy);
    for (;;) {
      const step = steps.next();
      if (step.done === true) return step.value;
      yield { strategy, forMs, ...step.value };
    }
  };
  const best = yield* running(
    'best possible',
    new SimulationRun(checked, bestSchedule(checked), { free: true, timeline }),
  );
  const strategies: StrategyResult[] = [];
  for (const input of inputs) {
    const run = new SimulationRun(checked, strategyOf(input), { timeline });
    strategies.push(yield* running(input.name ?? nameOf(input), run));
  }
  return { scenario: name, seed, best, strategies };
}
