import { nothingLeft } from './parts/nothingLeft.ts';
import { ms, writeResults } from './parts/writeResults.ts';

const CALLS = 10_000;
const { as, otherwise, held, code, endedAfterMs, heapGrowth, ...left } = await nothingLeft(CALLS);
for (const what of otherwise.slice(0, 20)) console.log(what);

const fates = Object.entries(as).map(([fate, calls]) => [`calls ${fate}`, calls]);
const counts: [string, number][] = [
  ['calls that ended otherwise', otherwise.length],
  ['listeners on the signal', left.listeners],
  ['timers of the library', left.timers],
  ['timers that keep the process alive', left.activeTimers],
  ...Object.entries(held).map(([what, count]): [string, number] => [what, count]),
  ['connections held by a request', left.busyConnections],
  ['connections open at the provider', left.sockets],
  ['requests running at the provider', left.running],
  ['unhandled rejections', left.unhandled.length],
  ['warnings of Node', left.warnings.length],
];

await writeResults({
  name: 'nothing-left',
  title: 'Nothing is left of a call',
  text: `
10,000 calls on one \`AbortSignal\` that outlives them, 100 at a time, each through quota, concurrency limit, circuit breaker, retry and
conversation lane: \`chat\`, \`complete\`, \`respond\`, \`fromCall\` and a \`for await\` loop; answered, failing with a 500, cut off, cancelled while
they wait, before the head of the answer, and in mid-stream. The client is a process of its own. Counted when the last call has ended, its
cancelled bodies have settled (one second at most) and the SDK's idle connections have been closed. The heap is compared after 2,000 and after 10,000 calls.`,
  rows: [
    ['what', 'count'],
    ...fates.map(([fate, calls]) => [fate ?? '', calls ?? 0]),
    ...counts,
    ['growth of the heap, MB', (heapGrowth / 1e6).toFixed(1)],
    ['exit code', String(code)],
    ['from the last line to the end of the process', ms(endedAfterMs)],
  ],
  claims: [
    [
      'every call ended as it was meant to',
      otherwise.length === 0 && fates.reduce((sum, [, calls]) => sum + Number(calls), 0) === CALLS,
    ],
    ['nothing is left', counts.every(([, count]) => count === 0)],
    ['the heap grew by less than 1 kB a call', heapGrowth < 1000 * CALLS],
    ['the process ended by itself', code === 0],
  ],
});
