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
import { redisStore } from '../../../lib/stores/redis/redisStore.ts';
import { fakeProvider } from '../../helpers/fakeProvider.ts';
import type { FakeProvider, Reply } from '../../helpers/fakeProvider.ts';
import { ProviderBucket } from '../../helpers/ProviderBucket.ts';
import { describeWithRedis } from '../../helpers/redisServer.ts';
import { sideBySide } from '../../helpers/sideBySide.ts';
import { useRedis } from '../../helpers/useRedis.ts';
import type { RedisInUse } from '../../helpers/useRedis.ts';

const messages = [{ role: 'user' as const, content: 'Hello' }];
const WITHIN_MS = 10_000;
const pass = (ms: number): Promise<void> => new Promise((resolve) => void setTimeout(resolve, ms));

async function until(holds: () => boolean, what: string): Promise<void> {
  const sinceMs = performance.now();
  while (!holds()) {
    expect(performance.now() - sinceMs, `ms until ${what}`).to.be.below(WITHIN_MS);
    await pass(10);
  }
}

/** Two processes of one policy, by a store that they share with nobody else. */
interface World {
  readonly provider: FakeProvider;
  readonly sluices: readonly [Sluice, Sluice];
  readonly events: readonly SluiceEvent[];
  ask(process: number, options?: CallOptions, model?: string): Promise<string>;
  /** So many, by turns. */
  asks(count: number, options?: CallOptions): Promise<string[]>;
}

describeWithRedis('createSluice with a redisStore', function () {
  this.timeout(30_000);
  const test = sideBySide(4);
  const closings: (() => Promise<void>)[] = [];
  let made = 0;

  after(() => Promise.all(closings.map((close) => close())));
  const redis = useRedis();
  // Those that are stopped, each by one test.
  const lost = useRedis();
  const refusing = useRedis();

  function start(
    policy: PolicyInput,
    // Timers of one length fire in the order in which they were set, however busy the machine is.
    replyTo: (model: string, index: number) => Reply = () => ({ firstMs: 30, endMs: 30 }),
    by: RedisInUse = redis,
  ): World {
    const prefix = `client-${made++}`;
    const provider = fakeProvider(systemRuntime, replyTo);
    const events: SluiceEvent[] = [];
    const startOne = (): Sluice => {
      const store = redisStore(by.client, { prefix, commandTimeoutMs: by === redis ? 10_000 : 1000, probeMs: 50 });
      const sluice = createSluice(provider.source, policy, { store });
      sluice.events$.subscribe((event) => events.push(event));
      closings.push(async () => {
        await sluice.close({ drainMs: 0 });
        store.close();
      });
      return sluice;
    };
    const sluices = [startOne(), startOne()] as const;
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
    return { provider, sluices, events, ask, asks };
  }

  test('sends no more than the quota, and all of it', async () => {
    let tookMs = Infinity;
    // A machine that is too busy for 50 calls a second says nothing of how fast they may go.
    for (let tries = 0; tries < 3 && tookMs > 6000; tries++) {
      const { provider, asks } = start({ quota: { account: { requestsPerMinute: 3000, burstRequests: 10 } } });
      const begunMs = systemRuntime.clock.now();
      const answers = await asks(110);
      tookMs = systemRuntime.clock.now() - begunMs;
      expect(new Set(answers)).to.deep.equal(new Set(['a']));
      // 100 of them at 50 a second.
      expect(tookMs).to.be.at.least(1900);
      const bucket = new ProviderBucket(3000, 11);
      const refused = provider.seen.filter(({ atMs }) => !bucket.arrive(atMs));
      expect(refused).to.have.length(0);
    }
    expect(tookMs).to.be.at.most(6000);
  });

  test('settles tokens between processes, fair between tenants of each', async () => {
    const { ask } = start({
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

  test('waits in one process for what a provider asked another one to wait for, with that model only', async () => {
    const retryAfterMs = 1500;
    const quota = { account: { requestsPerMinute: 6000, burstRequests: 100 } };
    const { provider, ask } = start({ quota, models: { default: { retry: { attempts: 1 } } } }, (_, index) =>
      index === 0 ? { error: 'rate_limited', fields: { status: 429, retryAfterMs } } : { firstMs: 30, endMs: 30 },
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

  test('opens the breaker for all, and lets one probe', async () => {
    let down = true;
    const { provider, ask, asks } = start(
      { models: { a: { breaker: { consecutiveFailures: 3, openMs: 1500 }, retry: { attempts: 1 } } } },
      () => (down ? { error: 'server_error', fields: { status: 500 } } : { firstMs: 300, endMs: 300 }),
    );
    for (let i = 0; i < 3; i++) expect(await ask(0)).to.equal('server_error');
    await pass(100);
    const seen = provider.seen.length;
    expect(await ask(0)).to.equal('circuit_open');
    expect(await ask(1)).to.equal('circuit_open');
    expect(provider.seen).to.have.length(seen);
    down = false;
    await pass(1700);
    const probes = await asks(6);
    expect(probes.filter((answer) => answer === 'a')).to.have.length(1);
    expect(probes.filter((answer) => answer === 'circuit_open')).to.have.length(5);
  });

  test('holds ceilings over processes, and lends what one does not need', async () => {
    const { provider, ask, asks } = start({ maxInFlight: 4 }, () => ({ firstMs: 30, endMs: 30 }));
    let most = 0;
    const watching = setInterval(() => (most = Math.max(most, provider.open)), 2);
    const answers = await asks(40);
    expect(new Set(answers)).to.deep.equal(new Set(['a']));
    const alone = await Promise.all(Array.from({ length: 20 }, () => ask(0)));
    expect(new Set(alone)).to.deep.equal(new Set(['a']));
    clearInterval(watching);
    expect(most).to.equal(4);
  });

  test('keeps conversations in order, and spend under its cap', async () => {
    const price = { inputPerMTok: 100_000, outputPerMTok: 200_000 };
    const { provider, sluices, ask, asks } = start(
      { models: { a: { price } }, spend: { perTenantPerDay: { default: 7 } } },
      () => ({ firstMs: 20, endMs: 20 }),
    );
    let most = 0;
    const watching = setInterval(() => (most = Math.max(most, provider.open)), 2);
    const answers = await asks(4, { conversation: 'c', tenant: 'acme' });
    clearInterval(watching);
    expect(most).to.equal(1);
    expect(answers).to.have.length(4);
    // Each costs 1.1: what one has spent the other hears of within a second and a little.
    await asks(2, { tenant: 'acme' });
    await ask(0, { tenant: 'acme' });
    await until(() => (sluices[1].snapshot().spend.capUsed['acme'] ?? 0) >= 1, 'the other one knows');
    expect(await ask(1, { tenant: 'acme' })).to.equal('spend_capped');
  });

  test('goes on by its share while the store is lost, tells so, and comes back', async () => {
    const policy = { quota: { account: { requestsPerMinute: 1200, burstRequests: 5 } }, maxInFlight: 10 };
    const { events, ask, asks } = start(policy, undefined, lost);
    const changed = (to: 'lost' | 'returned'): boolean =>
      events.some((event) => event.type === 'store.changed' && event.to === to);
    expect(new Set(await asks(6))).to.deep.equal(new Set(['a']));
    await lost.server.stop();
    await asks(2);
    expect(await asks(4)).to.include('a');
    expect(changed('lost')).to.equal(true);
    await lost.server.start();
    for (let i = 0; i < 500 && !changed('returned'); i++) {
      await ask(i % 2);
      await pass(20);
    }
    expect(changed('returned')).to.equal(true);
    expect(new Set(await asks(6))).to.deep.equal(new Set(['a']));
  });

  test('refuses while the store is lost where the policy says so', async () => {
    const policy = { quota: { account: { requestsPerMinute: 6000 } }, store: { onLoss: 'refuse' as const } };
    const { ask } = start(policy, undefined, refusing);
    expect(await ask(0)).to.equal('a');
    await refusing.server.stop();
    await ask(0);
    expect(await ask(0)).to.equal('limiter_unavailable');
  });
});
