import { expect } from 'chai';
import { take } from 'rxjs';
import { createSluice } from '../../lib/client/createSluice.ts';
import type { CallOptions } from '../../lib/client/CallOptions.ts';
import type { Sluice } from '../../lib/client/Sluice.ts';
import type { SluiceEvent } from '../../lib/core/events.ts';
import type { PolicyInput } from '../../lib/policy/PolicyInput.ts';
import { virtualRuntime } from '../../lib/testing/index.ts';
import type { VirtualRuntime } from '../../lib/testing/index.ts';
import { estimateCost } from '../../lib/wire/estimate.ts';
import { fakeProvider } from '../helpers/fakeProvider.ts';
import type { Reply } from '../helpers/fakeProvider.ts';
import { recording } from '../helpers/scripted.ts';

const messages = [{ role: 'user' as const, content: 'Hello' }];

describe('createSluice and spend', () => {
  it('counts what each call cost, and refuses a tenant at its cap until the day is over', () => {
    const runtime = virtualRuntime();
    const provider = fakeProvider(runtime);
    // The provider reports 10 tokens of input and 5 of output for each whole answer.
    const price = { inputPerMTok: 100_000, outputPerMTok: 200_000 };
    const policy = { models: { a: { price }, default: {} }, spend: { perTenantPerDay: { default: 3, rich: null } } };
    const sluice = createSluice(provider.source, policy, { runtime });
    const ask = (tenant: string, model = 'a') => {
      const call = recording(sluice.complete({ model, messages }, { tenant }));
      runtime.advance(100);
      return call;
    };
    expect(ask('acme').done).to.equal(true);
    expect(ask('acme', 'free').done).to.equal(true);
    expect(sluice.snapshot().spend.tenants).to.deep.equal({
      acme: { cost: 2, inputTokens: 10, outputTokens: 5, wastedTokens: 0 },
    });
    expect(ask('acme').done).to.equal(true);
    const capped = ask('acme');
    expect(sluice.snapshot().spend.capUsed).to.deep.equal({ acme: 4 / 3 });
    expect(capped.error).to.include({ code: 'spend_capped', limit: 3, requested: 4 });
    expect(capped.error?.retryAfterMs).to.be.within(86_399_000, 86_400_000);
    for (let i = 0; i < 3; i++) expect(ask('rich').done).to.equal(true);
    expect(ask('other').done).to.equal(true);
    expect(Object.keys(sluice.snapshot().spend.models)).to.deep.equal(['a']);
    runtime.stepWall(86_400_000);
    expect(ask('acme').done).to.equal(true);
  });
});

type Ended = Extract<SluiceEvent, { readonly type: 'call.ended' }>;

describe('createSluice and what a call cost', () => {
  // A token of input costs 1, one of output 2.
  const price = { inputPerMTok: 1_000_000, outputPerMTok: 2_000_000 };
  const retry = { baseMs: 1, jitter: 'none' as const };
  let runtime: VirtualRuntime;
  let sluice: Sluice;
  let events: SluiceEvent[];
  let sent: number;

  function start(policy: PolicyInput, replyTo: (model: string, index: number) => Reply = () => ({})): void {
    runtime = virtualRuntime();
    const provider = fakeProvider(runtime, (model, index) => {
      sent = index + 1;
      return replyTo(model, index);
    });
    sluice = createSluice(provider.source, policy, { runtime });
    events = [];
    sluice.events$.subscribe((event) => events.push(event));
  }
  const priced = (more: PolicyInput['models'] = {}): PolicyInput => ({
    models: { a: { price, retry, ...more['a'] }, ...more },
  });
  const inputOf = (model: string): number => estimateCost({ model, messages }).inputTokens;
  const ended = (): Ended => {
    const calls = events.filter((event): event is Ended => event.type === 'call.ended');
    expect(calls).to.have.length(1);
    expect(events.at(-1)?.type).to.equal('call.ended');
    return calls[0] as Ended;
  };
  const complete = (options: CallOptions = {}): Ended => {
    recording(sluice.complete({ model: 'a', messages }, options));
    runtime.advance(60_000);
    return ended();
  };
  const stream = (): Ended => {
    recording(sluice.chat({ model: 'a', messages }));
    runtime.advance(60_000);
    return ended();
  };

  it('is that of the answer where one attempt was enough', () => {
    start(priced());
    const end = complete({ tenant: 'acme' });
    expect(end.usage).to.include({ inputTokens: 10, outputTokens: 5 });
    expect(end).to.include({ wastedTokens: 0, cost: 20, usageEstimated: false });
    expect(sluice.snapshot().spend.tenants['acme']?.cost).to.equal(20);
  });

  it('is undefined without a price, with the usage all the same', () => {
    start({});
    const end = complete();
    expect(end.usage?.totalTokens).to.equal(15);
    expect(end).to.include({ wastedTokens: 0, cost: undefined });
  });

  it('is nothing for a call that was refused, or rejected, or failed to connect', () => {
    for (const [error, fields] of [
      ['rate_limited', { status: 429 }],
      ['connection', {}],
      ['server_error', { status: 500 }],
      ['bad_request', { status: 400 }],
    ] as const) {
      start(priced({ a: { price, retry: { attempts: 2, baseMs: 1 } } }), () => ({ error, fields }));
      expect(stream(), error).to.include({ outcome: 'failure', usage: undefined, wastedTokens: 0, cost: undefined });
    }
    start({ ...priced(), spend: { perTenantPerDay: { default: 0 } } });
    expect(stream()).to.include({ code: 'spend_capped', attempts: 0, usage: undefined, wastedTokens: 0 });
  });

  it('estimates what a stream without a report of usage took: the request, and a token for four bytes of text', () => {
    start(priced(), () => ({ text: 'x'.repeat(40) }));
    const end = stream();
    expect(end.usage).to.include({ inputTokens: inputOf('a'), outputTokens: 10 });
    expect(end).to.include({ wastedTokens: 0, cost: inputOf('a') + 20, usageEstimated: true });
    const attempt = events.find(({ type }) => type === 'attempt.ended');
    expect(attempt).to.have.property('usage', undefined);
    expect(attempt).to.have.nested.property('estimatedUsage.outputTokens', 10);
  });

  it('counts attempts that were cut off, also on other models, as wasted', () => {
    const policy = priced({
      a: { price, retry: { ...retry, attempts: 1 }, fallback: ['b'], midStream: 'restart' },
      b: { price },
    });
    start(policy, (model) =>
      model === 'a' ? { text: 'x'.repeat(400), error: 'connection', endMs: 50 } : { text: 'y'.repeat(80) },
    );
    recording(sluice.chat({ model: 'a', messages }, { restarts: true }));
    runtime.advance(60_000);
    const end = ended();
    expect(end).to.include({ outcome: 'success', attempts: 2, wastedTokens: inputOf('a') + 100, usageEstimated: true });
    expect(end.usage?.outputTokens).to.equal(20);
    expect(end.cost).to.equal(inputOf('a') + 200 + inputOf('b') + 40);
    expect(sluice.snapshot().spend.models['a']?.wastedTokens).to.equal(inputOf('a') + 100);
    expect(sluice.snapshot().spend.models['b']?.wastedTokens).to.equal(0);
  });

  it('prices what has a price', () => {
    start(priced({ a: { price, fallback: ['b'], midStream: 'restart', retry: { attempts: 1 } }, b: {} }), (model) =>
      model === 'a' ? { text: 'x'.repeat(40), error: 'connection' } : {},
    );
    recording(sluice.chat({ model: 'a', messages }, { restarts: true }));
    runtime.advance(60_000);
    expect(ended().cost).to.equal(inputOf('a') + 20);
  });

  it('counts what was left of a call that its consumer has left', () => {
    start(priced(), () => ({ text: 'x'.repeat(40) }));
    sluice.chat({ model: 'a', messages }).pipe(take(1)).subscribe();
    runtime.advance(1000);
    const end = ended();
    expect(end).to.include({
      outcome: 'dropped',
      usage: undefined,
      wastedTokens: inputOf('a') + 10,
      cost: inputOf('a') + 20,
    });
  });

  it('counts the input of an answer that is not streamed, and was not waited for', () => {
    start({ ...priced(), deadlineMs: 500 }, () => ({ hangs: true }));
    const end = complete();
    expect(end).to.include({ code: 'timeout_deadline', wastedTokens: inputOf('a'), cost: inputOf('a') });
  });

  it('holds a tenant to its cap although no provider reports what it uses', () => {
    start({ ...priced(), spend: { perTenantPerDay: { default: 250 } } }, () => ({ text: 'x'.repeat(400), endMs: 500 }));
    for (let i = 0; i < 5; i++) {
      sluice
        .chat({ model: 'a', messages }, { tenant: 'acme' })
        .pipe(take(1))
        .subscribe({ error: () => undefined });
      runtime.advance(100);
    }
    expect(sent).to.equal(2);
    expect(sluice.snapshot().spend.tenants['acme']?.cost).to.equal(2 * (inputOf('a') + 200));
  });

  it('keeps the sum of a tenant with a cap apart from however many others', () => {
    start({ ...priced(), spend: { perTenantPerDay: { acme: 20 } } });
    for (let i = 0; i < 1200; i++) recording(sluice.complete({ model: 'a', messages }, { tenant: `t${i}` }));
    runtime.advance(1000);
    recording(sluice.complete({ model: 'a', messages }, { tenant: 'acme' }));
    runtime.advance(1000);
    const { tenants } = sluice.snapshot().spend;
    expect(Object.keys(tenants)).to.have.length(1002);
    expect(tenants['other']?.cost).to.equal(200 * 20);
    expect(tenants['acme']?.cost).to.equal(20);
    expect(recording(sluice.complete({ model: 'a', messages }, { tenant: 'acme' })).error?.code).to.equal(
      'spend_capped',
    );
  });
});
