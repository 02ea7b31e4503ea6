import { expect } from 'chai';
import type { SluiceError } from '../../../lib/core/errors.ts';
import { SUCCESS } from '../../../lib/core/outcome.ts';
import type { ConcurrencyPort, Permit } from '../../../lib/core/ports.ts';
import { systemRuntime } from '../../../lib/core/runtime.ts';
import type { SharedConcurrencyPort } from '../../../lib/stores/redis/SharedConcurrency.ts';
import type { RedisClient } from '../../../lib/stores/redis/RedisClient.ts';
import { redisStore } from '../../../lib/stores/redis/redisStore.ts';
import type { RedisStore, RedisStoreOptions } from '../../../lib/stores/redis/redisStore.ts';
import { concurrencyPortContract } from '../../contract/concurrencyPort.ts';
import { describeWithRedis } from '../../helpers/redisServer.ts';
import { useRedis } from '../../helpers/useRedis.ts';

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
const acquire = (limit: ConcurrencyPort, request = {}): Promise<Permit> =>
  new Promise((resolve, reject) => limit.acquire(request).subscribe({ next: resolve, error: reject }));
const codeOf = (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    () => 'granted',
    (error: unknown) => (error as SluiceError).code,
  );

describe('redisStore, its concurrency limits without a server', () => {
  const hang = (): Promise<never> => new Promise(() => {});

  it('refuses at once where no share is known', async () => {
    const store = redisStore({ evalSha: hang, eval: hang }, { commandTimeoutMs: 40 });
    const limit = store.concurrency('c', { limit: 4 });

    expect(await codeOf(acquire(limit))).to.equal('limiter_unavailable');
    expect(await codeOf(acquire(limit))).to.equal('limiter_unavailable');
    expect(limit.snapshot()).to.deep.equal({ limit: 0, inFlight: 0, waiting: 0 });
    store.close();
  });

  it('goes on with its share where that is known', async () => {
    const store = redisStore({ evalSha: hang, eval: hang }, { commandTimeoutMs: 40, leaseMs: 100, processes: 2 });
    const limit = store.concurrency('c', { limit: 4 });
    await Promise.all([acquire(limit), acquire(limit)]);

    expect(await codeOf(acquire(limit, { maxWaitMs: 50 }))).to.equal('queue_timeout');
    expect(limit.snapshot()).to.deep.equal({ limit: 2, inFlight: 2, waiting: 0 });
    store.close();
  });

  it('ends those who wait with closed, and all that come', async () => {
    const store = redisStore({ evalSha: hang, eval: hang });
    const limit = store.concurrency('c', { limit: 1 });
    const waiting = codeOf(acquire(limit));
    store.close();

    expect(await waiting).to.equal('closed');
    expect(await codeOf(acquire(limit))).to.equal('closed');
  });
});

describeWithRedis('redisStore, its concurrency limits', () => {
  const redis = useRedis();
  let made = 0;

  const open = (by: RedisClient, options: RedisStoreOptions = {}): RedisStore =>
    redis.store({ commandTimeoutMs: 5000, ...options }, by);

  for (const [name, by] of [
    ['redis', () => redis.client],
    ['ioredis', () => redis.other],
  ] as const) {
    describe(`with a client of ${name}`, () => {
      concurrencyPortContract(() => ({
        make: (options) => open(by()).concurrency(`c${made++}`, options),
        nowMs: () => systemRuntime.clock.now(),
        pass: pause,
      }));
    });
  }

  const together = (limit: number, options: RedisStoreOptions = {}): SharedConcurrencyPort[] => {
    const name = `c${made++}`;
    return [redis.client, redis.other].map((by: RedisClient) => open(by, options).concurrency(name, { limit }));
  };

  it('is one limit for all that name it, and each gets its turn', async () => {
    const limits = together(3);
    let inFlight = 0;
    let most = 0;
    const served = [0, 0];
    const calls = Array.from({ length: 60 }, async (_, i) => {
      const permit = await acquire(limits[i % 2]!);
      most = Math.max(most, ++inFlight);
      served[i % 2]!++;
      await pause(10);
      inFlight--;
      permit.release(SUCCESS);
    });
    await Promise.all(calls);

    expect(most).to.equal(3);
    expect(served).to.deep.equal([30, 30]);
  });

  it('leaves nothing taken behind, and lets every key expire', async () => {
    const name = `c${made++}`;
    const limit = open(redis.client, { sliceMs: 20 }).concurrency(name, { limit: 2 });
    const permits = await Promise.all([acquire(limit), acquire(limit)]);
    const keys = await redis.client.keys(`sluice:{${name}}:*`);
    expect(keys).to.have.length(4);
    for (const key of keys) expect(await redis.client.pTTL(key), key).to.be.above(0);
    for (const permit of permits) permit.release(SUCCESS);
    await pause(200);

    expect(await redis.client.hGetAll(`sluice:{${name}}:slots:holders`)).to.be.empty;
  });

  it('goes on from what is in flight after FLUSHALL', async () => {
    const [one, two] = together(2, { leaseMs: 3000 });
    await Promise.all([acquire(one!), acquire(one!)]);
    await redis.client.flushAll();
    // Until it has renewed what it holds, the store knows nothing of it.
    for (let i = 0; i < 200 && (await redis.client.keys('sluice:*:slots:holders')).length === 0; i++) await pause(20);
    const waiting = codeOf(acquire(two!, { maxWaitMs: 600 }));

    expect(await waiting).to.equal('queue_timeout');
  });
});
