import { Redis } from 'ioredis';
import type { Runtime } from '../../../lib/index.ts';
import { startEmulator } from '../../../lib/emulator/index.ts';
import type { Emulator } from '../../../lib/emulator/index.ts';
import { redisStore } from '../../../lib/stores/redis/index.ts';
import type { RedisStore } from '../../../lib/stores/redis/index.ts';
import { systemRuntime } from '../../../lib/index.ts';
import { seededRandom } from '../../../lib/testing/index.ts';
import { startRedisServer } from '../../helpers/redisServer.ts';
import type { RedisServer } from '../../helpers/redisServer.ts';
import { steadyRuntime } from '../../prove/parts/steadyRuntime.ts';
import type { ChaosPlan, Shock } from '../plan/ChaosPlan.ts';
import { StallingRuntime } from './StallingRuntime.ts';
import { WatchedNetwork } from './WatchedNetwork.ts';
import type { ProviderWitness, World } from './World.ts';

const LOOK_MS = 5;
/** Calls over HTTP are short; one that has not ended by then never will. A hint of 90 seconds may have been slept out. */
const LONGEST_MS = 120_000;
/** Two clients of one store. */
const PROCESSES = 2;

/**
 * Emulators and clients of one process, over real HTTP. Without a store both go by a clock that stands still while the
 * process is kept from running, so that what counts is what the client does, on a busy machine too.
 */
export async function httpWorld(plan: ChaosPlan, witness: ProviderWitness): Promise<World> {
  const shared = plan.world === 'redis';
  const steady = shared ? undefined : steadyRuntime();
  const time = withWall({ ...(steady ?? systemRuntime), random: seededRandom(plan.seed) });
  const runtime = new StallingRuntime(time, () => new Promise((resolve) => setImmediate(resolve)));
  const emulators = new Map<string, Emulator>();
  const addresses: Record<string, string> = {};
  for (const [client, { options }] of Object.entries(plan.providers)) {
    const seed = plan.seed + emulators.size;
    const emulator = await startEmulator({ ...options, seed, runtime: time, maxRecords: 100_000 });
    emulators.set(client, emulator);
    addresses[client] = emulator.baseURL;
  }
  const server = shared ? await startRedisServer() : undefined;
  const links = server ? Array.from({ length: PROCESSES }, () => connect(server)) : [];
  const stores = links.map((link): RedisStore => redisStore(link, STORE, runtime));
  const waiting: Promise<void>[] = [];

  return {
    runtime,
    connect: (process, witness, { network: between = (fetch) => fetch }) =>
      new WatchedNetwork({ addresses, process, witness, runtime, between, send: globalThis.fetch }),
    addresses,
    stores,
    shock(shock) {
      if (shock.kind === 'wall') time.stepWall(shock.byMs);
      if (shock.kind === 'limits') emulators.get(shock.client)?.setQuota({ account: shock.account });
      if (shock.kind === 'store' && server) waiting.push(strike(shock, server));
    },
    async pass(done) {
      const untilMs = runtime.clock.now() + LONGEST_MS;
      while (!done() && runtime.clock.now() < untilMs) await sleep(LOOK_MS);
      await Promise.all(waiting.splice(0));
    },
    async leftovers() {
      const running = (): number => [...emulators.values()].reduce((sum, one) => sum + one.report().running, 0);
      // The news of an abort is on its way.
      for (let i = 0; i < 1_000 && running() > 0; i++) await sleep(LOOK_MS);
      for (const [client, emulator] of emulators) {
        for (const { model, refusal } of emulator.report().log) witness.judged(client, model, refusal);
      }
      return { 'requests that run at providers': running() };
    },
    async close() {
      for (const link of links) link.disconnect();
      await server?.close();
      await Promise.all([...emulators.values()].map((emulator) => emulator.close()));
      steady?.stop();
    },
  };
}

/** Losses are found, and ended, within the second that such a plan lasts. */
const STORE = { commandTimeoutMs: 150, probeMs: 50, leaseMs: 1_000 } as const;

function connect({ port }: RedisServer): Redis {
  const link = new Redis({ port, host: '127.0.0.1', retryStrategy: () => 25, maxRetriesPerRequest: 0 });
  link.on('error', () => {});
  return link;
}

async function strike({ what, forMs }: Extract<Shock, { kind: 'store' }>, server: RedisServer): Promise<void> {
  switch (what) {
    case 'flush': {
      const link = connect(server);
      await link.flushall().catch(() => {});
      link.disconnect();
      return;
    }
    case 'pause':
      server.pause();
      await sleep(forMs);
      server.resume();
      return;
    case 'restart':
      await server.stop();
      await sleep(forMs);
      await server.start();
  }
}

function withWall(runtime: Runtime): Runtime & { stepWall(byMs: number): void } {
  let stepMs = 0;
  const { clock } = runtime;
  return {
    ...runtime,
    clock: { now: () => clock.now(), wallNow: () => clock.wallNow() + stepMs },
    stepWall: (byMs) => void (stepMs += byMs),
  };
}

function sleep(forMs: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, forMs));
}
