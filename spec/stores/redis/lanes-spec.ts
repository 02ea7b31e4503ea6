import { systemRuntime } from '../../../lib/core/runtime.ts';
import type { RedisStore } from '../../../lib/stores/redis/redisStore.ts';
import { lanesPortContract } from '../../contract/lanesPort.ts';
import { describeWithRedis } from '../../helpers/redisServer.ts';
import { useRedis } from '../../helpers/useRedis.ts';

describeWithRedis('redisStore, as lanes', () => {
  const redis = useRedis();
  let made = 0;

  const contract = (makeStore: () => RedisStore): void => {
    let store: RedisStore;
    beforeEach(() => void (store = makeStore()));
    lanesPortContract(() => ({
      make: (options) => store.lanes(`l${made++}`, options),
      nowMs: () => systemRuntime.clock.now(),
      pass: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
    }));
  };

  describe('with a client of redis', () => contract(() => redis.store({ commandTimeoutMs: 5000 })));
  describe('with a client of ioredis', () => contract(() => redis.store({ commandTimeoutMs: 5000 }, redis.other)));
  describe('without a server, in the order of one process', () =>
    contract(() => {
      const hang = (): Promise<never> => new Promise(() => {});
      return redis.store({ commandTimeoutMs: 10, lanesOnStoreLoss: 'local' }, { evalSha: hang, eval: hang });
    }));
});
