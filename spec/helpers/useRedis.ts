import { Redis } from 'ioredis';
import { createClient } from 'redis';
import type { RedisClientType } from 'redis';
import { systemRuntime } from '../../lib/core/runtime.ts';
import type { Runtime } from '../../lib/core/runtime.ts';
import type { RedisClient } from '../../lib/stores/redis/RedisClient.ts';
import { redisStore } from '../../lib/stores/redis/redisStore.ts';
import type { RedisStore, RedisStoreOptions } from '../../lib/stores/redis/redisStore.ts';
import { startRedisServer } from './redisServer.ts';
import type { RedisServer } from './redisServer.ts';

/** A server with clients of both packages, for the specs of one suite. They are there from its first spec on. */
export interface RedisInUse {
  readonly server: RedisServer;
  /** Of the package `redis`. */
  readonly client: RedisClientType;
  /** Of the package `ioredis`. */
  readonly other: Redis;
  /** A store that is closed after the spec. Default: by `client`. */
  store(options: RedisStoreOptions, by?: RedisClient, runtime?: Runtime): RedisStore;
}

/** Call it in `describeWithRedis`. Hooks that need the stores are to be set before. */
export function useRedis(): RedisInUse {
  const stores: RedisStore[] = [];
  let server: RedisServer;
  let client: RedisClientType;
  let other: Redis | undefined;

  before(async () => {
    server = await startRedisServer();
    client = createClient({ socket: { port: server.port, host: '127.0.0.1' }, disableOfflineQueue: true });
    await client.connect();
  });
  afterEach(() => {
    for (const store of stores.splice(0)) store.close();
  });
  after(async () => {
    client.destroy();
    other?.disconnect();
    await server.close();
  });

  return {
    get server() {
      return server;
    },
    get client() {
      return client;
    },
    get other() {
      return (other ??= new Redis(server.port, '127.0.0.1'));
    },
    store(options, by = client, runtime = systemRuntime) {
      const store = redisStore(by, options, runtime);
      stores.push(store);
      return store;
    },
  };
}
