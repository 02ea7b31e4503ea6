import { expect } from 'chai';
import { lastValueFrom, toArray } from 'rxjs';
import { createSluice } from '../../../lib/client/createSluice.ts';
import type { CallOptions } from '../../../lib/client/CallOptions.ts';
import type { Sluice } from '../../../lib/client/Sluice.ts';
import { isSluiceError } from '../../../lib/core/errors.ts';
import type { SluiceEvent } from '../../../lib/core/events.ts';
import { systemRuntime } from '../../../lib/core/runtime.ts';
import { text } from '../../../lib/operators/text.ts';
import type { PolicyInput } from '../../../lib/policy/PolicyInput.ts';
import { fakeProvider } from '../../helpers/fakeProvider.ts';
import type { FakeProvider, Reply } from '../../helpers/fakeProvider.ts';
import { ProviderBucket } from '../../helpers/ProviderBucket.ts';
import { describeWithRedis } from '../../helpers/redisServer.ts';
import { useRedis } from '../../helpers/useRedis.ts';

const messages = [{ role: 'user' as const, content: 'Hello' }];
const pass = (ms: number): Promise<void> => new Promise((resolve) => void setTimeout(resolve, ms));

describeWithRedis('createSluice with a redisStore', function () {
  this.timeout(30_000);
  let provider: FakeProvider;
  let sluices: Sluice[];
  let events: SluiceEvent[];
  let made = 0;

  afterEach(() => Promise.all(sluices.map((sluice) => sluice.close({ drainMs: 0 }))));
  const redis = useRedis();

  function start(
    policy: PolicyInput,
    replyTo: (model: string, index: number) => Reply = () => ({ firstMs: 30, endMs: 30 }),
  ): void {
    // Timers of one length fire in the order in which they were set, however busy the machine is.
    const prefix = `client-${made++}`;
    provider = fakeProvider(systemRuntime, replyTo);
    events = [];
    sluices = [0, 1].map(() => {
      const store = redis.store({ prefix, commandTimeoutMs: 1000, probeMs: 50 });
      return createSluice(provider.source, policy, { store });
    });
    for (const sluice of sluices) sluice.events$.subscribe((event) => events.push(event));
  }
  const ask = async (process: number, options: CallOptions = {}, model = 'a'): Promise<string> => {
    const sluice = sluices[process] as Sluice;
    try {
      const call$ = sluice.chat({ model, messages }, options as CallOptions & { restarts?: false });
      return (await lastValueFrom(call$.pipe(text(), toArray()))).join('');
    } catch (error) {
      return isSluiceError(error) ? error.code : String(error);
    }
  };
  const asks = (count: number, options: CallOptions = {}): Promise<string[]> =>
    Promise.all(Array.from({ length: count }, (_, i) => ask(i % 2, options)));

  it('sends no more than the quota, and all of it', async () => {
    start({ quota: { account: { requestsPerMinute: 3000, burstRequests: 10 } } });
    const begunMs = systemRuntime.clock.now();
    const answers = await asks(110);
    const tookMs = systemRuntime.clock.now() - begunMs;
    expect(new Set(answers)).to.deep.equal(new Set(['a']));
    // 100 of them at 50 a second.
    expect(tookMs).to.be.within(1900, 6000);
    const bucket = new ProviderBucket(3000, 11);
    const refused = provider.seen.filter(({ atMs }) => !bucket.arrive(atMs));
    expect(refused).to.have.length(0);
  });

  it('settles tokens between processes, fair between tenants of each', async () => {
    start({
      quota: { account: { tokensPerMinute: 600_000, burstTokens: 4000, settle: 'usage' } },
      models: { a: {} },
    });
    const flood = Array.from({ length: 30 }, (_, i) => ask(i % 2, { tenant: 'flood', cost: { tokens: 900 } }));
    const order: string[] = [];
    void Promise.all(flood).then(() => order.push('flood'));
    await ask(0, { tenant: 'quiet', cost: { tokens: 300 } }).then((answer) => {
      expect(answer).to.equal('a');
      order.push('quiet');
    });
    expect(new Set(await Promise.all(flood))).to.deep.equal(new Set(['a']));
    await pass(0);
    expect(order).to.deep.equal(['quiet', 'flood']);
  });

  it('waits in one process for what a provider asked another one to wait for, with that model only', async () => {
    const retryAfterMs = 1500;
    const quota = { account: { requestsPerMinute: 6000, burstRequests: 100 } };
    start({ quota, models: { default: { retry: { attempts: 1 } } } }, (_, index) =>
      index === 0 ? { error: 'rate_limited', fields: { status: 429, retryAfterMs } } : {},
    );
    expect(await ask(0)).to.equal('rate_limited');
    const toldMs = systemRuntime.clock.now();
    // Until the store has been told.
    await pass(100);
    expect(await Promise.all([ask(1), ask(0), ask(1, {}, 'b')])).to.deep.equal(['a', 'a', 'b']);
    const [, ...seen] = provider.seen;
    const [b, ...held] = seen.sort((one, two) => one.atMs - two.atMs);
    expect(b?.model).to.equal('b');
    for (const { atMs } of held) expect(atMs - toldMs).to.be.within(retryAfterMs - 50, 20_000);
  });

  it('opens the breaker for all, and lets one probe', async () => {
    let down = true;
    start({ models: { a: { breaker: { consecutiveFailures: 3, openMs: 300 }, retry: { attempts: 1 } } } }, () =>
      down ? { error: 'server_error', fields: { status: 500 } } : { firstMs: 50, endMs: 50 },
    );
    for (let i = 0; i < 3; i++) expect(await ask(0)).to.equal('server_error');
    await pass(100);
    const seen = provider.seen.length;
    expect(await ask(0)).to.equal('circuit_open');
    expect(await ask(1)).to.equal('circuit_open');
    expect(provider.seen).to.have.length(seen);
    down = false;
    await pass(500);
    const probes = await asks(6);
    expect(probes.filter((answer) => answer === 'a')).to.have.length(1);
    expect(probes.filter((answer) => answer === 'circuit_open')).to.have.length(5);
  });

  it('holds ceilings over processes, and lends what one does not need', async () => {
    start({ maxInFlight: 4 }, () => ({ firstMs: 30, endMs: 30 }));
    let most = 0;
    const watching = setInterval(() => (most = Math.max(most, provider.open)), 2);
    const answers = await asks(40);
    expect(new Set(answers)).to.deep.equal(new Set(['a']));
    const alone = await Promise.all(Array.from({ length: 20 }, () => ask(0)));
    expect(new Set(alone)).to.deep.equal(new Set(['a']));
    clearInterval(watching);
    expect(most).to.equal(4);
  });

  it('keeps conversations in order, and spend under its cap', async () => {
    const price = { inputPerMTok: 100_000, outputPerMTok: 200_000 };
    start({ models: { a: { price } }, spend: { perTenantPerDay: { default: 7 } } }, () => ({ firstMs: 20, endMs: 20 }));
    let most = 0;
    const watching = setInterval(() => (most = Math.max(most, provider.open)), 2);
    const answers = await asks(4, { conversation: 'c', tenant: 'acme' });
    clearInterval(watching);
    expect(most).to.equal(1);
    expect(answers).to.have.length(4);
    // Each costs 1.1: what one has spent the other hears of within a second and a little.
    await asks(2, { tenant: 'acme' });
    await ask(0, { tenant: 'acme' });
    await pass(1500);
    await ask(1, { tenant: 'other' });
    sluices[1]?.snapshot();
    await pass(200);
    expect(await ask(1, { tenant: 'acme' })).to.equal('spend_capped');
  });

  it('goes on by its share while the store is lost, tells so, and comes back', async () => {
    start({ quota: { account: { requestsPerMinute: 1200, burstRequests: 5 } }, maxInFlight: 10 });
    expect(new Set(await asks(6))).to.deep.equal(new Set(['a']));
    await redis.server.stop();
    await asks(2);
    const lost = await asks(4);
    expect(lost).to.include('a');
    expect(events.some((event) => event.type === 'store.changed' && event.to === 'lost')).to.equal(true);
    await redis.server.start();
    for (let i = 0; i < 100 && !redis.client.isReady; i++) await pass(50);
    for (
      let i = 0;
      i < 100 && !events.some((event) => event.type === 'store.changed' && event.to === 'returned');
      i++
    ) {
      await ask(i % 2);
      await pass(20);
    }
    expect(events.some((event) => event.type === 'store.changed' && event.to === 'returned')).to.equal(true);
    expect(new Set(await asks(6))).to.deep.equal(new Set(['a']));
  });

  it('refuses while the store is lost where the policy says so', async () => {
    start({ quota: { account: { requestsPerMinute: 6000 } }, store: { onLoss: 'refuse' } });
    expect(await ask(0)).to.equal('a');
    await redis.server.stop();
    await ask(0);
    expect(await ask(0)).to.equal('limiter_unavailable');
    await redis.server.start();
    for (let i = 0; i < 100 && !redis.client.isReady; i++) await pass(50);
  });
});
