import { expect } from 'chai';
import type { Runtime } from '../../lib/core/runtime.ts';
import { ScenarioRun } from '../../lib/simulator/ScenarioRun.ts';
import { parseScenario } from '../../lib/simulator/scenario/parseScenario.ts';
import { strategyOf } from '../../lib/simulator/strategies/strategyOf.ts';
import { virtualSources } from '../../lib/simulator/upstream/virtualSources.ts';
import { virtualRuntime } from '../../lib/testing/virtualRuntime.ts';
import { heapInUse } from '../helpers/heap.ts';
import { scaleScenario } from './parts/simulatorScale.ts';

const CALLS = 6_000;

describe('a simulation of many calls', () => {
  it('arms as many timers for each of them, and keeps as much of them, however many there are', async function () {
    this.timeout(60_000);
    this.slow(20_000);
    const scenario = parseScenario(scaleScenario(CALLS));
    const virtual = virtualRuntime({ seed: 1 });
    let armed = 0;
    const runtime: Runtime = {
      clock: virtual.clock,
      random: virtual.random,
      scheduler: {
        schedule(work, delayMs) {
          armed++;
          return virtual.scheduler.schedule(work, delayMs);
        },
      },
    };
    const run = new ScenarioRun(
      scenario,
      strategyOf({ kind: 'sluice' }),
      runtime,
      virtualSources(scenario, runtime, false),
    );
    run.start();
    const half = async (untilMs: number): Promise<{ calls: number; armed: number; heap: number }> => {
      const before = { calls: run.calls, armed };
      virtual.run(untilMs);
      return { calls: run.calls - before.calls, armed: armed - before.armed, heap: await heapInUse() };
    };
    await half(scenario.forMs / 10);
    const first = await half((5.5 * scenario.forMs) / 10);
    const second = await half(scenario.forMs);
    virtual.run();
    const result = run.result('sluice');
    expect(result.calls).to.be.within(0.9 * CALLS, 1.1 * CALLS);
    expect(result.answered).to.be.at.least(0.999 * result.calls);
    expect(virtual.pending).to.equal(0);
    const perCall = first.armed / first.calls;
    expect(second.armed / second.calls).to.be.closeTo(perCall, perCall / 20);
    expect(perCall).to.be.below(14);
    // Durations are kept, 8 bytes each, in arrays that double. What is measured of a call alone would be 400.
    expect(second.heap - first.heap).to.be.below(250 * second.calls);
  });
});
