import { systemRuntime } from '../../../lib/core/runtime.ts';
import type { RedisClient } from '../../../lib/stores/redis/RedisClient.ts';
import { redisStore } from '../../../lib/stores/redis/redisStore.ts';
import type { RedisStore } from '../../../lib/stores/redis/redisStore.ts';
import { quotaPortContract } from '../../contract/quotaPort.ts';
import { quotaRoutesContract } from '../../contract/quotaRoutes.ts';
import { describeWithRedis } from '../../helpers/redisServer.ts';
import { sideBySide } from '../../helpers/sideBySide.ts';
import { useRedis } from '../../helpers/useRedis.ts';

describeWithRedis('redisStore, as a quota', () => {
  const play = sideBySide(20);
  const stores = new Map<RedisClient, RedisStore>();
  after(() => {
    for (const store of stores.values()) store.close();
  });
  const redis = useRedis();
  const storeOf = (client: RedisClient): RedisStore => {
    const store = stores.get(client) ?? redisStore(client, { commandTimeoutMs: 5000 });
    stores.set(client, store);
    return store;
  };
  let made = 0;

  const contract = (clientOf: () => RedisClient): void => {
    const time = {
      nowMs: () => systemRuntime.clock.now(),
      pass: (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms)),
    };
    quotaPortContract(() => ({ ...time, make: (options) => storeOf(clientOf()).quota(`q${made++}`, options) }), play);
    describe('of several routes,', () => {
      quotaRoutesContract(
        () => ({
          ...time,
          make: ({ account = {}, models = {}, tenants = {}, ...rules }) => {
            const quotas = storeOf(clientOf()).quotas(`q${made++}`, rules);
            return (model, tenant) =>
              quotas.route([
                { ...account, name: 'account' },
                { ...(models[model] ?? models['default']), name: `model:${model}` },
                ...(tenant ? [{ ...(tenants[tenant] ?? tenants['default']), name: `tenant:${tenant}` }] : []),
              ]);
          },
        }),
        play,
      );
    });
  };

  describe('with a client of redis', () => contract(() => redis.client));
  describe('with a client of ioredis', () => contract(() => redis.other));
});
