import { expect } from 'chai';
import { createClient } from 'redis';
import type { RedisClientType } from 'redis';
import type { SluiceError } from '../../../lib/core/errors.ts';
import { SUCCESS } from '../../../lib/core/outcome.ts';
import { redisStore } from '../../../lib/stores/redis/redisStore.ts';
import type { RedisStore, RedisStoreOptions } from '../../../lib/stores/redis/redisStore.ts';
import type { StoreChange } from '../../../lib/limits/LimitStore.ts';
import { describeWithRedis, startRedisServer } from '../../helpers/redisServer.ts';
import type { RedisServer } from '../../helpers/redisServer.ts';

const PER_MINUTE = 6000;
const BURST = 20;
const PER_MS = PER_MINUTE / 60_000;
const PROCESSES = 3;
/** How much later than it should a timer, or the answer of a server, may be on a busy machine. */
const LATE_MS = 150;
const WITHIN_MS = 10_000;

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Processes that always want more than there is. */
class Load {
  readonly grantsMs: number[] = [];
  readonly refusals = new Map<string, number>();
  readonly changes: StoreChange[][] = [];
  readonly longestMs: number[] = [];
  readonly #clients: RedisClientType[] = [];
  readonly #stores: RedisStore[] = [];
  #running = true;
  #waiting: Promise<void>[] = [];

  async start(port: number, options: RedisStoreOptions = {}): Promise<void> {
    for (let process = 0; process < PROCESSES; process++) {
      const client: RedisClientType = createClient({ socket: { port, host: '127.0.0.1', reconnectStrategy: 50 } });
      await client.connect();
      const changes: StoreChange[] = [];
      this.changes.push(changes);
      const onChange = (change: StoreChange): void => {
        if (this.#running) changes.push(change);
      };
      const store = redisStore(client, { commandTimeoutMs: 400, probeMs: 200, onChange, ...options });
      this.#clients.push(client);
      this.#stores.push(store);
      const quota = store.quota('q', { requestsPerMinute: PER_MINUTE, burstRequests: BURST });
      const ask = (): Promise<void> =>
        new Promise((resolve) => {
          const askedMs = performance.now();
          quota.acquire({ cost: { requests: 1, tokens: 0, explicit: true } }).subscribe({
            next: (grant) => {
              this.grantsMs.push(performance.now());
              this.longestMs.push(performance.now() - askedMs);
              grant.release(SUCCESS);
              resolve();
            },
            error: ({ code }: SluiceError) => {
              // In the end those who wait are sent away, and connections are closed.
              if (this.#running) this.refusals.set(code, (this.refusals.get(code) ?? 0) + 1);
              setTimeout(resolve, 10);
            },
          });
        });
      const worker = async (): Promise<void> => {
        while (this.#running) await ask();
      };
      for (let i = 0; i < 10; i++) this.#waiting.push(worker());
    }
  }

  between(fromMs: number, untilMs: number): number {
    return this.grantsMs.filter((atMs) => atMs >= fromMs && atMs < untilMs).length;
  }

  /** Waits until calls of all processes have gone at the whole rate for half a second, which a busy machine may put off. */
  async fullRate(): Promise<void> {
    const sinceMs = performance.now();
    await this.until((nowMs) => {
      const shared = this.changes.every((changes) => changes.at(-1)?.type !== 'store.lost');
      return shared && nowMs - sinceMs >= 500 && this.between(nowMs - 500, nowMs) > 0.8 * PER_MS * 500;
    }, 'has the whole rate');
  }

  async until(reached: (nowMs: number) => boolean, what: string): Promise<void> {
    const sinceMs = performance.now();
    while (!reached(performance.now())) {
      expect(performance.now() - sinceMs, `ms until it ${what}`).to.be.below(WITHIN_MS);
      await pause(20);
    }
  }

  /** A process that is held up at its start may find the store lost, and not know yet among how many it shares. */
  forget(): void {
    this.refusals.clear();
    for (const changes of this.changes) changes.length = 0;
  }

  /** The most that was granted above the quota in any stretch of time. */
  get excess(): number {
    let most = -Infinity;
    let lowest = Infinity;
    this.grantsMs
      .sort((a, b) => a - b)
      .forEach((atMs, i) => {
        lowest = Math.min(lowest, i - PER_MS * atMs);
        most = Math.max(most, i + 1 - PER_MS * atMs - lowest - BURST);
      });
    return most;
  }

  async stop(): Promise<void> {
    this.#running = false;
    for (const store of this.#stores) store.close();
    await Promise.all(this.#waiting);
    for (const client of this.#clients) client.destroy();
  }
}

interface Ready {
  readonly server: RedisServer;
  readonly admin: RedisClientType;
  readonly load: Load;
}

/** One loss, to a server of its own. */
interface Scene extends Ready {
  /** When all processes had noticed, when it was about to be mended, and when it was. */
  readonly noticedMs: number;
  readonly mendingMs: number;
  readonly mendedMs: number;
}

interface Break {
  readonly breaking: (scene: Ready) => unknown;
  /** Whether the processes notice it. Default: yes. */
  readonly noticed?: boolean;
  /** How long it stays broken, once they have. */
  readonly awayMs: number;
  readonly mending: (scene: Ready) => unknown;
  readonly options?: RedisStoreOptions;
}

const AWAY_MS = 1000;

const BREAKS = {
  stopped: {
    breaking: ({ server }) => server.stop(),
    awayMs: AWAY_MS,
    mending: ({ server }) => server.start(),
  },
  hanging: {
    breaking: ({ server }) => server.pause(),
    awayMs: AWAY_MS,
    mending: ({ server }) => server.resume(),
  },
  readOnly: {
    breaking: ({ admin }) => admin.sendCommand(['REPLICAOF', '127.0.0.1', '1']),
    awayMs: AWAY_MS,
    mending: ({ admin }) => admin.sendCommand(['REPLICAOF', 'NO', 'ONE']),
  },
  emptied: {
    breaking: ({ admin }) => admin.flushAll(),
    noticed: false,
    awayMs: 300,
    mending: ({ admin }) => admin.flushAll(),
  },
  unscripted: {
    breaking: ({ admin }) => admin.scriptFlush(),
    noticed: false,
    awayMs: 300,
    mending: ({ admin }) => admin.scriptFlush(),
  },
  refusing: {
    breaking: ({ server }) => server.stop(),
    awayMs: 500,
    mending: ({ server }) => server.start(),
    options: { onStoreLoss: 'refuse' },
  },
} satisfies Record<string, Break>;

const PAIRS = [
  ['stopped', 'emptied'],
  ['hanging', 'unscripted'],
  ['readOnly', 'refusing'],
] as const;

/** Runs the load, breaks the store for a while, mends it, and waits until all goes as before. */
async function through({ breaking, awayMs, mending, noticed = true, options }: Break): Promise<Scene> {
  const server = await startRedisServer();
  const admin: RedisClientType = createClient({
    socket: { port: server.port, host: '127.0.0.1', reconnectStrategy: 50 },
  });
  admin.on('error', () => {});
  await admin.connect();
  const load = new Load();
  const scene = { server, admin, load };
  try {
    await load.start(server.port, options);
    await load.fullRate();
    load.forget();
    await breaking(scene);
    if (noticed) await load.until(() => load.changes.every((changes) => changes.length > 0), 'notices the loss');
    const noticedMs = performance.now();
    await pause(awayMs);
    const mendingMs = performance.now();
    await mending(scene);
    const mendedMs = performance.now();
    await load.fullRate();
    return { ...scene, noticedMs, mendingMs, mendedMs };
  } finally {
    admin.destroy();
    await load.stop();
    await server.close();
  }
}

describeWithRedis('redisStore, when the store is lost', function () {
  this.timeout(30_000);
  const scenes = new Map<keyof typeof BREAKS, Promise<Scene>>();

  // Two at a time, as they mostly wait: each has a server and processes of its own. More would wait for the processor too.
  before(() => {
    let turn: Promise<unknown> = Promise.resolve();
    for (const pair of PAIRS) {
      const before = turn;
      const playing = pair.map((name) => {
        const scene = before.then(() => through(BREAKS[name]));
        scenes.set(name, scene);
        return scene;
      });
      turn = Promise.allSettled(playing); // What fails is told by the test that asks for it.
    }
  });
  after(() => Promise.allSettled(scenes.values()));
  const sceneOf = (name: keyof typeof BREAKS): Promise<Scene> => scenes.get(name) as Promise<Scene>;

  const expectWithinQuota = ({ load }: Scene): void => {
    expect(load.excess, 'granted above the quota').to.be.at.most(PER_MS * LATE_MS);
    expect([...load.refusals]).to.deep.equal([]);
  };

  const expectLostAndBack = ({ load, noticedMs, mendingMs }: Scene): void => {
    for (const changes of load.changes) {
      // A process that was held up may take the store for lost once more.
      const turns = Array.from({ length: Math.max(1, changes.length / 2) }, () => ['store.lost', 'store.returned']);
      expect(changes.map(({ type }) => type)).to.deep.equal(turns.flat());
    }
    const whole = PER_MS * (mendingMs - noticedMs);
    expect(load.between(noticedMs, mendingMs), 'by shares').to.be.within(0.4 * whole, whole + BURST);
  };

  it('goes on with shares while the server is stopped, and returns when it is back, empty', async () => {
    const scene = await sceneOf('stopped');
    expectWithinQuota(scene);
    expectLostAndBack(scene);
  });

  it('does the same where connections hang', async () => {
    const scene = await sceneOf('hanging');
    expectWithinQuota(scene);
    expectLostAndBack(scene);
    expect(scene.load.changes[0]?.[0]?.reason).to.equal('TIMEOUT');
    // The bound of a command, and what is in line before it.
    expect(Math.max(...scene.load.longestMs)).to.be.below(3000);
  });

  it('does the same where the server takes no writes', async () => {
    const scene = await sceneOf('readOnly');
    expectWithinQuota(scene);
    expectLostAndBack(scene);
    expect(scene.load.changes[0]?.[0]?.reason).to.equal('READONLY');
  });

  it('begins empty where all keys were lost, and does not count that as a loss', async () => {
    const scene = await sceneOf('emptied');
    expectWithinQuota(scene);
    expect(scene.load.changes.flat()).to.deep.equal([]);
  });

  it('does not notice that scripts were forgotten', async () => {
    const scene = await sceneOf('unscripted');
    const { load, mendedMs } = scene;
    expectWithinQuota(scene);
    expect(load.changes.flat()).to.deep.equal([]);
    expect(load.between(mendedMs, mendedMs + 500)).to.be.above(0.5 * PER_MS * 500);
  });

  it('refuses instead, where it is told to, those who wait and those who come', async () => {
    const { load, noticedMs, mendingMs } = await sceneOf('refusing');
    expect(load.between(noticedMs, mendingMs)).to.equal(0);
    expect([...load.refusals.keys()]).to.deep.equal(['limiter_unavailable']);
  });
});
