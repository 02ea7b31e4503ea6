import OpenAI from 'openai';
import { systemRuntime } from '../../lib/index.ts';
import { startEmulatorProcess } from './parts/emulatorProcess.ts';
import { bareAsk, emulatorOf, swinging, mixedLoad, runLoad, sluiceAsk, warmUp } from './parts/fullSpeed.ts';
import type { LoadResult } from './parts/fullSpeed.ts';
import { ms, writeResults } from './parts/writeResults.ts';

const provider = { requestsPerMinute: 3000, burstRequests: 50, firstTokenMs: 150 };
const SWING_MS = 80;
const load = mixedLoad(860, 200, 20_000);

const emulator = await startEmulatorProcess(emulatorOf(provider));
const silent = await startEmulatorProcess({ ...emulatorOf(provider), dialect: 'none' });
const openai = new OpenAI({ baseURL: emulator.baseURL, apiKey: 'none' });
const swung = () => new OpenAI({ baseURL: silent.baseURL, apiKey: 'none', fetch: swinging(SWING_MS) });
await warmUp(openai);
const sluice = await runLoad(sluiceAsk(openai, provider, systemRuntime), load, provider, emulator);
const noMargin = await runLoad(sluiceAsk(openai, provider, systemRuntime, 0), load, provider, emulator);
const swing = await runLoad(sluiceAsk(swung(), provider, systemRuntime), load, provider, silent);
const swingNoMargin = await runLoad(sluiceAsk(swung(), provider, systemRuntime, 0), load, provider, silent);
const bare = await runLoad(bareAsk(openai), load, provider, emulator);
await silent.close();
await emulator.close();

const rowOf = (name: string, result: LoadResult): (string | number)[] => [
  name,
  `${result.answered} of ${result.calls}`,
  result.rateLimited,
  (result.requests / result.calls).toFixed(2),
  ms(result.firstContentMs.p50),
  ms(result.firstContentMs.p95),
  ms(result.firstContentMs.p99),
  ms(result.bestP95Ms),
  ms(result.delaySpreadMs),
  ms(result.lateMs),
];

await writeResults({
  name: 'full-speed',
  title: 'At the full speed of a quota',
  text: `
1,060 streamed calls over 20 s, 200 of them in one burst after 5 s, to a provider that allows 3,000 requests a minute and 50 at
once and counts those that it rejects. It is the emulator in a process of its own, so that neither waits for the other's event loop; its first
content comes 150 ms after the request. Sluice is \`chat\` with \`throttleByBucket\` and a quota of the same numbers, without
retries. The bare SDK keeps its own retries. In two rows the way to the provider takes longer and
shorter in turns, once a second, and the provider reports nothing of its limits, which would set the quota right.

On a machine with other work, the program needs the processor before it (\`chrt -r 10 npm run prove full-speed\` on Linux): otherwise the table shows the machine.

*Best p95* is that of a client that knows the provider's bucket, serves first come first served and loses no time: computed from the
arrivals of that very run and the provider's latency. *Delay varied by* is how much longer the way of one request to the
provider was than that of another: the arrival margin of 100 ms is there for this. *Latest timer* is how late a timer of the client's process came at worst. Percentiles are of the time to first content of the calls that
were answered.`,
  rows: [
    ['', 'answered', '429s', 'attempts per call', 'p50', 'p95', 'p99', 'best p95', 'delay varied by', 'latest timer'],
    rowOf('Sluice', sluice),
    rowOf('Sluice, `arrivalMarginMs: 0`', noMargin),
    rowOf(`Sluice, no reports, delay swinging by ${SWING_MS} ms`, swing),
    rowOf('the same, `arrivalMarginMs: 0`', swingNoMargin),
    rowOf('bare SDK', bare),
  ],
  claims: [
    [
      'Sluice: all answered, no 429, one attempt each',
      sluice.answered === 1060 && sluice.rateLimited === 0 && sluice.requests === 1060,
    ],
    [
      'Sluice: p95 of the time to first content is at most 3 % + 120 ms above the best',
      sluice.firstContentMs.p95 <= sluice.bestP95Ms * 1.03 + 120,
    ],
    [
      'where the delay swings and nothing is reported, the margin keeps 429s away, and without it they come',
      swing.rateLimited === 0 && swingNoMargin.rateLimited > 0,
    ],
  ],
});
