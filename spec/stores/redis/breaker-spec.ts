import { expect } from 'chai';
import { lastValueFrom, of, throwError } from 'rxjs';
import { SluiceError } from '../../../lib/core/errors.ts';
import { systemRuntime } from '../../../lib/core/runtime.ts';
import { circuitBreak } from '../../../lib/operators/circuitBreak.ts';
import type { RedisClient } from '../../../lib/stores/redis/RedisClient.ts';
import { redisStore } from '../../../lib/stores/redis/redisStore.ts';
import type { RedisStore } from '../../../lib/stores/redis/redisStore.ts';
import { breakerPortContract } from '../../contract/breakerPort.ts';
import { describeWithRedis } from '../../helpers/redisServer.ts';
import { sideBySide } from '../../helpers/sideBySide.ts';
import { useRedis } from '../../helpers/useRedis.ts';

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

describeWithRedis('redisStore, its breakers', () => {
  const redis = useRedis();
  let made = 0;

  const open = (by: RedisClient = redis.client, leaseMs = 900): RedisStore =>
    redis.store({ commandTimeoutMs: 5000, leaseMs }, by);

  describe('as a breaker', () => {
    const play = sideBySide(9);
    let store: RedisStore;
    before(() => void (store = redisStore(redis.client, { commandTimeoutMs: 5000, leaseMs: 900 })));
    after(() => store.close());
    breakerPortContract(
      () => ({
        openMs: 600,
        make: (options) => store.breaker(`b${made++}`, options),
        nowMs: () => systemRuntime.clock.now(),
        pass: pause,
      }),
      play,
    );
  });

  it('is one breaker for all that name it, and stops the attempts of each', async () => {
    const breakers = [redis.client, redis.other].map((by: RedisClient) =>
      open(by, 300).breaker('shared', { consecutiveFailures: 3 }),
    );
    const failing = throwError(() => new SluiceError('server_error', 'failed'));
    const codes: string[] = [];
    for (let i = 0; i < 8; i++) {
      const attempt = lastValueFrom(failing.pipe(circuitBreak(breakers[i % 2]!)));
      await attempt.catch((error: unknown) => codes.push((error as SluiceError).code));
      // Until the other one asks again.
      await pause(110);
    }

    expect(codes.slice(0, 3)).to.deep.equal(['server_error', 'server_error', 'server_error']);
    expect(codes.slice(3)).to.deep.equal(Array(5).fill('circuit_open'));
    expect(await lastValueFrom(of(1).pipe(circuitBreak(open().breaker('another'))))).to.equal(1);
  });

  it('keeps its keys under one hash tag, and lets every one expire', async () => {
    const breaker = open().breaker('keys', { consecutiveFailures: 1, openMs: 1 });
    await lastValueFrom(throwError(() => new SluiceError('server_error', 'x')).pipe(circuitBreak(breaker))).catch(
      () => undefined,
    );
    let keys: string[] = [];
    while (keys.length < 2) {
      breaker.acquire({}).subscribe();
      await pause(10);
      keys = await redis.client.keys('sluice:{keys}:*');
    }

    expect(keys.sort()).to.deep.equal(['sluice:{keys}:breaker:probes', 'sluice:{keys}:breaker:state']);
    for (const key of keys) expect(await redis.client.pTTL(key), key).to.be.above(0);
  });

  it('survives SCRIPT FLUSH and FLUSHALL', async () => {
    const breaker = open().breaker('flushed', { consecutiveFailures: 2 });
    const fail = (): Promise<string> =>
      lastValueFrom(throwError(() => new SluiceError('server_error', 'x')).pipe(circuitBreak(breaker))).then(
        () => 'answered',
        (error: unknown) => (error as SluiceError).code,
      );
    await fail();
    await redis.client.scriptFlush();
    while ((await fail()) !== 'circuit_open') await pause(10);
    await redis.client.flushAll();

    expect(await fail()).to.equal('circuit_open');
  });
});
