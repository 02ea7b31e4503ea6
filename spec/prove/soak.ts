import { systemRuntime } from '../../lib/index.ts';
import { withLiveLine } from './parts/liveLine.ts';
import { runSoak } from './parts/soak.ts';
import { ms, writeResults } from './parts/writeResults.ts';

const CALLS = 1_000_000;
let line = 'starting';
const result = await withLiveLine(
  () => line,
  () => runSoak(CALLS, systemRuntime, (text) => void (line = text)),
);
const { samples, answered, cancelled, failed, attempts, left, calls } = result;
const lost = Object.values(failed).reduce((sum, count) => sum + count, 0);
const mb = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`;
// The first fifth fills caches and lets the compiler see everything.
const settled = samples.slice(1);
const [first, last] = [settled[0], settled.at(-1)];
const grown = (last?.heapBytes ?? NaN) - (first?.heapBytes ?? NaN);
const half = settled.length >> 1;
const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;
const p50 = (from: typeof samples): number => mean(from.map(({ p50Ms }) => p50Ms));
const drift = p50(settled.slice(-half)) / p50(settled.slice(0, half));

await writeResults({
  name: 'soak',
  title: 'A million calls',
  text: `
${CALLS.toLocaleString('en')} calls through \`createSluice\`, 100 at a time, with every part of a policy, spans and metrics at work, over the emulator's
model without a network. 2 % of the attempts at the main model get a server error, 1 % are told that it is overloaded, 1 % break off in mid-stream and 0.05 % stall;
one call in ten is left once it has seen some text; the policy is loaded anew after each tenth. Conversations are new every five
turns, tenants are fifty. Heap in use after a collection; time from a call to the end of its answer, of those since the row before.

${answered} were answered, ${cancelled} left as they should, ${lost} failed (${
    Object.entries(failed)
      .map(([code, count]) => `${count} \`${code}\``)
      .join(', ') || 'none'
  }); ${attempts} attempts.`,
  rows: [
    ['calls', 'heap', 'p50', 'p99'],
    ...samples.map(({ calls: by, heapBytes, p50Ms, p99Ms }) => [
      by.toLocaleString('en'),
      mb(heapBytes),
      ms(p50Ms),
      ms(p99Ms),
    ]),
  ],
  claims: [
    ['every call ended', answered + cancelled + lost === calls],
    ['after the first fifth the heap grows by less than 5 bytes a call', grown < 5 * 0.8 * CALLS],
    ['the later half is as fast as the earlier one, within a fifth', drift < 1.2],
    ['nothing is held of any call in the end, and every span ended', left === 0],
  ],
});
