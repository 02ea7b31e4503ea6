import { expect } from 'chai';
import { SUCCESS } from '../../../lib/core/outcome.ts';
import type { QuotaPort, QuotaRequest } from '../../../lib/core/ports.ts';
import type { SharedQuotaGrant, SharedQuotas, SharedRoute } from '../../../lib/limits/LimitStore.ts';
import type { RedisStore } from '../../../lib/stores/redis/redisStore.ts';
import { hintsOf } from '../../helpers/hintsOf.ts';
import { describeWithRedis } from '../../helpers/redisServer.ts';
import { useRedis } from '../../helpers/useRedis.ts';

const acquire = (quota: SharedRoute, request: Partial<QuotaRequest> = {}): Promise<SharedQuotaGrant> =>
  new Promise((resolve, reject) => {
    quota
      .acquire({ cost: { requests: 1, tokens: 0, explicit: true }, ...request })
      .subscribe({ next: (grant) => resolve(grant as SharedQuotaGrant), error: reject });
  });
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
/** What was sent to the store has been answered, however busy the machine is. */
async function until(holds: () => boolean): Promise<void> {
  for (let left = 1000; left > 0 && !holds(); left--) await pause(5);
}
const levelOf = (quota: QuotaPort, layer = 0): number => quota.snapshot().layers[layer]?.requests?.level ?? NaN;

describeWithRedis('redisStore, as quotas of several routes', () => {
  const redis = useRedis();

  beforeEach(() => redis.client.flushAll());
  const open = (): RedisStore => redis.store({ commandTimeoutMs: 5000 });
  const quotasOf = (): SharedQuotas => open().quotas('q', { maxWaitMs: Infinity });
  const account = { name: 'account', requestsPerMinute: 6, burstRequests: 10 };
  const model = (name: string) => ({ name: `model:${name}`, requestsPerMinute: 600, burstRequests: 10 });

  it('shares layers between routes of all processes, and the same list of names is the same route', async () => {
    const [mine, others] = [quotasOf(), quotasOf()];
    const route = mine.route([account, model('a')]);
    for (let i = 0; i < 3; i++) await acquire(others.route([account, model('b')]));
    await acquire(route);

    expect(levelOf(route)).to.be.within(5.9, 6.5);
    expect(levelOf(route, 1)).to.be.within(7.5, 10);
    expect(mine.route([account, model('a')])).to.equal(route);
    expect(mine.route([account])).to.not.equal(route);
  });

  it('begins a layer full that comes later, and empty where the quota was lost in between', async () => {
    const quotas = quotasOf();
    const early = quotas.route([account]);
    await acquire(early);
    const late = quotas.route([account, { name: 'tenant:new', requestsPerMinute: 6, burstRequests: 5 }]);
    await acquire(late);
    expect(levelOf(late, 1)).to.be.within(3.9, 4.5);

    await redis.client.flushAll();
    const requests = { limit: 6, remaining: 6, resetMs: undefined, windowMs: 60_000 };
    quotas.route([account]).observe(hintsOf({ requests }));
    await pause(100);
    const lost = quotas.route([{ name: 'tenant:newer', requestsPerMinute: 60, burstRequests: 5 }]);
    await acquire(lost);
    expect(levelOf(lost)).to.be.below(1.5);
  });

  it('takes rates that are given anew, for those who wait too, and refills nothing', async () => {
    const quotas = quotasOf();
    const route = quotas.route([{ ...account, burstRequests: 2 }]);
    await acquire(route);
    await acquire(route);
    let granted = 0;
    const waiting = [0, 1, 2].map(() => acquire(route).then(() => granted++));
    await pause(100);
    expect(granted).to.equal(0);

    // Another route that names the layer: it is the same bucket.
    quotas.route([{ ...account, requestsPerMinute: 600, burstRequests: 2 }, model('a')]);
    const beganMs = performance.now();
    await Promise.all(waiting);
    expect(performance.now() - beganMs).to.be.within(100, 2500);
    expect(route.snapshot().layers[0]?.requests).to.include({ perMinute: 600 });
  });

  it('takes other rules', async () => {
    const quotas = quotasOf();
    const route = quotas.route([{ ...account, burstRequests: 1 }]);
    await acquire(route);
    quotas.reload({ maxWaiting: 0 });
    const error = await acquire(route).catch((caught: unknown) => caught);

    expect(error).to.include({ code: 'queue_full', limit: 0 });
    expect(() => quotas.reload({ maxWaiting: -1 })).to.throw('maxWaiting');
    expect(() => quotas.route([{ name: 'account', requestsPerMinute: NaN }])).to.throw('account.requestsPerMinute');
    expect(() => quotas.route([account], { reportsTo: 'model' })).to.throw('reportsTo');
    expect(() => quotas.route([{ name: '' }])).to.throw('layer.name');
  });

  it('settles a route by its own rules', async () => {
    const quotas = quotasOf();
    const layers = [{ name: 'account', tokensPerMinute: 100, burstTokens: 600 }];
    const tokensOf = (route: SharedRoute): number => route.snapshot().layers[0]?.tokens?.level ?? NaN;
    const usedOf = async (route: SharedRoute, isSettled: () => boolean): Promise<number> => {
      const grant = await acquire(route, { cost: { requests: 1, tokens: 100, explicit: true } });
      grant.dispatched();
      grant.settle({
        inputTokens: 10,
        outputTokens: 0,
        totalTokens: 10,
        cachedInputTokens: undefined,
        reasoningTokens: undefined,
      });
      grant.release(SUCCESS);
      await until(isSettled);
      return 600 - tokensOf(route);
    };

    const usage = quotas.route(layers, { settle: 'usage' });
    expect(await usedOf(usage, () => tokensOf(usage) > 550)).to.be.within(5, 20);
    const reserved = quotas.route(layers, { settle: 'reserved' });
    const waitUntilMs = performance.now() + 200;
    expect(await usedOf(reserved, () => performance.now() > waitUntilMs)).to.be.above(90);
  });

  it('gives tokens back that whoever was granted them does not need, before they are sent', async () => {
    const route = quotasOf().route([{ name: 'account', tokensPerMinute: 100, burstTokens: 600 }]);
    const level = (): number => route.snapshot().layers[0]?.tokens?.level ?? NaN;
    const grant = await acquire(route, { cost: { requests: 1, tokens: 100, explicit: true } });
    grant.shrink(70);
    await until(() => level() > 550);

    expect(grant.reservedTokens).to.equal(30);
    expect(level()).to.be.within(565, 579);
    grant.dispatched();
    grant.shrink(30);
    expect(grant.reservedTokens).to.equal(30);
  });
});
