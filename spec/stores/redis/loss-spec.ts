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

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Processes that always want more than there is. */
class Load {
  readonly grantsMs: number[] = [];
  readonly refusals = new Map<string, number>();
  readonly changes: StoreChange[] = [];
  readonly longestMs: number[] = [];
  readonly #clients: RedisClientType[] = [];
  readonly #stores: RedisStore[] = [];
  #running = true;
  #waiting: Promise<void>[] = [];

  async start(port: number, options: RedisStoreOptions = {}): Promise<void> {
    for (let process = 0; process < PROCESSES; process++) {
      const client: RedisClientType = createClient({ socket: { port, host: '127.0.0.1', reconnectStrategy: 50 } });
      await client.connect();
      const onChange = (change: StoreChange): void => void this.changes.push(change);
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
              this.refusals.set(code, (this.refusals.get(code) ?? 0) + 1);
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

describeWithRedis('redisStore, when the store is lost', function () {
  let server: RedisServer;
  let load: Load;
  let admin: RedisClientType;

  beforeEach(async () => {
    server = await startRedisServer();
    admin = createClient({ socket: { port: server.port, host: '127.0.0.1', reconnectStrategy: 50 } });
    admin.on('error', () => {});
    await admin.connect();
    load = new Load();
  });

  afterEach(async () => {
    admin.destroy();
    await load.stop();
    await server.close();
  });

  /** Runs the load, breaks the store for a while, mends it, and looks at what came through. */
  const through = async (
    breaking: () => unknown,
    brokenMs: number,
    mending: () => unknown,
    afterMs = 2500,
  ): Promise<number> => {
    await load.start(server.port);
    await pause(500);
    await breaking();
    await pause(brokenMs);
    await mending();
    const mendedMs = performance.now();
    await pause(afterMs);
    return mendedMs;
  };

  const expectWithinQuota = (): void => {
    expect(load.excess, 'granted above the quota').to.be.at.most(PER_MS * LATE_MS);
    expect([...load.refusals]).to.deep.equal([]);
  };

  const expectLostAndBack = (mendedMs: number, brokenMs: number): void => {
    const types = load.changes.map(({ type }) => type);
    expect(types.slice(0, PROCESSES)).to.deep.equal(Array(PROCESSES).fill('store.lost'));
    expect(types.filter((type) => type === 'store.returned')).to.have.length(PROCESSES);
    const shared = load.between(mendedMs - brokenMs + 500, mendedMs);
    expect(shared, 'by shares').to.be.within(0.5 * PER_MS * (brokenMs - 500), PER_MS * brokenMs);
    // Back at the full rate within two seconds.
    expect(load.between(mendedMs + 2000, mendedMs + 2500)).to.be.above(0.6 * PER_MS * 500);
  };

  it('goes on with shares while the server is stopped, and returns when it is back, empty', async () => {
    const mendedMs = await through(
      () => server.stop(),
      1500,
      () => server.start(),
    );

    expectWithinQuota();
    expectLostAndBack(mendedMs, 1500);
  }).timeout(20_000);

  it('does the same where connections hang', async () => {
    const mendedMs = await through(
      () => server.pause(),
      1500,
      () => server.resume(),
    );

    expectWithinQuota();
    expectLostAndBack(mendedMs, 1500);
    expect(load.changes[0]?.reason).to.equal('TIMEOUT');
    // The bound of a command, and what is in line before it.
    expect(Math.max(...load.longestMs)).to.be.below(3000);
  }).timeout(20_000);

  it('does the same where the server takes no writes', async () => {
    const mendedMs = await through(
      () => admin.sendCommand(['REPLICAOF', '127.0.0.1', '1']),
      1500,
      () => admin.sendCommand(['REPLICAOF', 'NO', 'ONE']),
    );

    expectWithinQuota();
    expectLostAndBack(mendedMs, 1500);
    expect(load.changes[0]?.reason).to.equal('READONLY');
  }).timeout(20_000);

  it('begins empty where all keys were lost, and does not count that as a loss', async () => {
    await through(
      () => admin.flushAll(),
      300,
      () => admin.flushAll(),
      600,
    );

    expectWithinQuota();
    expect(load.changes).to.deep.equal([]);
  }).timeout(20_000);

  it('does not notice that scripts were forgotten', async () => {
    const mendedMs = await through(
      () => admin.scriptFlush(),
      300,
      () => admin.scriptFlush(),
      1000,
    );

    expectWithinQuota();
    expect(load.changes).to.deep.equal([]);
    expect(load.between(mendedMs, mendedMs + 1000)).to.be.above(0.7 * PER_MS * 1000);
  }).timeout(20_000);

  it('refuses instead, where it is told to, those who wait and those who come', async () => {
    await load.start(server.port, { onStoreLoss: 'refuse' });
    await pause(300);
    await server.stop();
    const lostMs = performance.now();
    await pause(1000);
    expect(load.between(lostMs + 500, Infinity)).to.equal(0);
    expect([...load.refusals.keys()]).to.deep.equal(['limiter_unavailable']);

    await server.start();
    const mendedMs = performance.now();
    await pause(2500);
    expect(load.between(mendedMs + 2000, Infinity)).to.be.above(0.6 * PER_MS * 500);
  }).timeout(20_000);
});
