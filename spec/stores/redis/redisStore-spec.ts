import { expect } from 'chai';
import { createClient } from 'redis';
import { Redis } from 'ioredis';
import type { SluiceError } from '../../../lib/core/errors.ts';
import { SUCCESS } from '../../../lib/core/outcome.ts';
import type { Grant, QuotaPort, QuotaRequest } from '../../../lib/core/ports.ts';
import { redisStore } from '../../../lib/stores/redis/redisStore.ts';
import type { RedisClient } from '../../../lib/stores/redis/RedisClient.ts';
import type { RedisStore, RedisStoreOptions } from '../../../lib/stores/redis/redisStore.ts';
import { describeWithRedis } from '../../helpers/redisServer.ts';
import { useRedis } from '../../helpers/useRedis.ts';

const PATIENT = { commandTimeoutMs: 5000 };

const acquire = (quota: QuotaPort, request: Partial<QuotaRequest> = {}): Promise<Grant> =>
  new Promise((resolve, reject) => {
    quota
      .acquire({ cost: { requests: 1, tokens: 0, explicit: true }, ...request })
      .subscribe({ next: resolve, error: reject });
  });
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
const codeOf = (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    () => 'granted',
    (error: unknown) => (error as SluiceError).code,
  );

describe('redisStore, without a server', () => {
  it('refuses what is no client of Redis', () => {
    for (const client of [{}, undefined, null, 'redis://localhost', { get: () => 1 }]) {
      expect(() => redisStore(client as unknown as RedisClient)).to.throw('client must be a client of the package');
    }
  });

  it('refuses wrong options, naming them', () => {
    const client = { evalSha: async () => 1, eval: async () => 1 };
    for (const [options, name] of [
      [{ prefix: 'a{b' }, 'prefix'],
      [{ prefix: '' }, 'prefix'],
      [{ commandTimeoutMs: 0 }, 'commandTimeoutMs'],
      [{ probeMs: NaN }, 'probeMs'],
      [{ leaseMs: -1 }, 'leaseMs'],
      [{ aheadMs: 0 }, 'aheadMs'],
      [{ processes: 0 }, 'processes'],
      [{ onStoreLoss: 'hope' }, 'onStoreLoss'],
    ] as [RedisStoreOptions, string][]) {
      expect(() => redisStore(client, options), name).to.throw(`${name} must be`);
    }
    expect(() => redisStore(client).quota('a}', { requestsPerMinute: 1 })).to.throw('name must be without { and }');
  });

  it('never repeats what a client says of addresses and passwords', async () => {
    const fail = async (): Promise<never> => {
      throw new Error('connect redis://user:s3cret@10.0.0.1:6379 failed: s3cret');
    };
    const seen: unknown[] = [];
    const store = redisStore({ evalSha: fail, eval: fail }, { onChange: (change) => seen.push(change) });
    const error = await acquire(store.quota('q', { requestsPerMinute: 60 })).catch((caught: unknown) => caught);
    store.close();

    expect(error).to.include({ code: 'limiter_unavailable', source: 'local', retryable: false });
    expect(seen).to.have.length(1);
    expect(JSON.stringify([error, seen, (error as Error).stack])).to.not.match(/s3cret|10\.0\.0\.1/);
  });

  it('goes on when the listener of changes throws', async () => {
    const fail = async (): Promise<never> => {
      throw new Error('ECONNREFUSED');
    };
    const onChange = (): void => {
      throw new Error('listener');
    };
    const store = redisStore({ evalSha: fail, eval: fail }, { onChange });

    expect(await codeOf(acquire(store.quota('q', { requestsPerMinute: 60 })))).to.equal('limiter_unavailable');
    store.close();
  });

  it('bounds a command of a server that never answers, also when it has never been reached', async () => {
    const hang = (): Promise<never> => new Promise(() => {});
    const store = redisStore({ evalSha: hang, eval: hang }, { commandTimeoutMs: 40 });
    const quota = store.quota('q', { requestsPerMinute: 60 });
    const beganMs = performance.now();

    for (let call = 0; call < 20; call++) expect(await codeOf(acquire(quota))).to.equal('limiter_unavailable');
    expect(performance.now() - beganMs).to.be.below(1000);
    store.close();
  });

  it('makes quotas also while the store is lost', async () => {
    const hang = (): Promise<never> => new Promise(() => {});
    const store = redisStore({ evalSha: hang, eval: hang }, { commandTimeoutMs: 40, processes: 1 });
    await acquire(store.quota('q', { requestsPerMinute: 60_000 }));

    expect(await codeOf(acquire(store.quota('r', { requestsPerMinute: 60_000 })))).to.equal('granted');
    store.close();
  });

  it('takes a share where the number of processes is given, though the store was never reached', async () => {
    const hang = (): Promise<never> => new Promise(() => {});
    const store = redisStore({ evalSha: hang, eval: hang }, { commandTimeoutMs: 40, processes: 4 });
    const quota = store.quota('q', { requestsPerMinute: 60_000 });

    expect(await codeOf(acquire(quota))).to.equal('granted');
    expect(quota.snapshot().layers[0]?.requests?.level).to.be.below(1000);
    store.close();
  });
});

describeWithRedis('redisStore', () => {
  const redis = useRedis();

  beforeEach(() => redis.client.flushAll());

  const open = (options: RedisStoreOptions = {}, by: RedisClient = redis.client): RedisStore =>
    redis.store({ ...PATIENT, ...options }, by);

  it('sends a script whole only where the server does not know it, and counts each call once', async () => {
    const quota = open().quota('q', { requestsPerMinute: 6, burstRequests: 10 });
    await acquire(quota);
    await redis.client.scriptFlush();
    await acquire(quota);
    await acquire(quota);

    expect(quota.snapshot().layers[0]?.requests?.level).to.be.within(6.9, 7.5);
    const stats = await redis.client.info('commandstats');
    expect(stats).to.match(/cmdstat_eval:calls=2,/);
  });

  it('does the same in pipelines', async () => {
    const other = new Redis({ port: redis.server.port, host: '127.0.0.1', enableAutoPipelining: true });
    const quotas = [0, 1, 2, 3, 4].map(() => open({}, other).quota('q', { requestsPerMinute: 6, burstRequests: 10 }));
    await redis.client.scriptFlush();
    await Promise.all(quotas.map((quota) => acquire(quota)));
    await acquire(quotas[0]!);

    expect(quotas[0]?.snapshot().layers[0]?.requests?.level).to.be.within(3.9, 4.5);
    other.disconnect();
  });

  it('keeps all keys of a quota under one hash tag, and lets every key expire', async () => {
    const quota = open({ prefix: 'mine' }).quota('gpt', { requestsPerMinute: 1, maxWaitMs: Infinity });
    await acquire(quota);
    const waiting = quota.acquire({ cost: { requests: 1, tokens: 0, explicit: true } }).subscribe({ error: () => {} });
    await acquire(open({ prefix: 'mine' }).quota('other', { requestsPerMinute: 1 }));
    const keys = await redis.client.keys('*');

    expect(keys.filter((key) => key.startsWith('mine:{gpt}:quota:'))).to.have.length(5);
    expect(
      keys.every((key) => /^mine:\{(gpt|other)\}:quota:/.test(key)),
      keys.join(' '),
    ).to.be.true;
    for (const key of keys) expect(await redis.client.pTTL(key), key).to.be.above(0);

    await redis.client.persist('mine:{gpt}:quota:state');
    waiting.unsubscribe();
    await codeOf(acquire(quota, { maxWaitMs: 0 }));
    expect(await redis.client.pTTL('mine:{gpt}:quota:state')).to.be.above(0);
  });

  it('is one quota for all that name it, and another one under another name or prefix', async () => {
    const rates = { requestsPerMinute: 1, maxWaitMs: 0 };

    expect(await codeOf(acquire(open().quota('q', rates)))).to.equal('granted');
    expect(await codeOf(acquire(open().quota('q', rates)))).to.equal('queue_timeout');
    expect(await codeOf(acquire(open().quota('r', rates)))).to.equal('granted');
    expect(await codeOf(acquire(open({ prefix: 'mine' }).quota('q', rates)))).to.equal('granted');
  });

  it('admits no more tokens than there are, whoever asks at once', async () => {
    const quotas = [0, 1].map(() => open().quota('q', { tokensPerMinute: 100, maxWaitMs: 0 }));
    const costs = [58, 80, 175, 175, 175];
    const codes = await Promise.all(
      costs.map((tokens, i) => codeOf(acquire(quotas[i % 2]!, { cost: { requests: 1, tokens, explicit: true } }))),
    );

    expect(codes.filter((code) => code === 'granted')).to.have.length(1);
    expect(codes.slice(2)).to.deep.equal(['cost_too_large', 'cost_too_large', 'cost_too_large']);
  });

  it('serves four stores in the order in which they came, at the full rate', async () => {
    const quotas = [0, 1, 2, 3].map(() => open().quota('q', { requestsPerMinute: 6000, burstRequests: 20 }));
    const order: number[] = [];
    const beganMs = performance.now();
    const asked: Promise<unknown>[] = [];
    for (let i = 0; i < 120; i++) {
      asked.push(acquire(quotas[i % 4]!).then((grant) => (order.push(i), grant.release(SUCCESS))));
      if (i % 8 === 7) await new Promise((resolve) => setTimeout(resolve, 5));
    }
    await Promise.all(asked);
    const tookMs = performance.now() - beganMs;

    expect(tookMs).to.be.within(990, 3000);
    // Some are asked for in the same instant, and timers of a busy machine are late; nobody is far from their place.
    order.forEach((i, place) => expect(Math.abs(i - place), `${i} at ${place}`).to.be.below(40));
  });

  it('forgets the places in line of a process that is gone', async () => {
    const gone = createClient({ socket: { port: redis.server.port, host: '127.0.0.1' } });
    await gone.connect();
    const rates = { tokensPerMinute: 60_000, burstTokens: 10, maxWaitMs: Infinity };
    const large = { requests: 1, tokens: 3000, explicit: true };
    const dead = open({ leaseMs: 400 }, gone).quota('q', rates);
    await acquire(dead, { cost: large });
    const stuck = dead.acquire({ cost: large }).subscribe({ error: () => {} });
    while ((await redis.client.zCard('sluice:{q}:quota:line')) === 0);
    const quota = open({ leaseMs: 400 }).quota('q', rates);
    const beganMs = performance.now();
    const turn = acquire(quota, { cost: { requests: 1, tokens: 1, explicit: true } });
    gone.destroy();
    await turn;

    // Six seconds, had the other one still been before it.
    expect(performance.now() - beganMs).to.be.within(2000, 5000);
    stuck.unsubscribe();
  });

  describe('where many requests come', () => {
    const tripsOf = async (quota: QuotaPort, requests: number, gapMs: number): Promise<number> => {
      const before = await evalCalls();
      const asked: Promise<unknown>[] = [];
      for (let i = 0; i < requests; i++) {
        asked.push(acquire(quota).then((grant) => grant.release(SUCCESS)));
        await pause(gapMs);
      }
      await Promise.all(asked);
      return (await evalCalls()) - before;
    };
    const evalCalls = async (): Promise<number> =>
      Number(/cmdstat_evalsha:calls=(\d+)/.exec(await redis.client.info('commandstats'))?.[1] ?? 0);
    const rates = { requestsPerMinute: 12_000, burstRequests: 200 };

    it('takes some ahead of need, and asks far less often than it grants', async () => {
      expect(await tripsOf(open().quota('q', rates), 150, 5)).to.be.below(75);
    });

    it('keeps them no longer than told', async () => {
      expect(await tripsOf(open({ sliceMs: 1 }).quota('q', rates), 60, 5)).to.be.above(55);
    });

    it('gives back what it did not use', async () => {
      const quota = open().quota('q', { requestsPerMinute: 60, burstRequests: 200 });
      for (let i = 0; i < 20; i++) await acquire(quota);
      await pause(300);
      const other = open().quota('q', { requestsPerMinute: 60, burstRequests: 200 });
      await acquire(other);

      expect(other.snapshot().layers[0]?.requests?.level).to.be.within(178.5, 183);
    });
  });
});
