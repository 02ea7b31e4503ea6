import { systemRuntime } from '../../../lib/core/runtime.ts';
import type { RedisStore } from '../../../lib/stores/redis/redisStore.ts';
import { quotaPortContract } from '../../contract/quotaPort.ts';
import { quotaRoutesContract } from '../../contract/quotaRoutes.ts';
import { describeWithRedis } from '../../helpers/redisServer.ts';
import { useRedis } from '../../helpers/useRedis.ts';

describeWithRedis('redisStore, as a quota', () => {
  const redis = useRedis();
  let made = 0;

  const contract = (makeStore: () => RedisStore): void => {
    let store: RedisStore;
    beforeEach(() => void (store = makeStore()));
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

  describe('with a client of redis', () => contract(() => redis.store({ commandTimeoutMs: 5000 })));
  describe('with a client of ioredis', () => contract(() => redis.store({ commandTimeoutMs: 5000 }, redis.other)));
});
