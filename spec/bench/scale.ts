// What a call costs where many wait, many streams are open, or many names have been seen. `FAST=1` leaves out the largest.
import { writeResults } from '../prove/parts/writeResults.ts';
import { namesUs, queueUs, runWaiters } from './parts/scaleRuns.ts';
import { runStreams } from './parts/streamRuns.ts';
import type { StreamsWay } from './parts/streamRuns.ts';

const fast = process.env['FAST'] === '1';
const MOST = fast ? 10_000 : 100_000;
const CALLS = 200_000;
const sizes = (most: number): number[] => [100, 1_000, 10_000, 100_000].filter((size) => size <= most);
const us = (value: number): string => `${value.toFixed(1)} us`;
const kb = (bytes: number): string => `${(bytes / 1000).toFixed(1)} kB`;

await runWaiters(1_000, 50);
const waiters = new Map<number, Awaited<ReturnType<typeof runWaiters>>>();
const queue = new Map<number, number>();
for (const size of sizes(MOST)) {
  console.log(`${size} waiters ...`);
  waiters.set(size, await runWaiters(size, Math.ceil(CALLS / size)));
  queue.set(size, queueUs(size, CALLS));
}

await namesUs(1_000, 20_000);
const names = new Map<number, number>();
for (const size of [1, ...sizes(MOST)]) {
  console.log(`${size} names ...`);
  names.set(size, await namesUs(size, 50_000));
}

const WAYS: readonly StreamsWay[] = ['bare', 'chat', 'policy'];
const streams: { count: number; results: Record<StreamsWay, Awaited<ReturnType<typeof runStreams>>> }[] = [];
for (const count of fast ? [500, 2_000] : [500, 2_000, 10_000]) {
  const results = {} as Record<StreamsWay, Awaited<ReturnType<typeof runStreams>>>;
  for (const way of WAYS) {
    console.log(`${count} streams, ${way} ...`);
    results[way] = await runStreams(way, count, 10_000 + count * 5);
  }
  streams.push({ count, results });
}

const callUs = (size: number): number => waiters.get(size)?.callUs ?? NaN;
const last = streams.at(-1);

await writeResults({
  name: 'scale',
  script: 'bench',
  title: 'Many that wait, many streams, many names',
  text: `
_Waiters_: calls through \`createSluice\` that are all made in one instant and wait for one quota, in virtual time, over a transport that answers
at once. CPU time of a whole call, from the subscription to the end of its answer; heap in use for each that waits; and the CPU time of one
operation (one joins; one is chosen and taken) of the queue alone, with ten waiters a tenant.`,
  rows: [
    ['waiters', 'CPU of a call', 'of that at 100', 'heap of a waiter', 'queue alone, an operation'],
    ...[...waiters].map(([size, { callUs: each, waiterBytes }]) => [
      size.toLocaleString('en'),
      us(each),
      (each / callUs(100)).toFixed(2),
      kb(waiterBytes),
      `${(queue.get(size) ?? NaN).toFixed(2)} us`,
    ]),
  ],
  more: [
    {
      title: 'Names',
      text: 'One call at a time, of a tenant and a conversation among as many that have been seen before; each tenant has a quota and a ceiling.',
      rows: [
        ['tenants and conversations', 'CPU of a call', 'of that with one'],
        ...[...names].map(([size, each]) => [
          size.toLocaleString('en'),
          us(each),
          (each / (names.get(1) ?? NaN)).toFixed(2),
        ]),
      ],
    },
    {
      title: 'Streams',
      text: `Streams over HTTP, all open at one time, in a process for each row. Memory in use for each, on the heap and beside it, after a collection,
when each stream has had its first content; _resident_ is what the system counts. \`chat\` goes through \`throttleByBucket\`; the policy has every part
of a policy at work.`,
      rows: [
        ['streams', 'way', 'failed', 'memory of a stream', 'of the bare SDK', 'resident'],
        ...streams.flatMap(({ count, results }) =>
          WAYS.map((way) => [
            count.toLocaleString('en'),
            { bare: 'bare SDK', chat: '`chat`', policy: 'policy' }[way],
            results[way].failed,
            kb(results[way].heapBytes),
            (results[way].heapBytes / results.bare.heapBytes).toFixed(2),
            kb(results[way].residentBytes),
          ]),
        ),
      ],
    },
  ],
  claims: [
    ['all that waited were answered', [...waiters.values()].every(({ answered, calls }) => answered === calls)],
    [
      `with ${MOST.toLocaleString('en')} that wait, a call takes at most twice the CPU time of one with 100`,
      callUs(MOST) <= 2 * callUs(100),
    ],
    ['an operation of the queue alone takes at most 3 us', [...queue.values()].every((each) => each <= 3)],
    [
      'no stream failed, and all were open when they were weighed',
      streams.every(({ results }) => WAYS.every((way) => results[way].failed + results[way].early === 0)),
    ],
    [
      `a stream through \`chat\` takes at most 1.1 times the memory of one of the bare SDK, where ${last?.count.toLocaleString('en')} are open`,
      last !== undefined && last.results.chat.heapBytes <= 1.1 * last.results.bare.heapBytes,
    ],
    ['through a policy too', last !== undefined && last.results.policy.heapBytes <= 1.1 * last.results.bare.heapBytes],
  ],
});
