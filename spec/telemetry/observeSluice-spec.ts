import { metrics } from '@opentelemetry/api';
import { expect } from 'chai';
import { createSluice } from '../../lib/client/createSluice.ts';
import { observeSluice } from '../../lib/telemetry/observeSluice.ts';
import type { ObservedSluice, ObserveSluiceOptions } from '../../lib/telemetry/observeSluice.ts';
import { virtualRuntime } from '../../lib/testing/virtualRuntime.ts';
import { fakeProvider } from '../helpers/fakeProvider.ts';
import { testMetrics } from '../helpers/metricsOf.ts';
import type { TestMetrics } from '../helpers/metricsOf.ts';
import { recording } from '../helpers/scripted.ts';

const DAY_MS = 86_400_000;

describe('observeSluice', () => {
  let test: TestMetrics;
  beforeEach(() => {
    test = testMetrics();
  });

  /** Costs 2 a call. */
  function client(caps: Readonly<Record<string, number | null>>) {
    const runtime = virtualRuntime();
    let failing = false;
    const provider = fakeProvider(runtime, () => (failing ? { error: 'server_error', fields: { status: 500 } } : {}));
    const models = {
      default: {
        price: { inputPerMTok: 100_000, outputPerMTok: 200_000 },
        retry: { attempts: 1 },
        breaker: { consecutiveFailures: 1, openMs: 1_000 },
        concurrency: { initial: 7, min: 1, max: 9 },
      },
    };
    const sluice = createSluice(provider.source, { models, spend: { perTenantPerDay: caps } }, { runtime });
    return {
      runtime,
      sluice,
      ask(tenant: string, fails = false) {
        failing = fails;
        const call = recording(
          sluice.complete({ model: 'm', messages: [{ role: 'user', content: 'Hello' }] }, { tenant }),
        );
        runtime.advance(100);
        return call;
      },
    };
  }
  const used = async (): Promise<unknown> => (await test.collect()).numbers('sluice.spend.cap_used');

  it('shows how much of its cap each tenant has spent today, if it has one', async () => {
    const { ask, sluice, runtime } = client({ default: 10, rich: null, small: 1 });
    observeSluice(sluice, { meterProvider: test.provider });
    expect(await used()).to.deep.equal({});
    for (const tenant of ['acme', 'acme', 'rich', 'small']) ask(tenant);
    expect(await used()).to.deep.equal({ 'sluice.tenant=acme': 0.4, 'sluice.tenant=small': 2 });
    runtime.stepWall(DAY_MS);
    expect(await used()).to.deep.equal({ 'sluice.tenant=acme': 0, 'sluice.tenant=small': 0 });
  });

  it('shows breakers and limits that no event has told of, and follows them', async () => {
    const { ask, sluice } = client({});
    observeSluice(sluice, { meterProvider: test.provider });
    ask('acme');
    const before = await test.collect();
    expect(before.numbers('sluice.breaker.state')).to.deep.equal({ 'sluice.breaker=m': 0 });
    expect(before.numbers('sluice.concurrency.limit')).to.deep.equal({ 'sluice.limiter=m': 7 });
    ask('acme', true);
    expect((await test.collect()).total('sluice.breaker.state')).to.equal(2);
  });

  it('shows the larger share where two clients have one provider', async () => {
    const one = client({ default: 10 });
    const two = client({ default: 20 });
    for (const { sluice } of [one, two]) observeSluice(sluice, { meterProvider: test.provider });
    one.ask('acme');
    two.ask('acme');
    expect(await used()).to.deep.equal({ 'sluice.tenant=acme': 0.2 });
  });

  it('ends when it is told to', async () => {
    const { ask, sluice } = client({ default: 10 });
    const stop = observeSluice(sluice, { meterProvider: test.provider });
    stop();
    stop();
    ask('acme');
    expect(await used()).to.deep.equal({});
  });

  describe('options', () => {
    function shown(options: ObserveSluiceOptions): void {
      const capUsed = Object.fromEntries(Array.from({ length: 60 }, (_, n) => [`t${n}`, n / 100]));
      const deployments = Array.from({ length: 30 }, (_, n) => ({
        name: `m${n}`,
        breaker: { state: 'open' },
        limit: 4,
      }));
      const sluice = { snapshot: () => ({ admission: { models: { m: { deployments } } }, spend: { capUsed } }) };
      observeSluice(sluice as unknown as ObservedSluice, { meterProvider: test.provider, ...options });
    }

    it('maxTenants: of those beyond, the one nearest to its cap is shown; default 50', async () => {
      shown({});
      const all = await test.collect();
      expect(all.points('sluice.spend.cap_used')).to.have.length(51);
      expect(all.total('sluice.spend.cap_used', { 'sluice.tenant': 'other' })).to.equal(0.59);
      test = testMetrics();
      shown({ maxTenants: 2 });
      expect((await test.collect()).points('sluice.spend.cap_used')).to.have.length(3);
    });

    it('maxModels: those beyond are left out; default 20', async () => {
      shown({});
      expect((await test.collect()).points('sluice.breaker.state')).to.have.length(20);
      test = testMetrics();
      shown({ maxModels: 2 });
      const two = await test.collect();
      expect(two.numbers('sluice.breaker.state')).to.deep.equal({ 'sluice.breaker=m0': 2, 'sluice.breaker=m1': 2 });
      expect(two.points('sluice.concurrency.limit')).to.have.length(2);
    });

    it('meterProvider: by default the one that is registered; nothing happens without', async () => {
      const { ask, sluice } = client({ default: 10 });
      observeSluice(sluice)();
      metrics.setGlobalMeterProvider(test.provider);
      try {
        observeSluice(sluice);
        ask('acme');
        expect(await used()).to.deep.equal({ 'sluice.tenant=acme': 0.2 });
      } finally {
        metrics.disable();
      }
    });

    it('are checked', () => {
      const { sluice } = client({});
      for (const options of [{ maxTenants: 0 }, { maxModels: 0.5 }]) {
        expect(() => observeSluice(sluice, options))
          .to.throw()
          .with.property('code', 'invalid_option');
      }
    });
  });
});
