import OpenAI from 'openai';
import { systemRuntime } from '../../lib/index.ts';
import { startEmulatorProcess } from './parts/emulatorProcess.ts';
import { instantSource } from './parts/instantSource.ts';
import { withLiveLine } from './parts/liveLine.ts';
import { runNames } from './parts/policyMemory.ts';
import { writeResults } from './parts/writeResults.ts';

const NAMES = 100_000;
const OVER_HTTP = 5_000;
let line = 'starting';
const progress = (text: string): void => void (line = text);
const show = (): string => line;

const emulator = await startEmulatorProcess({ firstTokenMs: 0, tokenMs: 0, tokens: 2, chunks: 'ends', maxRecords: 1 });
const openai = new OpenAI({ baseURL: emulator.baseURL, apiKey: 'none' });
const http = await withLiveLine(show, () => runNames(openai, systemRuntime, OVER_HTTP, progress));
await emulator.close();
const own = await withLiveLine(show, () => runNames(instantSource, systemRuntime, NAMES, progress));

const kb = (bytes: number): string => `${(bytes / 1000).toFixed(0)} kB`;
await writeResults({
  name: 'policy-memory',
  title: 'Names leave nothing behind',
  text: `
Calls through \`createSluice\`, each in a conversation and of a tenant that no other call has, 50 at a time: 5,000 over HTTP, and
100,000 over a transport that answers at once, so that all there is to measure is the client's own. Every tenant has a quota and a ceiling.
The heap is compared after a tenth of the calls and at the end.`,
  rows: [
    ['', 'names', 'answered', 'left in the snapshot', 'growth of the heap', 'for each name'],
    ...[http, own].map((result, at): [string, number, number, number, string, string] => [
      at === 0 ? 'over HTTP' : 'without a network',
      result.names,
      result.answered,
      result.left,
      kb(result.heapGrowth),
      `${((10 * result.heapGrowth) / 9 / result.names).toFixed(0)} bytes`,
    ]),
  ],
  claims: [
    ['all were answered', http.answered === OVER_HTTP && own.answered === NAMES],
    ['no conversation, tenant or call is left', http.left + own.left === 0],
    ['the heap grew by less than 50 bytes a name', own.heapGrowth < 50 * NAMES],
  ],
});
