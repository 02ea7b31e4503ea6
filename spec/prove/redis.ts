import { createClient } from 'redis';
import { startRedisServer } from '../helpers/redisServer.ts';
import { startEmulatorProcess } from './parts/emulatorProcess.ts';
import { emulatorOf } from './parts/fullSpeed.ts';
import { startHangingProxy } from './parts/hangingProxy.ts';
import { withLiveLine } from './parts/liveLine.ts';
import { runFour, runKilled, runOne, runThrough } from './parts/redisRuns.ts';
import type { Loss, LossResult, RedisWorld } from './parts/redisRuns.ts';
import { ms, writeResults } from './parts/writeResults.ts';

const provider = { requestsPerMinute: 3000, burstRequests: 50, firstTokenMs: 150 };
const server = await startRedisServer();
const proxy = await startHangingProxy(server.port);
const emulator = await startEmulatorProcess(emulatorOf(provider));
const world: RedisWorld = { provider, emulator, redisPort: server.port };
const admin = createClient({ socket: { host: '127.0.0.1', port: server.port, reconnectStrategy: 50 } });
admin.on('error', () => {});
await admin.connect();

const live = <T>(name: string, work: () => Promise<T>): Promise<T> => withLiveLine(() => name, work);

const one = await live('one process', () => runOne(world, 30_000));
await admin.flushAll();
const four = await live('four processes', () => runFour(world, 30_000));
await admin.flushAll();
const policy = await live('four processes, createSluice', () => runFour(world, 30_000, 'client'));
await admin.flushAll();
const killed = await live('one of four is killed', () => runKilled(world, 8_000, 10_000));

const losses: (readonly [string, Loss, number?])[] = [
  [
    'stopped, and started again',
    { breaking: () => server.stop(), awayMs: 10_000, mending: () => server.start(), afterMs: 8_000 },
  ],
  [
    'held by SIGSTOP',
    { breaking: () => server.pause(), awayMs: 10_000, mending: () => server.resume(), afterMs: 8_000 },
  ],
  [
    'connections that hang',
    { breaking: () => proxy.hang(), awayMs: 10_000, mending: () => proxy.goOn(), afterMs: 8_000 },
    proxy.port,
  ],
  [
    'SCRIPT FLUSH',
    { breaking: () => admin.scriptFlush(), awayMs: 1_000, mending: () => admin.scriptFlush(), afterMs: 6_000 },
  ],
  ['FLUSHALL', { breaking: () => admin.flushAll(), awayMs: 1_000, mending: () => admin.flushAll(), afterMs: 6_000 }],
];
const through: { readonly name: string; readonly away: boolean; readonly result: LossResult }[] = [];
for (const [name, loss, redisPort = server.port] of losses) {
  await admin.flushAll();
  const result = await live(name, () => runThrough({ ...world, redisPort }, loss));
  through.push({ name, away: loss.awayMs >= 10_000, result });
}

admin.destroy();
await emulator.close();
await proxy.close();
await server.close();

const percent = (share: number): string => `${(100 * share).toFixed(1)} %`;
await writeResults({
  name: 'redis',
  title: 'One quota for four processes',
  text: `
Worker processes call an emulator in a process of its own, through \`chat\` and \`throttleByBucket\` over a route of a quota of 3,000 requests a
minute in a \`redis-server\` of this run; the emulator allows the same. *Uneven load*: 30 s of a tenth more calls than the quota allows, at random
times, 60, 25, 10 and 5 % of them in each of four processes; and the same calls in one process over \`createQuota\`, and in four through \`createSluice\` with the store. *Used*: what was sent of what the
quota allows, after the first second. *Killed*: four processes with 15 askers each, who ask again once they are answered; one is ended by
\`kill -9\`, and those who are left are looked at from a second after the lease of 3 s on. *Store*: the same four, while something happens
to the store: for 10 s, or twice with a second in between. *Back*: used from two seconds after it was mended on. A command may take 250 ms. The
longest wait is allowed one turn in the common line, one in a process's own, the time of a command and two seconds.`,
  rows: [
    ['what', 'calls', '429s', 'used', 'p95 to first content', 'longest wait', 'allowed'],
    ['one process', one.calls, one.rateLimited, percent(one.used), ms(one.p95Ms), '', ''],
    ['four processes, uneven load', four.calls, four.rateLimited, percent(four.used), ms(four.p95Ms), '', ''],
    [
      'four processes, by createSluice',
      policy.calls,
      policy.rateLimited,
      percent(policy.used),
      ms(policy.p95Ms),
      '',
      '',
    ],
    ['one of four killed: before', '', killed.rateLimited, percent(killed.usedBefore), '', '', ''],
    ['one of four killed: those who are left', '', killed.rateLimited, percent(killed.usedAfter), '', '', ''],
    ...through.map(({ name, away, result }) => [
      `store: ${name}`,
      '',
      result.rateLimited,
      `${away ? `${percent(result.usedAway)} away, ` : ''}${percent(result.usedBack)} back`,
      '',
      ms(result.longestWaitMs),
      ms(result.boundMs),
    ]),
  ],
  claims: [
    ['four processes: no 429, all answered', four.rateLimited === 0 && four.answered === four.calls],
    ['four processes: at least 98 % of the quota used', four.used >= 0.98],
    [
      'four processes: p95 to first content within 10 % of one process with the same load',
      four.p95Ms <= one.p95Ms * 1.1,
    ],
    ['createSluice: no 429, all answered', policy.rateLimited === 0 && policy.answered === policy.calls],
    ['createSluice: at least 98 % of the quota used', policy.used >= 0.98],
    [
      'createSluice: p95 to first content within 10 % of one process with the same load',
      policy.p95Ms <= one.p95Ms * 1.1,
    ],
    ['killed: no 429', killed.rateLimited === 0],
    ['killed: those who are left use at least 98 % once the lease is over', killed.usedAfter >= 0.98],
    ['store: the provider never saw more than the quota', through.every(({ result }) => result.rateLimited === 0)],
    ['store: no call failed', through.every(({ result }) => result.failed === 0)],
    [
      'store: no call waited longer than the bound and its turns',
      through.every(({ result }) => result.longestWaitMs <= result.boundMs),
    ],
    ['store: back within 2 s', through.every(({ result }) => result.usedBack >= 0.95)],
    [
      'store: each loss and each return was told once by each process',
      through.every(({ away, result }) => result.lost === (away ? 4 : 0) && result.returned === result.lost),
    ],
  ],
});
