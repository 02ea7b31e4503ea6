import { getEventListeners } from 'node:events';
import { get } from 'node:http';
import { text as readText } from 'node:stream/consumers';
import type { EmulatorReport } from '../../../lib/emulator/index.ts';
import { heapInUse } from '../../helpers/heap.ts';
import { countingRuntime } from './countingRuntime.ts';
import { MixedCalls } from './MixedCalls.ts';
import type { Leftovers } from './nothingLeft.ts';

// Started by nothingLeft.ts: makes the calls, prints what is left of them as one line of JSON, and ends by itself.

const [url = '', calls = '0'] = process.argv.slice(2);
const unhandled: unknown[] = [];
const warnings: string[] = [];
process.on('unhandledRejection', (reason) => unhandled.push(reason));
process.on('warning', ({ name, message }) => warnings.push(`${name}: ${message}`));

const longLived = new AbortController();
const runtime = countingRuntime();
const mixed = new MixedCalls(`${url}/v1`, longLived.signal, runtime);
const AT_ONCE = 100;
const warmUp = Math.ceil(Number(calls) / 5);
await mixed.run(warmUp, AT_ONCE);
const heapBefore = await heapInUse();
await mixed.run(Number(calls) - warmUp, AT_ONCE);

// Permits of cancelled calls come back when their bodies have settled.
await until(() => runtime.pending === 0 && Object.values(mixed.held()).every((held) => held === 0));
const heapGrowth = (await heapInUse()) - heapBefore;

// Resolves once no request of the SDK's connections runs any more, and closes them.
const dispatcher = (globalThis as unknown as Record<symbol, { close(): Promise<void> }>)[
  Symbol.for('undici.globalDispatcher.1')
];
const closed = await within(5000, dispatcher?.close());
let report = await reported();
for (let i = 0; i < 50 && report.openConnections > 1; i++) report = await reported();

const leftovers: Leftovers = {
  ...mixed.tally,
  held: mixed.held(),
  listeners: getEventListeners(longLived.signal, 'abort').length,
  timers: runtime.pending,
  activeTimers: process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length,
  // One asks for this report.
  sockets: report.openConnections - 1,
  running: report.running,
  busyConnections: closed ? 0 : 1,
  unhandled: unhandled.map(String),
  warnings,
  heapGrowth,
};
console.log(JSON.stringify(leftovers));

async function until(condition: () => boolean): Promise<void> {
  for (const startMs = performance.now(); !condition() && performance.now() - startMs < 5000;) {
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

async function within(ms: number, promise: Promise<void> | undefined): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => (timer = setTimeout(() => resolve(false), ms)));
  const result = await Promise.race([promise?.then(() => true) ?? true, late]);
  clearTimeout(timer);
  return result;
}

function reported(): Promise<EmulatorReport> {
  return new Promise((resolve, reject) => {
    get(`${url}/report`, { agent: false }, (response) => {
      void readText(response).then((body) => resolve(JSON.parse(body) as EmulatorReport), reject);
    }).on('error', reject);
  });
}
