import { createClient } from 'redis';
import type { RedisClientType } from 'redis';
import { Redis } from 'ioredis';
import { systemRuntime } from '../../../lib/core/runtime.ts';
import { redisStore } from '../../../lib/stores/redis/redisStore.ts';
import type { RedisStore } from '../../../lib/stores/redis/redisStore.ts';
import { quotaPortContract } from '../../contract/quotaPort.ts';
import { quotaRoutesContract } from '../../contract/quotaRoutes.ts';
import { describeWithRedis, startRedisServer } from '../../helpers/redisServer.ts';
import type { RedisServer } from '../../helpers/redisServer.ts';

describeWithRedis('redisStore, as a quota', () => {
  let server: RedisServer;
  let client: RedisClientType;
  let other: Redis;
  let made = 0;

  before(async () => {
    server = await startRedisServer();
    client = createClient({ socket: { port: server.port, host: '127.0.0.1' } });
    await client.connect();
    other = new Redis(server.port, '127.0.0.1');
  });

  after(async () => {
    client.destroy();
    other.disconnect();
    await server.close();
  });

  const contract = (makeStore: () => RedisStore): void => {
    let store: RedisStore;
    beforeEach(() => void (store = makeStore()));
    afterEach(() => store.close());
    const time = {
      nowMs: () => systemRuntime.clock.now(),
      pass: (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms)),
    };
    quotaPortContract(() => ({ ...time, make: (options) => store.quota(`q${made++}`, options) }));
    describe('of several routes,', () => {
      quotaRoutesContract(() => ({
        ...time,
        make: ({ account = {}, models = {}, tenants = {}, ...rules }) => {
          const quotas = store.quotas(`q${made++}`, rules);
          return (model, tenant) =>
            quotas.route([
              { ...account, name: 'account' },
              { ...(models[model] ?? models['default']), name: `model:${model}` },
              ...(tenant ? [{ ...(tenants[tenant] ?? tenants['default']), name: `tenant:${tenant}` }] : []),
            ]);
        },
      }));
    });
  };

  describe('with a client of redis', () => contract(() => redisStore(client, { commandTimeoutMs: 5000 })));
  describe('with a client of ioredis', () => contract(() => redisStore(other, { commandTimeoutMs: 5000 })));
});
