import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { createClient } from 'redis';
import type { RedisClientType } from 'redis';
import { Redis } from 'ioredis';
import type { SluiceError } from '../../lib/core/errors.ts';
import { SUCCESS } from '../../lib/core/outcome.ts';
import type { QuotaPort } from '../../lib/core/ports.ts';
import type { RedisClient } from '../../lib/stores/redis/RedisClient.ts';
import { redisStore } from '../../lib/stores/redis/redisStore.ts';
import { casesOf } from '../helpers/cases.ts';
import { describeWithRedis, startRedisServer } from '../helpers/redisServer.ts';
import type { RedisServer } from '../helpers/redisServer.ts';
import { LATER } from './later.ts';
import { SlotsWorld } from './slotsWorld.ts';

interface Config {
  readonly redis?: string;
  readonly op_timeout_ms?: number;
  readonly processes?: number;
  readonly limit_per_min?: number;
  readonly limit?: number;
  readonly window_ms?: number;
  readonly tokens_per_min?: number;
  readonly pipeline?: boolean;
  readonly shared_concurrency?: number;
  readonly lease_ms?: number;
}

interface Step {
  readonly op: string;
  readonly cmd?: string;
  readonly ms?: number;
  readonly times?: number;
  readonly concurrent?: boolean;
  readonly wait?: boolean;
  readonly estimates?: readonly number[];
}

interface RedisExpect {
  readonly decided_by_ms?: number;
  readonly total_ms_max?: number;
  readonly results?: readonly string[];
  readonly results_last?: string;
  readonly in_flight_in_redis_after?: number;
  readonly degraded_events?: number;
  readonly degraded_events_max?: number;
  readonly admitted_total_max?: number;
  readonly noscript_seen_max?: number;
  readonly counted?: number;
  readonly ttl_after_each_call_min_ms?: number;
  readonly admitted_tokens_max?: number;
  readonly admitted_any_of?: readonly (readonly number[])[];
}

const NAME = 'case';
/** What a busy machine may add to a bound on time. */
const SLACK_MS = 300;

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** A port that nobody listens on, and one where connections are taken and never answered. */
async function deadPort(hangs: boolean): Promise<{ readonly port: number; close(): void }> {
  const server = createServer((socket) => socket.on('error', () => {}).resume());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  if (hangs) return { port, close: () => server.close() };
  await new Promise((resolve) => server.close(resolve));
  return { port, close: () => {} };
}

describeWithRedis('public reports of form redis', () => {
  let server: RedisServer;

  before(async () => {
    server = await startRedisServer();
  });
  after(() => server.close());

  for (const { id, symptom, input, expect: expected } of casesOf<
    { config: Config; steps: readonly Step[] },
    RedisExpect
  >('redis')) {
    const later = LATER[id];
    if (later !== undefined) {
      it.skip(`${id}: ${later}`);
      continue;
    }
    const { config } = input;
    const { shared_concurrency } = config;
    if (shared_concurrency !== undefined) {
      it(`${id}: ${expected.must} [${symptom}]`, async () => {
        const world = await SlotsWorld.open(server.port, shared_concurrency, config.lease_ms);
        for (const step of input.steps) await world.run(step);
        const inFlight = await world.inFlight();
        await world.close();

        expect(world.results.at(-1)).to.equal(expected.results_last);
        if (expected.in_flight_in_redis_after !== undefined) {
          expect(inFlight).to.equal(expected.in_flight_in_redis_after);
        }
      });
      continue;
    }
    it(`${id}: ${expected.must} [${symptom}]`, async () => {
      const dead = config.redis === undefined ? undefined : await deadPort(config.redis.includes('never answers'));
      const admin: Admin = createClient({ socket: { port: server.port, host: '127.0.0.1' } });
      await admin.connect();
      await admin.flushAll();
      await admin.configResetStat();
      const clients = Array.from(
        { length: config.processes ?? 1 },
        () =>
          // Both kinds have an offline queue and reconnect for ever.
          new Redis({
            port: dead?.port ?? server.port,
            host: '127.0.0.1',
            enableAutoPipelining: config.pipeline === true,
          }),
      );
      let degraded = 0;
      const stores = clients.map((client: RedisClient) =>
        redisStore(client, {
          commandTimeoutMs: dead ? (config.op_timeout_ms ?? 100) : 5000,
          ...(dead && { processes: config.processes ?? 1 }),
          onChange: ({ type }) => void (type === 'store.lost' && degraded++),
        }),
      );
      const quotas = stores.map((store) => store.quota(NAME, quotaOf(config)));
      const world = { quotas, results: [] as string[], admitted: [] as number[], slowestMs: 0, ttls: [] as number[] };
      const beganMs = performance.now();

      for (const step of input.steps) {
        if (step.op === 'redis') await command(admin, step.cmd ?? '');
        else if (step.op === 'wait_ms') await pause(step.ms ?? 0);
        else {
          await calls(step, world);
          if (!dead) world.ttls.push(await admin.pTTL(`sluice:{${NAME}}:quota:state`));
        }
      }
      const tookMs = performance.now() - beganMs;
      const noScript = await callsOf('eval', admin);
      const counted = dead ? 0 : await countedBy(admin, config);
      for (const store of stores) store.close();
      for (const client of clients) client.disconnect();
      admin.destroy();
      dead?.close();

      if (expected.decided_by_ms) expect(world.slowestMs).to.be.below(expected.decided_by_ms + SLACK_MS);
      if (expected.total_ms_max) expect(tookMs).to.be.below(expected.total_ms_max + SLACK_MS);
      if (expected.results) expect(world.results).to.deep.equal(expected.results.map((result) => result.slice(0, 2)));
      if (expected.degraded_events !== undefined) expect(degraded).to.equal(expected.degraded_events);
      if (expected.degraded_events_max !== undefined) expect(degraded).to.be.at.most(expected.degraded_events_max);
      if (expected.admitted_total_max !== undefined) {
        expect(world.admitted.length).to.be.at.most(expected.admitted_total_max);
      }
      // Once at first, and once after each time they were forgotten by each call that was under way.
      if (expected.noscript_seen_max !== undefined) expect(noScript).to.be.at.most(1 + expected.noscript_seen_max);
      if (expected.counted !== undefined) expect(counted).to.be.within(expected.counted - 1, expected.counted + 0.9);
      if (expected.ttl_after_each_call_min_ms) for (const ttl of world.ttls) expect(ttl).to.be.at.least(1);
      if (expected.admitted_tokens_max !== undefined) {
        expect(world.admitted.reduce((sum, tokens) => sum + tokens, 0)).to.be.at.most(expected.admitted_tokens_max);
      }
      if (expected.admitted_any_of) expect(expected.admitted_any_of).to.deep.include(world.admitted);
    });
  }
});

type World = {
  readonly quotas: readonly QuotaPort[];
  readonly results: string[];
  readonly admitted: number[];
  readonly ttls: number[];
  slowestMs: number;
};

function quotaOf({ limit_per_min, limit, window_ms, tokens_per_min }: Config) {
  if (tokens_per_min !== undefined) return { tokensPerMinute: tokens_per_min };
  if (limit !== undefined) return { requestsPerMinute: (limit * 60_000) / (window_ms ?? 60_000), burstRequests: limit };
  return limit_per_min === undefined
    ? { requestsPerMinute: 60_000 }
    : { requestsPerMinute: limit_per_min, burstRequests: limit_per_min };
}

async function calls(step: Step, world: World): Promise<void> {
  const each = step.op === 'call_each_process' ? world.quotas.map((_, i) => i) : [0];
  const costs = step.estimates ?? Array.from({ length: step.times ?? 1 }, () => 0);
  const asks = each.flatMap((process) =>
    costs.map((tokens, i) => [(process + i) % world.quotas.length, tokens] as const),
  );
  const ask = ([process, tokens]: (typeof asks)[number]): Promise<void> => callOnce(process, tokens, step, world);
  if (step.concurrent) await Promise.all(asks.map(ask));
  else for (const each of asks) await ask(each);
}

function callOnce(process: number, tokens: number, step: Step, world: World): Promise<void> {
  const beganMs = performance.now();
  const wait = step.wait === false ? { maxWaitMs: 0 } : {};
  return new Promise((resolve) => {
    const end = (result: string): void => {
      world.results.push(result);
      world.slowestMs = Math.max(world.slowestMs, performance.now() - beganMs);
      resolve();
    };
    world.quotas[process]?.acquire({ cost: { requests: 1, tokens, explicit: true }, ...wait }).subscribe({
      next: (grant) => {
        world.admitted.push(tokens);
        grant.release(SUCCESS);
        end('ok');
      },
      error: ({ code }: SluiceError) => end(code),
    });
  });
}

type Admin = RedisClientType;

async function command(admin: Admin, text: string): Promise<void> {
  await admin.sendCommand(text.replace('<limit key>', `sluice:{${NAME}}:quota:state`).split(' '));
}

async function callsOf(name: string, admin: Admin): Promise<number> {
  return Number(new RegExp(`cmdstat_${name}:calls=(\\d+)`).exec(await admin.info('commandstats'))?.[1] ?? 0);
}

/** How many the quota has counted, less what has come back since. */
async function countedBy(admin: Admin, config: Config): Promise<number> {
  // What was taken ahead of need is back by then.
  await pause(250);
  const store = redisStore(admin, { commandTimeoutMs: 5000 });
  const quota = store.quota(NAME, quotaOf(config));
  const world: World = { quotas: [quota], results: [], admitted: [], ttls: [], slowestMs: 0 };
  await callOnce(0, 0, { op: 'call', wait: false }, world);
  const requests = quota.snapshot().layers[0]?.requests;
  store.close();
  return requests ? requests.burst - requests.level - world.admitted.length : 0;
}
