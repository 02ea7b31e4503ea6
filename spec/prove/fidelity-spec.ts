import { expect } from 'chai';
import { startEmulator } from '../../lib/emulator/index.ts';
import type { StrategyInput } from '../../lib/simulator/index.ts';
import { overHttp, simulated } from './parts/fidelity.ts';
import type { StartEmulator } from './parts/fidelity.ts';
import { fidelityCases } from './parts/fidelityScenarios.ts';
import { steadyRuntime } from './parts/steadyRuntime.ts';

const FOR_MS = 2_000;
const NAMES: readonly string[] = ['4/3 of the quota', 'faults and an outage'];
const STRATEGIES: readonly StrategyInput[] = [{ kind: 'bare' }, { kind: 'backoff', attempts: 2 }, { kind: 'sluice' }];

describe('scenarios in virtual time and over HTTP', () => {
  it('come to the same counts', async function () {
    this.timeout(90_000);
    this.slow(20_000);
    const runtime = steadyRuntime({ pace: 2 });
    const start: StartEmulator = (options) => startEmulator({ ...options, runtime });
    const cases = fidelityCases(FOR_MS)
      .filter(({ name }) => NAMES.includes(name))
      .flatMap(({ name, scenario: { policy, load, ...scenario } }) =>
        STRATEGIES.map((strategy) => ({
          title: `${name}, ${strategy.kind}`,
          scenario: {
            ...scenario,
            // Twice the quota, its burst included: less would not meet it in so short a time.
            load: load.map((one) => ({ ...one, arrivals: { kind: 'poisson' as const, perMinute: 5_400 } })),
            policy: { ...policy, deadlineMs: 1_500 },
          },
          strategy,
        })),
      );
    expect(cases).to.have.length(NAMES.length * STRATEGIES.length);
    try {
      await Promise.all(
        cases.map(async ({ title, scenario, strategy }) => {
          const http = await overHttp(scenario, strategy, start, runtime);
          const virtual = simulated(scenario, strategy, http.way);
          expect(http.calls, title).to.be.above(100);
          if (strategy.kind !== 'sluice') expect(http.rateLimited, title).to.be.above(50);
          expect(virtual.calls, title).to.equal(http.calls);
          for (const key of ['answered', 'attempts', 'rateLimited'] as const) {
            expect(virtual[key], `${title}: ${key}`).to.be.closeTo(http[key], Math.max(6, 0.08 * http[key]));
          }
          expect(virtual.quotaUsed, `${title}: quota used`).to.be.closeTo(http.quotaUsed, 0.08);
        }),
      );
    } finally {
      runtime.stop();
    }
  });
});
