// One policy over four processes, and one quota for all of them: they share it through Redis, whatever load each one has.

import { fork, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import OpenAI from 'openai';
import { createClient } from 'redis';
import { createSluice, isSluiceError, text } from 'sluice';
import { startEmulator } from 'sluice/emulator';
import { redisStore } from 'sluice/redis';

/** What the provider allows, by account. The same numbers in every process. */
const account = { requestsPerMinute: 3000, burstRequests: 50 };
/** Calls of each process, all at once. */
const loads = [160, 80, 40, 20];

interface Job {
  readonly redisUrl: string;
  readonly baseURL: string;
  readonly calls: number;
}

interface Done {
  readonly answered: number;
  readonly codes: readonly string[];
  readonly firstMs: readonly number[];
}

if (process.send === undefined) await main();
else process.once('message', (job) => void work(job as Job));

/** One of the processes: nothing in it knows of the others. */
async function work({ redisUrl, baseURL, calls }: Job): Promise<void> {
  const redis = await createClient({ url: redisUrl }).connect();
  // How many there are, so that one which cannot reach the store takes its part of the quota.
  const store = redisStore(redis, { processes: loads.length, commandTimeoutMs: 1000 });
  const openai = new OpenAI({ baseURL, apiKey: 'none' });
  const sluice = createSluice(openai, { deadlineMs: 60_000, quota: { account } }, { store });

  const firstMs: number[] = [];
  const codes: string[] = [];
  const startedMs = performance.now();
  await Promise.all(
    Array.from({ length: calls }, async (_, index) => {
      let first: number | undefined;
      const messages = [{ role: 'user' as const, content: `question ${index}` }];
      try {
        await sluice
          .chat({ model: 'large', messages })
          .pipe(text())
          .forEach(() => (first ??= performance.now() - startedMs));
        firstMs.push(first ?? 0);
      } catch (error) {
        codes.push(isSluiceError(error) ? error.code : String(error));
      }
    }),
  );
  await sluice.close();
  store.close();
  redis.destroy();
  process.send?.({ answered: firstMs.length, codes, firstMs } satisfies Done, () => process.disconnect());
}

async function main(): Promise<void> {
  const redis = await startRedis();
  if (redis === undefined) {
    console.log('This example needs redis-server, which is not installed (Debian: apt install redis-server).');
    console.log('With a server of your own: REDIS_URL=redis://localhost:6379 node examples/four-processes.ts');
    return;
  }
  const emulator = await startEmulator({ ...account, firstTokenMs: 80, tokenMs: 5, tokens: 20 });
  const calls = loads.reduce((sum, load) => sum + load, 0);
  console.log(`${loads.length} processes, ${calls} calls, one quota: ${account.requestsPerMinute} requests a minute\n`);

  const startedMs = performance.now();
  const results = await Promise.all(
    loads.map((load) => run({ redisUrl: redis.url, baseURL: emulator.baseURL, calls: load })),
  );
  const seconds = (performance.now() - startedMs) / 1000;

  row('process', 'calls', 'answered', 'first content p50', 'p95');
  results.forEach(({ answered, firstMs }, i) => {
    row(String(i + 1), String(loads[i]), String(answered), shown(firstMs, 0.5), shown(firstMs, 0.95));
  });
  const { requests, statuses } = emulator.report();
  console.log(
    `\nprovider: ${requests} requests, ${statuses[429] ?? 0} answers 429, in ${seconds.toFixed(1)} s with the start`,
  );
  for (const code of new Set(results.flatMap(({ codes }) => codes))) console.log(`failed: ${code}`);

  await emulator.close();
  redis.stop();
}

async function run(job: Job): Promise<Done> {
  const child = fork(import.meta.filename);
  child.send(job);
  const [done] = (await once(child, 'message')) as [Done];
  return done;
}

/** A server on a free port of this machine that keeps nothing, unless there is one to use. */
async function startRedis(): Promise<{ readonly url: string; stop(): void } | undefined> {
  const given = process.env['REDIS_URL'];
  if (given !== undefined) return { url: given, stop: () => {} };
  if (spawnSync('redis-server', ['--version']).status !== 0) return undefined;
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address() as AddressInfo;
  probe.close();
  const server = spawn('redis-server', ['--port', String(port), '--bind', '127.0.0.1', '--save', ''], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  for await (const line of server.stdout) if (String(line).includes('Ready to accept connections')) break;
  return { url: `redis://127.0.0.1:${port}`, stop: () => void server.kill() };
}

function row(...cells: readonly string[]): void {
  const [name = '', ...others] = cells;
  console.log(name.padEnd(8) + others.map((cell) => cell.padStart(18)).join(''));
}

function shown(times: readonly number[], share: number): string {
  const sorted = [...times].sort((a, b) => a - b);
  const ms = sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0;
  return `${(ms / 1000).toFixed(1)} s`;
}
