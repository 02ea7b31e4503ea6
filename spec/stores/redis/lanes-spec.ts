import { createClient } from 'redis';
import type { RedisClientType } from 'redis';
import { Redis } from 'ioredis';
import { systemRuntime } from '../../../lib/core/runtime.ts';
import { redisStore } from '../../../lib/stores/redis/redisStore.ts';
import type { RedisStore } from '../../../lib/stores/redis/redisStore.ts';
import { lanesPortContract } from '../../contract/lanesPort.ts';
import { describeWithRedis, startRedisServer } from '../../helpers/redisServer.ts';
import type { RedisServer } from '../../helpers/redisServer.ts';

describeWithRedis('redisStore, as lanes', () => {
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
    lanesPortContract(() => ({
      make: (options) => store.lanes(`l${made++}`, options),
      nowMs: () => systemRuntime.clock.now(),
      pass: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
    }));
  };

  describe('with a client of redis', () => contract(() => redisStore(client, { commandTimeoutMs: 5000 })));
  describe('with a client of ioredis', () => contract(() => redisStore(other, { commandTimeoutMs: 5000 })));
  describe('without a server, in the order of one process', () =>
    contract(() => {
      const hang = (): Promise<never> => new Promise(() => {});
      return redisStore({ evalSha: hang, eval: hang }, { commandTimeoutMs: 10, lanesOnStoreLoss: 'local' });
    }));
});
