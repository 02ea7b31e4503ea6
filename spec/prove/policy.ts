import OpenAI from 'openai';
import { systemRuntime } from '../../lib/index.ts';
import { openaiVersions } from '../helpers/openaiVersions.ts';
import { startEmulatorProcess } from './parts/emulatorProcess.ts';
import { emulatorOf, warmUp } from './parts/fullSpeed.ts';
import { withLiveLine } from './parts/liveLine.ts';
import { attemptsSeen, runClose, runDeadline, runFailing } from './parts/policyAttempts.ts';
import { FALLBACK, PRIMARY, runDead, runTotal } from './parts/policyOutage.ts';
import { runWorkers } from './parts/policyWorkers.ts';
import { ms, writeResults } from './parts/writeResults.ts';

const runtime = systemRuntime;
let line = 'starting';
const progress = (text: string): void => void (line = text);
const live = <T>(name: string, work: () => Promise<T>): Promise<T> => {
  line = 'starting';
  return withLiveLine(() => `${name}: ${line}`, work);
};
const clientOf = (baseURL: string): OpenAI => new OpenAI({ baseURL, apiKey: 'none' });

const provider = { requestsPerMinute: 3000, burstRequests: 50, firstTokenMs: 150 };
const quick = await startEmulatorProcess(emulatorOf(provider));
await warmUp(clientOf(quick.baseURL));
const workers = await live('workers', () =>
  runWorkers(
    clientOf(quick.baseURL),
    provider,
    quick,
    runtime,
    { fewMs: 4_000, manyMs: 11_000, pauseMs: 150 },
    progress,
  ),
);
await quick.close();

const limits = { requestsPerMinute: 3_000, burstRequests: 50 };
const answers = { firstTokenMs: 100, tokenMs: 5, tokens: 8 };
const pair = await startEmulatorProcess({ ...answers, models: { [PRIMARY]: limits, [FALLBACK]: limits } });
const both = { openai: clientOf(pair.baseURL), emulator: pair, runtime, progress };
const openMs = 15_000;
const dead = await live('dead primary', () => runDead(both, { calls: 20, deadMs: 60_000, openMs }));
const total = await live('total outage', () =>
  runTotal(both, { ...limits, perSecond: 45, forMs: 14_000, deadFromMs: 3_000, deadToMs: 10_000 }),
);
await pair.close();

const single = await startEmulatorProcess({
  ...answers,
  models: { 'gpt-5.5': { firstTokenMs: 300 }, long: { tokens: 2_000, tokenMs: 20 } },
});
const one = { openai: clientOf(single.baseURL), emulator: single, runtime, progress };
const failing = await live('all fail', () => runFailing(one, { perSecond: 50, forMs: 12_000, usedUpMs: 4_000 }));
const deadline = await live('deadline', () => runDeadline(one, { calls: 100, deadlineMs: 2_000 }));
const close = await live('close', () => runClose(one, { short: 100, long: 20, drainMs: 2_000 }));
const seen: { readonly name: string; readonly way: string; readonly seen: number; readonly ours: number }[] = [];
for (const { name, OpenAI: Version } of openaiVersions) {
  const make = (options: { fetch?: typeof fetch }): OpenAI =>
    new Version({ baseURL: single.baseURL, apiKey: 'none', ...options });
  const counts = await live(name, () => attemptsSeen(one, make, 3));
  seen.push(...Object.entries(counts).map(([way, count]) => ({ name, way, ...count })));
}
await single.close();

const versions = [...new Set(seen.map(({ name }) => name))];
await writeResults({
  name: 'policy',
  title: 'One policy over HTTP',
  text: `
Everything goes through \`createSluice\`, to an emulator in a process of its own. *Workers*: 16 that ask, read, pause for 150 ms and ask again,
and after 4 s 64 of them in one instant, for 11 s more, on 3,000 requests a minute; *best* is the p95 of a client that knows the provider's
bucket, serves first come first served and loses no time. *Dead primary*: 20 calls over 60 s in which every connection to it is reset, breaker
\`consecutiveFailures: 2\` and \`openMs\` 15,000. *Total outage*: 45 calls a second on 3,000 requests a minute, and for 7 s of the 14 no primary.
*All fail*: 50 calls a second that are all answered with a 500, without a breaker, with the retry budget that there is by default, counted from
the fourth second on. *Deadline*: calls of 2 s, to a model that has answered in 300 ms at best and then fails. *SDK*: clients built with their default
retries, a policy of 3 attempts, and a provider that always fails: \`chat\`, \`respond\`, \`complete\`, \`call\`, and \`create\` over \`sluice.fetch\`,
streamed or not. *Close*: 100 short answers and 20 endless ones, closed with a \`drainMs\` of 2,000.`,
  rows: [
    ['what', 'measured', 'promised'],
    ['workers: calls, answered', `${workers.calls}, ${workers.answered}`, 'all'],
    ['workers: 429s', workers.rateLimited, 0],
    [
      'workers: p95 of the time to first content',
      ms(workers.firstContentMs.p95),
      `${ms(workers.bestP95Ms)} (best) + 5 % + 120 ms`,
    ],
    ['dead primary: answered by the fallback', `${dead.byFallback} of 20`, 'all'],
    ['dead primary: attempts at it before and after its breaker opened', `${dead.before}, ${dead.after}`, '4 after'],
    ['dead primary: back after the outage', ms(dead.backMs), `one probe interval, ${ms(openMs)}`],
    ['total outage: calls, lost', `${total.calls}, ${total.calls - total.answered}`, '0 lost'],
    ['total outage: by the fallback, attempts at the dead primary', `${total.byFallback}, ${total.atDead}`, '-'],
    ['total outage: 429s', total.rateLimited, 0],
    ['all fail: attempts a call', failing.perCall.toFixed(3), 'at most 1.2'],
    ['deadline: attempts a call', (deadline.attempts / deadline.calls).toFixed(1), '-'],
    ['deadline: latest retry, after its call', ms(deadline.latestMs), 'at most 1700 ms, and 50 ms for late timers'],
    ...versions.map((name): [string, string, string] => [
      `${name}: requests of one failed call, by each of 6 ways`,
      seen
        .filter((each) => each.name === name)
        .map((each) => each.seen)
        .join(', '),
      '3 each',
    ]),
    ['close: answered, cut, refused', `${close.answered}, ${close.cut}, ${close.refused}`, '100, 20, 1'],
    ['close: closed after', ms(close.closedAfterMs), '2000 ms'],
  ],
  claims: [
    ['workers: no 429, all answered', workers.rateLimited === 0 && workers.answered === workers.calls],
    ['workers: p95 within 5 % + 120 ms of the best', workers.firstContentMs.p95 <= workers.bestP95Ms * 1.05 + 120],
    ['dead primary: all answered by the fallback', dead.byFallback === 20],
    ['dead primary: at most 4 attempts at it once the breaker had opened', dead.after <= 4],
    ['dead primary: back within one probe interval and a call', dead.backMs <= openMs + 1_000],
    ['total outage: no call lost, no 429', total.answered === total.calls && total.rateLimited === 0],
    ['all fail: at most 1.2 attempts a call', failing.perCall <= 1.2],
    [
      'no retry started that could not finish before the deadline',
      deadline.latestMs <= 1_750 && deadline.attempts > deadline.calls,
    ],
    [
      'the provider saw our attempts and no others',
      seen.every(({ seen: requests, ours }) => requests === 3 && ours === 3),
    ],
    [
      'close: short answers ended, the others were cut, nothing was left',
      close.answered === 100 && close.cut === 20 && close.refused === 1 && close.running + close.left === 0,
    ],
  ],
});
