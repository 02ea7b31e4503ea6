import { simulate } from '../../../lib/simulator/index.ts';
import { scaleScenario } from './simulatorScale.ts';
import type { ScaleResult } from './simulatorScale.ts';

// Started by simulator-scale.ts with a number of calls, in a process of its own whose memory is that of one simulation.

const scenario = scaleScenario(Number(process.argv[2]));
/** CPU seconds, by strategy. Progress is told before anything of the next one is done. */
const spent = new Map<string, number>();
let at = process.cpuUsage();
const { best, strategies } = simulate(scenario, {
  onProgress({ strategy, atMs, forMs, calls }) {
    const { user, system } = process.cpuUsage(at);
    at = process.cpuUsage();
    spent.set(strategy, (spent.get(strategy) ?? 0) + (user + system) / 1e6);
    process.send?.({ progress: `${strategy}: ${calls} calls, ${((100 * atMs) / forMs).toFixed(0)} %` });
  },
});
const { user, system } = process.cpuUsage(at);
const last = strategies.at(-1)?.name ?? '';
spent.set(last, (spent.get(last) ?? 0) + (user + system) / 1e6);

const result: ScaleResult = {
  results: [best, ...strategies].map(({ name, calls, answered, attempts, rateLimited, firstContentMs }) => ({
    name,
    calls,
    answered,
    attempts,
    rateLimited,
    p95Ms: firstContentMs.p95,
    cpuSeconds: spent.get(name) ?? Number.NaN,
  })),
  peakBytes: process.resourceUsage().maxRSS * 1024,
};
process.send?.({ result });
