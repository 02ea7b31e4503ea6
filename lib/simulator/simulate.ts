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
  /** Calls made so far. */
  readonly calls: number;
}

export interface SimulateOptions {
  /** Called now and then. */
  readonly onProgress?: ((progress: SimulationProgress) => void) | undefined;
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
export function simulate(scenario: Scenario, { onProgress }: SimulateOptions = {}): SimulationResult {
  const checked = parseScenario(scenario);
  const { name, seed = SCENARIO_DEFAULTS.seed, forMs } = checked;
  const strategies: Scenario['strategies'] = checked.strategies ?? DEFAULT_STRATEGIES;
  const telling =
    (strategy: string) =>
    (atMs: number, calls: number): void =>
      onProgress?.({ strategy, atMs, forMs, calls });
  const best = 'best possible';
  return {
    scenario: name,
    seed,
    best: new SimulationRun(checked, bestSchedule(checked), true).run(best, telling(best)),
    strategies: strategies.map((input) => {
      const title = input.name ?? nameOf(input);
      return new SimulationRun(checked, strategyOf(input)).run(title, telling(title));
    }),
  };
}
