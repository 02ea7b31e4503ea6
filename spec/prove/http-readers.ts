import { leaving, stalling } from './parts/httpReaders.ts';
import { writeResults } from './parts/writeResults.ts';

const stalled = await stalling(100);
const left = await leaving(1000);

const kb = (bytes: number): string => (bytes / 1000).toFixed(0);
const ms = (value: number): string => value.toFixed(0);
await writeResults({
  name: 'http-readers',
  title: 'Browsers that stop reading, and browsers that leave',
  text: `
A server with \`pipeToResponse\` in front of a provider. 100 clients ask for answers of ${stalled.bodyBytes / 1e6} MB, and stop
reading after the first event; beside them 20 others read answers of 20 tokens, 20 ms apart. Then ${left.clients} clients leave in
mid-stream, 50 at a time. *Memory* is heap and buffers of the server, with the answer so far, which a call keeps for
\`partial\`. *Taken* is what the provider could get rid of, sockets of
both sides included, whose size is up to the system.`,
  rows: [
    ['what', 'measured'],
    ['clients that do not read: memory for each, kB', kb(stalled.memoryPerClient)],
    ['taken from the provider for each, kB', kb(stalled.takenPerClient)],
    ['answers of others, alone, ms (median)', ms(stalled.aloneMs)],
    ['answers of others, beside them, ms (median)', ms(stalled.besideMs)],
    ['dropped in the end', stalled.outcomes['dropped'] ?? 0],
    ['clients that left', left.outcomes['left'] ?? 0],
    ['requests aborted at the provider', left.upstreamAborts],
    [
      'streams, timers, connections, requests left',
      left.running + left.timers + left.connections + left.upstreamRunning,
    ],
    ['heap for each client that left, bytes', left.heapPerClient.toFixed(0)],
  ],
  claims: [
    ['of what a client does not read less than half was taken', stalled.takenPerClient < stalled.bodyBytes / 2],
    ['it costs no more memory than the answer so far and 1 MB', stalled.memoryPerClient < stalled.takenPerClient + 1e6],
    ['it is dropped, and its request aborted', stalled.outcomes['dropped'] === 100 && stalled.upstreamRunning === 0],
    ['the others take less than a quarter longer', stalled.besideMs < 1.25 * stalled.aloneMs],
    [
      'those that leave leave nothing',
      left.outcomes['left'] === left.clients &&
        left.upstreamAborts === left.clients &&
        left.running + left.timers + left.connections + left.upstreamRunning === 0,
    ],
    ['their heap is given back', left.heapPerClient < 1000],
  ],
});
