import { expect } from 'chai';
import { createSluice } from '../../lib/client/createSluice.ts';
import type { CallOptions } from '../../lib/client/CallOptions.ts';
import type { Sluice } from '../../lib/client/Sluice.ts';
import type { SluiceEvent } from '../../lib/core/events.ts';
import { text } from '../../lib/operators/text.ts';
import type { PolicyInput } from '../../lib/policy/PolicyInput.ts';
import { virtualRuntime } from '../../lib/testing/index.ts';
import type { VirtualRuntime } from '../../lib/testing/index.ts';
import { fakeProvider } from '../helpers/fakeProvider.ts';
import type { FakeProvider, Reply } from '../helpers/fakeProvider.ts';
import { FakeStore } from '../helpers/fakeStore.ts';
import { recording } from '../helpers/scripted.ts';
import type { Recording } from '../helpers/scripted.ts';

const messages = [{ role: 'user' as const, content: 'Hello' }];

describe('createSluice with a store', () => {
  let runtime: VirtualRuntime;
  let store: FakeStore;
  let provider: FakeProvider;
  let sluices: Sluice[];
  let events: SluiceEvent[];

  function start(policy: PolicyInput, replyTo?: (model: string, index: number) => Reply): void {
    runtime = virtualRuntime();
    store = new FakeStore(runtime, 1);
    provider = fakeProvider(runtime, replyTo);
    events = [];
    sluices = [0, 1].map(() => createSluice(provider.source, policy, { runtime, store: store.connect() }));
    for (const sluice of sluices) sluice.events$.subscribe((event) => events.push(event));
  }
  const at = (process: number): Sluice => sluices[process] as Sluice;
  const ask = (process: number, options: CallOptions = {}, model = 'a'): Recording<string> =>
    recording(
      at(process)
        .chat({ model, messages }, options as CallOptions & { restarts?: false })
        .pipe(text()),
    );
  const sentBy = (ms: number): number => provider.seen.filter(({ atMs }) => atMs <= ms).length;

  it('sends no more than the quota, all processes together', () => {
    start({ quota: { account: { requestsPerMinute: 60, burstRequests: 5 } } });
    const calls = Array.from({ length: 20 }, (_, i) => ask(i % 2));
    runtime.advance(100);
    expect(sentBy(100)).to.equal(5);
    runtime.advance(16_000);
    expect(sentBy(16_000)).to.be.within(19, 21);
    expect(calls.every(({ done }) => done)).to.equal(true);
    expect(store.held).to.deep.equal({ grants: 0, places: 0 });
  });

  it('keeps the order of a conversation over processes', () => {
    start({}, () => ({ firstMs: 50, endMs: 100 }));
    const calls = [0, 1, 0, 1].map((process) => ask(process, { conversation: 'c' }));
    runtime.advance(1000);
    expect(calls.every(({ done }) => done)).to.equal(true);
    provider.seen.reduce((before, { atMs }) => {
      expect(atMs).to.be.at.least(before + 100);
      return atMs;
    }, -100);
  });

  it('asks another model where the shared breaker is open, in the process that has seen no failure too', () => {
    start(
      {
        models: {
          a: { breaker: { consecutiveFailures: 2 }, fallback: ['b'], retry: { attempts: 1 } },
          b: {},
        },
      },
      (model) => (model === 'a' ? { error: 'server_error', fields: { status: 500 } } : {}),
    );
    for (let i = 0; i < 2; i++) {
      ask(0);
      runtime.advance(100);
    }
    const seen = provider.seen.length;
    const call = ask(1);
    runtime.advance(100);
    expect(call.values).to.deep.equal(['b']);
    expect(provider.seen.slice(seen).map(({ model }) => model)).to.deep.equal(['b']);
    expect(events.filter(({ type }) => type === 'breaker.changed')).to.have.length(1);
  });

  it('waits in one process for what a provider asked another one to wait for, with that model only', () => {
    const reply = { error: 'rate_limited', fields: { status: 429, retryAfterMs: 3000 } } as const;
    const quota = { account: { requestsPerMinute: 6000, burstRequests: 100 } };
    start({ quota, models: { default: { retry: { attempts: 1 } } } }, (_, index) => (index === 0 ? reply : {}));
    const first = ask(0);
    runtime.advance(100);
    expect(first.error).to.include({ code: 'rate_limited' });
    const [held, other] = [ask(1), ask(1, {}, 'b')];
    runtime.advance(2800);
    expect(provider.models()).to.deep.equal(['a', 'b']);
    expect(other.done).to.equal(true);
    expect(at(1).snapshot().admission.models['a']?.deployments[0]?.cooldownMs).to.be.within(50, 700);
    runtime.advance(1500);
    expect(held.values).to.deep.equal(['a']);
    expect(provider.seen[2]?.atMs).to.be.at.least(3000);
    expect(store.held).to.deep.equal({ grants: 0, places: 0 });
  });

  it('holds a daily cap over all processes, from the first call of each', () => {
    const price = { inputPerMTok: 100_000, outputPerMTok: 200_000 };
    start({ models: { a: { price } }, spend: { perTenantPerDay: { default: 3 } } });
    const complete = (process: number) => {
      const call = recording(at(process).complete({ model: 'a', messages }, { tenant: 'acme' }));
      runtime.advance(100);
      return call;
    };
    // Each costs 2.
    expect(complete(0).done).to.equal(true);
    expect(complete(0).done).to.equal(true);
    expect(complete(1).error).to.include({ code: 'spend_capped', limit: 3, requested: 4 });
    expect(at(1).snapshot().spend.tenants).to.deep.equal({});
    runtime.stepWall(86_400_000);
    expect(complete(1).done).to.equal(true);
    expect(at(1).snapshot().spend.capUsed).to.deep.equal({ acme: 2 / 3 });
    expect(complete(0).done).to.equal(true);
    // What was last heard is asked for anew when somebody wants to know.
    at(1).snapshot();
    runtime.advance(10);
    expect(complete(1).error).to.include({ code: 'spend_capped', requested: 4 });
  });

  it('counts the wait for what others have spent against the deadline, and ends it at an abort', () => {
    start({
      models: { a: { price: { inputPerMTok: 1, outputPerMTok: 1 } } },
      spend: { perTenantPerDay: { default: 3 } },
    });
    store.latencyMs = 200;
    const controller = new AbortController();
    const aborted = ask(0, { tenant: 'acme', signal: controller.signal });
    const late = ask(0, { tenant: 'acme', deadlineMs: 100 });
    runtime.advance(50);
    expect(aborted.error).to.equal(undefined);
    controller.abort();
    expect(aborted.error).to.include({ code: 'aborted' });
    runtime.advance(50);
    expect(late.error).to.include({ code: 'timeout_deadline' });
    runtime.advance(1000);
    expect(provider.seen).to.have.length(0);
  });

  it('tells when the store is lost, and when it is back', () => {
    start({});
    store.tell('store.lost', 'TIMEOUT');
    runtime.advance(10);
    store.tell('store.returned');
    const told = events.filter(({ type }) => type === 'store.changed');
    expect(told).to.have.length(4);
    expect(told[0]).to.deep.include({ to: 'lost', reason: 'TIMEOUT', callId: '', atMs: 0 });
    expect(told[2]).to.deep.include({ to: 'returned', reason: undefined, atMs: 10 });
  });

  it('takes the rule for a loss from the policy, where it has one', () => {
    start({});
    expect(store.losses).to.deep.equal([]);
    start({ store: { onLoss: 'refuse' } });
    at(0).reload({ store: { onLoss: 'share' } });
    at(1).reload({});
    expect(store.losses).to.deep.equal(['refuse', 'refuse', 'share']);
  });

  it('shows how things stand in the store', () => {
    start({ quota: { account: { requestsPerMinute: 60, burstRequests: 5 } } });
    ask(0);
    runtime.advance(100);
    const [deployment] = at(1).snapshot().admission.models['a']?.deployments ?? [];
    expect(deployment).to.equal(undefined);
    ask(1);
    runtime.advance(100);
    const { layers = [] } = at(1).snapshot().admission.models['a']?.deployments[0] ?? {};
    expect(layers.map(({ layer }) => layer)).to.deep.equal(['account']);
    expect(layers[0]?.requests?.level).to.be.within(3, 3.3);
  });

  it('brings a new policy to the store', () => {
    start({ quota: { account: { requestsPerMinute: 6, burstRequests: 1 } } });
    const calls = [ask(0), ask(1), ask(0)];
    runtime.advance(100);
    for (const sluice of sluices) sluice.reload({ quota: { account: { requestsPerMinute: 600, burstRequests: 1 } } });
    runtime.advance(1000);
    expect(calls.every(({ done }) => done)).to.equal(true);
  });

  it('leaves the lines and gives back what it had when it is closed, and hears no more of the store', async () => {
    start({ maxInFlight: 1, quota: { account: { requestsPerMinute: 60 } } }, () => ({ hangs: true }));
    const calls = [ask(0), ask(0)];
    runtime.advance(100);
    const closing = at(0).close({ drainMs: 0 });
    runtime.advance(2000);
    await closing;
    expect(calls.map(({ error }) => error?.code)).to.deep.equal(['closed', 'closed']);
    expect(store.held).to.deep.equal({ grants: 0, places: 0 });
    ask(1);
    runtime.advance(2000);
    expect(provider.open).to.equal(1);
    const before = events.length;
    store.tell('store.lost');
    expect(events.slice(before)).to.have.length(1);
  });

  it('answers sluice.fetch', async () => {
    start({ quota: { account: { requestsPerMinute: 60 } } });
    const seen: string[] = [];
    const sluice = createSluice(
      provider.source,
      { quota: { account: { requestsPerMinute: 60 } } },
      {
        store: store.connect(),
        fetch: (input) => {
          seen.push(String(input instanceof Request ? input.url : input));
          return Promise.resolve(
            Response.json({
              choices: [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }],
            }),
          );
        },
        runtime,
      },
    );
    const body = JSON.stringify({ model: 'a', messages });
    const answering = sluice.fetch('https://example.com/v1/chat/completions', { method: 'POST', body });
    await runtime.advanceAsync(100);
    expect((await answering).status).to.equal(200);
    expect(seen).to.have.length(1);
  });

  it('refuses what is no store', () => {
    const wrong = { store: {} as never };
    expect(() => createSluice(() => null as never, {}, wrong)).to.throw('store');
  });
});
