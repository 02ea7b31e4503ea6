// What comes through at nine tenths of a quota and a burst, by Sluice, the SDK and peers, in one run. `FAST=1` shortens it.
import OpenAI from 'openai';
import { startEmulatorProcess } from '../prove/parts/emulatorProcess.ts';
import { emulatorOf, mixedLoad, runLoad, warmUp } from '../prove/parts/fullSpeed.ts';
import type { LoadResult } from '../prove/parts/fullSpeed.ts';
import { ms, writeResults } from '../prove/parts/writeResults.ts';
import { peersOf } from './parts/goodputPeers.ts';

const fast = process.env['FAST'] === '1';
const provider = { requestsPerMinute: 3000, burstRequests: 50, firstTokenMs: 150 };
const OVER_MS = fast ? 5_000 : 20_000;
const BURST = fast ? 50 : 200;
const spread = (0.9 * provider.requestsPerMinute * OVER_MS) / 60_000;
const load = mixedLoad(spread, BURST, OVER_MS);

const emulator = await startEmulatorProcess(emulatorOf(provider));
await warmUp(new OpenAI({ baseURL: emulator.baseURL, apiKey: 'none' }));
const results: [name: string, result: LoadResult][] = [];
for (const { name, ask } of peersOf(provider)) {
  console.log(`${name} ...`);
  results.push([name, await runLoad(ask(emulator.baseURL), load, provider, emulator)]);
}
await emulator.close();

const near = ({ firstContentMs, bestP95Ms }: LoadResult): boolean => firstContentMs.p95 <= bestP95Ms * 1.03 + 120;
const clean = ({ answered, calls, rateLimited, requests }: LoadResult): boolean =>
  answered === calls && rateLimited === 0 && requests === calls;
const own = results.filter(([name]) => name.startsWith('Sluice')).map(([, result]) => result);
const others = results.filter(([name]) => !name.startsWith('Sluice')).map(([, result]) => result);

await writeResults({
  name: 'goodput',
  script: 'bench',
  title: 'What comes through, beside peers',
  text: `
${load.length} streamed calls over ${OVER_MS / 1000} s: ${spread} at random times, nine tenths of what the provider allows, and ${BURST} more in one burst after a
quarter of it. The provider allows 3,000 requests a minute and 50 at once, counts those that it rejects, and says in headers how long to
wait; it is the emulator in a process of its own, and its first content comes 150 ms after the request. Every row makes the
same calls over the same \`openai\` package, but for the AI SDK, which brings its own transport. Limiters are told the rate as they can be: p-queue and
Bottleneck's reservoir as 50 a second, Bottleneck's \`minTime\` as one each 20 ms; behind them the SDK keeps its default of 2 retries. cockatiel
retries 429s five times by its default backoff over an SDK without retries. The AI SDK keeps its default of 2 retries.

*Best p95* is that of a client that knows the provider's bucket, serves first come first served and loses no time, computed from the arrivals of
that very run and the provider's latency. Percentiles are of the time to first content of the calls that were answered: where few are
answered, those are the ones that did not wait. *Latest timer* is how late a timer came at worst in the process that made the calls.`,
  rows: [
    ['', 'answered', '429s', 'attempts per call', 'p50', 'p95', 'p99', 'best p95', 'took', 'latest timer'],
    ...results.map(([name, result]) => [
      name,
      `${result.answered} of ${result.calls}`,
      result.rateLimited,
      (result.requests / result.calls).toFixed(2),
      ms(result.firstContentMs.p50),
      ms(result.firstContentMs.p95),
      ms(result.firstContentMs.p99),
      ms(result.bestP95Ms),
      `${(result.tookMs / 1000).toFixed(1)} s`,
      ms(result.lateMs),
    ]),
  ],
  claims: [
    ['Sluice: all answered, no 429, one attempt each', own.every(clean)],
    ['Sluice: p95 of the time to first content is at most 3 % + 120 ms above the best', own.every(near)],
    [
      'no other answers all without a 429 and is as near to the best',
      !others.some((other) => clean(other) && near(other)),
    ],
  ],
});
