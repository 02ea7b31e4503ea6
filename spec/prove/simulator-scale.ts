import { withLiveLine } from './parts/liveLine.ts';
import { simulateApart } from './parts/simulatorScale.ts';
import type { ScaleResult } from './parts/simulatorScale.ts';
import { ms, writeResults } from './parts/writeResults.ts';

const SIZES = [20_000, 200_000, 2_000_000] as const;
let line = 'starting';

const measured: ScaleResult[] = [];
for (const calls of SIZES) {
  measured.push(
    await withLiveLine(
      () => line,
      () => simulateApart(calls, (text) => void (line = text)),
    ),
  );
}

const micros = (seconds: number): string => `${(1e6 * seconds).toFixed(1)} µs`;
const rows = measured.flatMap(({ results, peakBytes }) =>
  results.map(({ name, calls, answered, attempts, rateLimited, p95Ms, cpuSeconds }, i) => [
    name,
    calls.toLocaleString('en-US'),
    answered.toLocaleString('en-US'),
    attempts.toLocaleString('en-US'),
    rateLimited,
    ms(p95Ms),
    `${cpuSeconds.toFixed(1)} s`,
    Math.round(attempts / cpuSeconds).toLocaleString('en-US'),
    micros(cpuSeconds / attempts),
    i === results.length - 1 ? `${(peakBytes / 1e6).toFixed(0)} MB` : '',
  ]),
);

const sluice = measured.map(({ results }) => results.at(-1)!);
const perRequest = sluice.map(({ cpuSeconds, attempts }) => cpuSeconds / attempts);
const largest = sluice.at(-1)!;
const peakBytes = measured.at(-1)!.peakBytes;

await writeResults({
  name: 'simulator-scale',
  title: 'A day of two million requests, simulated',
  text: `
\`simulate\` with a full policy: layers of requests and tokens, tenants, priorities, half of the load in conversations, retries with a
budget, a breaker, a limit on concurrency, a fallback, time limits, prices and caps on what is spent. The load is that of two million calls a
day, with the swing of a day in the time simulated, before a provider whose quota is 1.15 times its mean and of which 0.2 % of the answers
are errors. The first row of each size is the best possible schedule, which every simulation works out; the second the policy.

CPU is that of the whole process, its garbage collection included; a machine that is busy otherwise takes more of it for the same. *Peak memory* is the most that the
process ever held, for both rows together. The mark for two million requests is 120 s; the goal is 60 s.`,
  rows: [
    [
      '',
      'calls',
      'answered',
      'requests',
      '429s',
      'time to first content, p95',
      'CPU',
      'requests per CPU second',
      'CPU per request',
      'peak memory',
    ],
    ...rows,
  ],
  claims: [
    [`two million requests in at most 120 s of CPU: ${largest.cpuSeconds.toFixed(0)} s`, largest.cpuSeconds <= 120],
    [`below 1 GB of memory: ${(peakBytes / 1e6).toFixed(0)} MB`, peakBytes < 1e9],
    [
      `a request of two million costs no more than one of 200,000, within a tenth: ${micros(perRequest[2]!)} and ${micros(perRequest[1]!)}`,
      perRequest[2]! <= 1.1 * perRequest[1]!,
    ],
  ],
});
