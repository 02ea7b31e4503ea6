// The gateway beside no gateway and another one, on one emulator in one run. `FAST=1` shortens it to a trial.
import { startEmulatorProcess } from '../prove/parts/emulatorProcess.ts';
import { writeResults } from '../prove/parts/writeResults.ts';
import { startBareProxy, startPortkey, startSluice } from './parts/gateways.ts';
import type { Way } from './parts/gateways.ts';
import {
  FRAME_MS,
  FRAMES,
  LATE_MS,
  median,
  medianTimes,
  mostStreams,
  requestsPerSecond,
  warmUp,
} from './parts/gatewayRuns.ts';
import { HttpLoad } from './parts/HttpLoad.ts';

const fast = process.env['FAST'] === '1';
const ROUNDS = fast ? 200 : 1_000;
const FOR_MS = fast ? 500 : 2_000;
const TURNS = fast ? 1 : 3;
const WARM_UP = fast ? 2_000 : 12_000;
const AT_ONCE = 32;

// An answer at once, for what is to be measured is what is added to it; the report counts, and lists nothing.
const quick = await startEmulatorProcess({ tokens: 8, firstTokenMs: 0, tokenMs: 0, maxRecords: 1 });
const paced = await startEmulatorProcess({ tokens: FRAMES, firstTokenMs: 20, tokenMs: FRAME_MS, maxRecords: 1 });
const none = (baseURL: string): Way => ({
  name: 'none',
  origin: new URL(baseURL).origin,
  headers: {},
  close: () => Promise.resolve(),
});

async function among<R>(
  baseURL: string,
  warm: (load: HttpLoad) => Promise<void>,
  work: (loads: readonly HttpLoad[]) => Promise<R>,
): Promise<R> {
  const ways = [none(baseURL), await startSluice(baseURL), await startPortkey(baseURL), await startBareProxy(baseURL)];
  const loads = ways.map((way) => new HttpLoad(way));
  try {
    for (const load of loads) await warm(load);
    return await work(loads);
  } finally {
    for (const load of loads) await load.close();
    for (const way of ways) await way.close();
  }
}

const names = ['none', 'Sluice', 'Portkey', 'bare proxy'];
const warmQuick = async (load: HttpLoad): Promise<void> => {
  await warmUp(load, false, WARM_UP, AT_ONCE);
  await warmUp(load, true, WARM_UP / 4, AT_ONCE);
};
const measured = await among(quick.baseURL, warmQuick, async (loads) => {
  const whole = await medianTimes(loads, false, ROUNDS);
  const content = await medianTimes(loads, true, ROUNDS);
  const rates = loads.map((): number[] => []);
  for (let turn = 0; turn < TURNS; turn++) {
    for (const [at, load] of loads.entries()) rates[at]?.push(await requestsPerSecond(load, AT_ONCE, FOR_MS));
  }
  return { whole, content, rates: rates.map(median) };
});
await quick.close();
const warmPaced = (load: HttpLoad): Promise<void> => warmUp(load, true, WARM_UP / 12, WARM_UP / 48);
const streams = await among(paced.baseURL, warmPaced, async (loads) => {
  const most: number[] = [];
  for (const load of loads) most.push(await mostStreams(load, 100, fast ? 1 : 2));
  return most;
});
await paced.close();

const { whole, content, rates } = measured;
const of = (values: readonly number[], at: number): number => values[at] ?? NaN;
const added = (values: readonly number[], at: number): number => of(values, at) - of(values, 0);
const times = (values: readonly number[], at: number, by: number): number => of(values, at) / of(values, by);

await writeResults({
  name: 'gateway',
  script: 'bench',
  title: 'The gateway, beside none and beside another',
  text: `
One emulator, asked directly, through Sluice's gateway, through \`@portkey-ai/gateway\` 1.15.2, and through a proxy of \`node:http\` and
\`undici\` that passes bytes and does nothing else, which is what a gateway of these parts costs at least. Each is in a process of its
own, in one run. Whoever asks is a fourth process, with a pool of kept connections; all of them share the cores.

- _Whole_: median time of an answer that is not streamed, ${ROUNDS} of each way, one request after another and each way in turn.
- _First content_: the same for the second event of a stream, which is the first with text.
- _A second_: answers that are not streamed, by ${AT_ONCE} that ask again and again; the median of ${TURNS} turns.
- _Streams_: the most streams at once of ${FRAMES} frames at ${FRAME_MS} ms of which every one comes whole, and no frame later than
  ${LATE_MS} ms against the pace from its first one on; begun evenly over the time that one takes, found within a tenth.

Sluice has a quota for requests and for tokens, a concurrency limit, retries and a breaker, none of which is reached. Portkey
retries nothing, and keeps no limits; it gets the provider by headers. Its streams need \`@hono/node-server\` at 1.13.5,
which \`overrides\` in \`spec/bench/package.json\` sees to; nothing else about it was changed.

On a machine with other work, the program needs the processor before it (\`chrt -r 10 npm run bench gateway\` on Linux).`,
  rows: [
    ['gateway', 'whole', 'added', 'first content', 'added', 'a second', 'streams'],
    ...names.map((name, at) => [
      name,
      `${of(whole, at).toFixed(2)} ms`,
      at === 0 ? '' : `${added(whole, at).toFixed(2)} ms`,
      `${of(content, at).toFixed(2)} ms`,
      at === 0 ? '' : `${added(content, at).toFixed(2)} ms`,
      Math.round(of(rates, at)),
      of(streams, at),
    ]),
  ],
  claims: [
    ['less than 0.5 ms is added to an answer', added(whole, 1) < 0.5],
    ['less than 2 ms is added to the first content', added(content, 1) < 2],
    [`at least 4 times Portkey's answers a second (${times(rates, 1, 2).toFixed(2)})`, times(rates, 1, 2) >= 4],
    [
      `at least half of the streams without a gateway (${times(streams, 1, 0).toFixed(2)})`,
      times(streams, 1, 0) >= 0.5,
    ],
    [`at least 4 times Portkey's streams (${times(streams, 1, 2).toFixed(2)})`, times(streams, 1, 2) >= 4],
  ],
});
