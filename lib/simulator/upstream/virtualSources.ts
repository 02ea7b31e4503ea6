import { startTimer } from '../../core/runtime.ts';
import type { Runtime } from '../../core/runtime.ts';
import { seededRandom } from '../../core/seededRandom.ts';
import { sample } from '../../emulator/model/distribution.ts';
import { FakeProvider } from '../../emulator/model/FakeProvider.ts';
import { SCENARIO_DEFAULTS } from '../scenario/Scenario.ts';
import type { Scenario } from '../scenario/Scenario.ts';
import type { Sources } from '../ScenarioRun.ts';
import { providerSource } from './providerSource.ts';
import type { Network } from './providerSource.ts';
import { unlimited } from './unlimited.ts';

/** The providers of a scenario without a network, in the time of `runtime`. `free`: without limits and faults. */
export function virtualSources(scenario: Scenario, runtime: Runtime, free = false): Sources {
  const { seed = SCENARIO_DEFAULTS.seed, networkMs = SCENARIO_DEFAULTS.networkMs, upstreams } = scenario;
  const { chunks = SCENARIO_DEFAULTS.chunks } = scenario;
  const random = seededRandom(seed + 1);
  const delayMs = (): number => sample(networkMs, random);
  const network: Network = { sendMs: delayMs, receiveMs: delayMs };
  return (listenerOf) => {
    const sources = Object.entries(upstreams).map(([client, upstream], place) => {
      const { changes = [], ...options } = free ? unlimited(upstream) : upstream;
      const provider = new FakeProvider({ ...options, seed: providerSeed(seed, place), chunks }, runtime.clock);
      for (const { atMs, ...change } of changes) startTimer(runtime, atMs, () => provider.setQuota(change));
      return [client, providerSource(provider, network, listenerOf(client), runtime)] as const;
    });
    return Object.fromEntries(sources);
  };
}

/** Of the provider at that place in the scenario. */
export function providerSeed(seed: number, place: number): number {
  return seed + 100 + place;
}
