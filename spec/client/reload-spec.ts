import { expect } from 'chai';
import { createSluice } from '../../lib/client/createSluice.ts';
import type { CallOptions } from '../../lib/client/CallOptions.ts';
import type { Sluice } from '../../lib/client/Sluice.ts';
import { text } from '../../lib/operators/text.ts';
import type { PolicyInput } from '../../lib/policy/PolicyInput.ts';
import { virtualRuntime } from '../../lib/testing/index.ts';
import type { VirtualRuntime } from '../../lib/testing/index.ts';
import { fakeProvider } from '../helpers/fakeProvider.ts';
import type { FakeProvider, Reply } from '../helpers/fakeProvider.ts';
import { ProviderBucket } from '../helpers/ProviderBucket.ts';
import { recording } from '../helpers/scripted.ts';
import type { Recording } from '../helpers/scripted.ts';

const messages = [{ role: 'user' as const, content: 'Hello' }];

describe('createSluice and reload', () => {
  let runtime: VirtualRuntime;
  let provider: FakeProvider;
  let sluice: Sluice;

  function start(policy: PolicyInput, replyTo: (model: string, index: number) => Reply = () => ({})): void {
    runtime = virtualRuntime();
    provider = fakeProvider(runtime, replyTo);
    sluice = createSluice(provider.source, policy, { runtime });
  }
  const ask = (options: CallOptions = {}, model = 'a'): Recording<string> =>
    recording(sluice.chat({ model, messages }, options as CallOptions & { restarts?: false }).pipe(text()));

  it('loses no call under load, and causes no 429, however often and wherever limits move', () => {
    const rates = { requestsPerMinute: 600, burstRequests: 8 };
    const account = { maxWaitMs: null };
    const policies: PolicyInput[] = [
      { quota: { account: { ...account, ...rates } } },
      { quota: { account: { ...account, ...rates } }, maxInFlight: 20, tenants: { t: { weight: 3, maxInFlight: 9 } } },
      { quota: { account, clients: { main: rates } }, priorities: { order: ['batch', 'interactive'] } },
      { quota: { account }, models: { default: { quota: rates, concurrency: { limit: 30 } } } },
      { quota: { account }, models: { a: { deployments: [{ quota: rates }], breaker: { openMs: 1000 } } } },
      {
        quota: { account: { ...account, ...rates, requestsPerMinute: 480 } },
        models: { default: { concurrency: {} } },
      },
    ];
    const bucket = new ProviderBucket(600, 8);
    start({ deadlineMs: null, ...policies[0] }, () =>
      bucket.arrive(runtime.clock.now()) ? { endMs: 700 } : { error: 'rate_limited', fields: { status: 429 } },
    );
    const calls: Recording<string>[] = [];
    for (let i = 0; i < 240; i++) {
      if (i % 4 === 0) runtime.advance(100);
      if (i % 12 === 0) sluice.reload({ deadlineMs: null, ...policies[(i / 12) % policies.length] });
      calls.push(ask({ tenant: i % 3 ? 't' : `u${i}`, priority: i % 5 ? 'interactive' : 'batch' }));
    }
    runtime.run();
    expect(calls.filter(({ done }) => done)).to.have.length(240);
    expect(bucket.rejected).to.equal(0);
    expect(sluice.snapshot().admission).to.include({ inFlight: 0, waiting: 0 });
    expect(runtime.clock.now()).to.be.below(30_000);
  });

  it('lets those who wait go in the same tick where a limit rises', () => {
    start({ maxInFlight: 1 }, () => ({ hangs: true }));
    for (let i = 0; i < 5; i++) ask();
    expect(provider.seen).to.have.length(1);
    sluice.reload({ maxInFlight: 3 });
    expect(provider.seen).to.have.length(3);
    sluice.reload({ maxInFlight: 2 });
    ask();
    expect(provider.seen).to.have.length(3);
    expect(sluice.snapshot().admission).to.include({ inFlight: 3, waiting: 3 });
  });

  it('keeps an open breaker open, and sends nothing', () => {
    const policy = (openMs: number, weight: number): PolicyInput => ({
      models: { default: { retry: { attempts: 1 }, breaker: { consecutiveFailures: 2, openMs } } },
      tenants: { default: { weight } },
    });
    start(policy(20_000, 1), () => ({ error: 'server_error', fields: { status: 500 } }));
    for (let i = 0; i < 2; i++) {
      ask();
      runtime.advance(100);
    }
    sluice.reload(policy(20_000, 2));
    sluice.reload(policy(30_000, 2));
    const refused = ask();
    expect(refused.error?.code).to.equal('circuit_open');
    runtime.advance(19_000);
    expect(ask().error?.code).to.equal('circuit_open');
    expect(provider.seen).to.have.length(2);
    runtime.advance(1000);
    ask();
    expect(provider.seen).to.have.length(3);
  });

  it('serves who waits for a model, or under a priority, that the new policy does not name', () => {
    start({ models: { a: { concurrency: { limit: 1 } } }, priorities: { order: ['interactive', 'batch'] } });
    const calls = [ask(), ask({ priority: 'batch' }), ask({ priority: 'interactive' })];
    sluice.reload({ models: { default: { concurrency: { limit: 1 } } }, priorities: { order: ['interactive'] } });
    expect(ask({ priority: 'batch' }).error?.code).to.equal('invalid_request');
    expect(provider.seen).to.have.length(1);
    runtime.run();
    expect(calls.every(({ done }) => done)).to.equal(true);
  });

  it('goes on with what is left of the retry budget', () => {
    const policy = (minPerSecond: number): PolicyInput => ({
      retryBudget: { ratio: 0, minPerSecond },
      models: {
        default: { breaker: { consecutiveFailures: null, errorRatio: null }, retry: { attempts: 2, baseMs: 1 } },
      },
    });
    start(policy(0.2), () => ({ error: 'server_error', fields: { status: 500 } }));
    const attempts = (): number => {
      const before = provider.seen.length;
      ask();
      runtime.advance(50);
      return provider.seen.length - before;
    };
    expect([attempts(), attempts(), attempts()]).to.deep.equal([2, 2, 1]);
    sluice.reload(policy(0.3));
    expect([attempts(), attempts()]).to.deep.equal([2, 1]);
  });

  it('takes other bounds of conversations, and keeps the turns that wait', () => {
    const policy = (maxWaiting: number, maxWaitMs: number): PolicyInput => ({
      conversations: { maxWaiting, maxWaitMs },
    });
    start(policy(1, 60_000), (_, index) => ({ text: String(index), endMs: 100 }));
    const turns = [ask({ conversation: 'c' }), ask({ conversation: 'c' })];
    expect(ask({ conversation: 'c' }).error?.code).to.equal('queue_full');
    sluice.reload(policy(2, 50));
    const last = ask({ conversation: 'c' });
    expect(last.error).to.equal(undefined);
    runtime.advance(60);
    expect(last.error?.code).to.equal('queue_timeout');
    runtime.run();
    expect(turns.map(({ values }) => values)).to.deep.equal([['0'], ['1']]);
  });

  it('keeps everything where the new policy is wrong', () => {
    start({ maxInFlight: 1 }, () => ({ hangs: true }));
    for (let i = 0; i < 2; i++) ask();
    expect(() => sluice.reload({ maxInFlight: 5, deadlineMs: -1 })).to.throw('deadlineMs');
    expect(provider.seen).to.have.length(1);
  });
});
