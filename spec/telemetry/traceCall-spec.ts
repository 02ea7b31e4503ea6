import { context, trace } from '@opentelemetry/api';
import { expect } from 'chai';
import { defer, NEVER, of, retry, take, tap } from 'rxjs';
import type { Observable } from 'rxjs';
import { createConcurrencyLimit } from '../../lib/operators/createConcurrencyLimit.ts';
import { limitConcurrency } from '../../lib/operators/limitConcurrency.ts';
import { retryWithJitter } from '../../lib/operators/retryWithJitter.ts';
import { withDeadline } from '../../lib/operators/withDeadline.ts';
import { createSluice } from '../../lib/client/createSluice.ts';
import { attemptStream } from '../../lib/sources/attemptStream.ts';
import { openTelemetry } from '../../lib/telemetry/openTelemetry.ts';
import { traceAttempt } from '../../lib/telemetry/traceAttempt.ts';
import { traceCall } from '../../lib/telemetry/traceCall.ts';
import type { TraceCallOptions } from '../../lib/telemetry/traceCall.ts';
import { virtualRuntime } from '../../lib/testing/index.ts';
import type { VirtualRuntime } from '../../lib/testing/index.ts';
import type { CallObserver } from '../../lib/core/CallObserver.ts';
import { fakeProvider } from '../helpers/fakeProvider.ts';
import type { FakeProvider, Reply } from '../helpers/fakeProvider.ts';
import { recording, scripted } from '../helpers/scripted.ts';
import { tracing } from '../helpers/tracing.ts';
import type { Tracing } from '../helpers/tracing.ts';

const messages = [{ role: 'user' as const, content: 'Hello' }];
const BUSY: Reply = { error: 'overloaded', fields: { status: 503 }, firstMs: 5 };

let runtime: VirtualRuntime;
let traces: Tracing;
let telemetry: CallObserver;
let provider: FakeProvider;

beforeEach(() => {
  runtime = virtualRuntime();
  traces = tracing();
  telemetry = openTelemetry({ tracerProvider: traces.provider, metrics: false });
});
afterEach(() => {
  runtime.run();
  expect(traces.spans.length, 'spans ended').to.equal(traces.started);
  traces.stop();
});

function ask(replies: readonly Reply[] = [{}], model = 'a'): Observable<unknown> {
  provider = fakeProvider(runtime, (_model, index) => replies[Math.min(index, replies.length - 1)] ?? {});
  return attemptStream(provider.source, { api: 'chat', request: { model, messages }, stream: true }, { runtime });
}
const traced = (options: TraceCallOptions = {}) => traceCall<unknown>({ telemetry, runtime, ...options });
const retried = () => retryWithJitter<unknown>({ jitter: 'none', baseMs: 100, runtime });

describe('traceCall', () => {
  it('makes one call of a pipe, with an attempt for each request', () => {
    recording(ask([BUSY, {}]).pipe(retried(), traced()));
    runtime.run();
    expect(traces.tree()).to.deep.equal([
      'chat a CLIENT 0..125 [retry.scheduled]',
      '  attempt a CLIENT 503 ERROR overloaded 0..5',
      '  attempt a CLIENT 200 105..125 [first_chunk]',
    ]);
    expect(traces.named('chat a').attributes).to.include({ 'gen_ai.request.model': 'a', 'sluice.attempts': 2 });
  });

  it('ends the span once on complete, error and unsubscribe', () => {
    const ends: string[] = [];
    const call = (reply: Reply): Observable<unknown> => ask([reply]).pipe(traced({ model: 'm' }));
    recording(call({}));
    recording(call(BUSY));
    const left = recording(call({ hangs: true }));
    runtime.advance(50);
    left.subscription.unsubscribe();
    left.subscription.unsubscribe();
    for (const span of traces.spans.filter(({ name }) => name === 'chat m')) {
      ends.push(String(span.attributes['sluice.outcome']));
    }
    expect(ends.toSorted()).to.deep.equal(['cancelled', 'failure', 'success']);
  });

  it('stops a synchronous source when its consumer has had enough', () => {
    let made = 0;
    const source$ = of(1, 2, 3).pipe(tap(() => made++));
    const call = recording(source$.pipe(traced(), take(1)));
    expect(call.values).to.deep.equal([1]);
    expect(made).to.equal(1);
    expect(traces.spans[0]?.attributes).to.include({ 'sluice.outcome': 'cancelled' });
  });

  it('takes what samplers and readers need from its options', () => {
    const options = {
      model: 'm',
      tenant: 't',
      conversation: 'c',
      priority: 'p',
      attributes: { feature: 'x' },
    } as const;
    recording(ask().pipe(traced({ ...options, api: 'chat', stream: false })));
    runtime.run();
    expect(traces.startedWith[0]).to.deep.include({
      'gen_ai.request.model': 'm',
      'sluice.tenant': 't',
      'gen_ai.conversation.id': 'c',
      'sluice.priority': 'p',
      feature: 'x',
      'openai.api.type': 'chat_completions',
    });
    expect(traces.named('chat m').attributes).to.not.have.any.keys(
      'gen_ai.request.stream',
      'gen_ai.response.time_to_first_chunk',
    );
    expect(() => traceCall({ model: '' }))
      .to.throw()
      .with.property('code', 'invalid_option');
  });

  it('says nothing of errors that are not ours', () => {
    recording(defer(() => Promise.reject(new Error('SECRET'))).pipe(traced()) as Observable<unknown>);
    return new Promise<void>((resolve) => setTimeout(resolve, 0)).then(() => {
      const [span] = traces.spans;
      expect(span?.attributes['error.type']).to.equal('_OTHER');
      expect(span?.status).to.deep.equal({ code: 2 });
    });
  });

  it('makes one call with a call of a client that is part of it, and with another traceCall', () => {
    provider = fakeProvider(runtime);
    const sluice = createSluice(provider.source, {}, { runtime, telemetry });
    recording(sluice.chat({ model: 'a', messages }).pipe(traced({ model: 'outer' }), traced({ model: 'outermost' })));
    runtime.run();
    expect(traces.tree()).to.deep.equal(['chat outermost CLIENT 0..20', '  attempt a CLIENT 200 0..20 [first_chunk]']);
  });

  it('shows the deadline of a pipe by hand as its error', () => {
    recording(NEVER.pipe(withDeadline(10, { runtime }), traced({ model: 'm' })));
    runtime.run();
    expect(traces.tree()[0]).to.equal('chat m CLIENT ERROR timeout_deadline 0..10');
  });

  it('passes everything on, and ends what it began, where nobody is registered', () => {
    const calls: string[] = [];
    const none: CallObserver = { onEvent: ({ type }) => calls.push(type) };
    const call = recording(ask().pipe(traceCall({ telemetry: none, runtime })));
    runtime.run();
    expect(call.done).to.equal(true);
    expect(calls.at(-1)).to.equal('call.ended');
    expect(traces.started).to.equal(0);
  });
});

describe('traceAttempt', () => {
  it('makes a span of each subscription to a source that says nothing', () => {
    const error = Object.assign(new Error('SECRET'), { status: 503 });
    const source = scripted(runtime, { afterMs: 5, error }, { afterMs: 5, values: ['x'] });
    recording(source.source.pipe(traceAttempt({ model: 'v', runtime }), retried(), traced()) as Observable<unknown>);
    runtime.run();
    expect(traces.tree()).to.deep.equal([
      'chat CLIENT 0..110 [retry.scheduled]',
      '  attempt v CLIENT 503 ERROR _OTHER 0..5',
      '  attempt v CLIENT 105..110',
    ]);
    expect(traces.spans.at(-1)?.attributes).to.include({ 'sluice.attempts': 2 });
    expect(traces.spans[1]?.attributes).to.include({ 'sluice.attempt.number': 2 });
  });

  it('numbers attempts also under the retry of RxJS', () => {
    const source = scripted(runtime, { afterMs: 5, error: new Error('x') }, { afterMs: 5, values: ['x'] });
    recording(source.source.pipe(traceAttempt({ runtime }), retry(1), traced()));
    runtime.run();
    const attempts = traces.spans.filter(({ name }) => name === 'attempt');
    expect(attempts.map(({ attributes }) => attributes['sluice.attempt.number'])).to.deep.equal([1, 2]);
  });

  it('adds no second span where the source speaks of its attempt', () => {
    recording(ask([BUSY, {}]).pipe(traceAttempt({ runtime }), traceAttempt({ runtime }), retried(), traced()));
    runtime.run();
    expect(traces.tree()).to.deep.equal([
      'chat a CLIENT 0..125 [retry.scheduled]',
      '  attempt a CLIENT 503 ERROR overloaded 0..5',
      '  attempt a CLIENT 200 105..125 [first_chunk]',
    ]);
  });

  it('is a child of the active span where there is no traceCall', () => {
    const { tracer, within } = roots();
    const root = tracer.startSpan('root');
    const tracerProvider = traces.provider;
    within(root, () => recording(ask([BUSY, {}]).pipe(traceAttempt({ tracerProvider, runtime }), retried())));
    runtime.run();
    root.end();
    const parents = traces.spans.slice(0, 2).map(({ parentSpanContext }) => parentSpanContext?.spanId);
    expect(parents).to.deep.equal([root.spanContext().spanId, root.spanContext().spanId]);
    const [first, second] = traces.spans;
    expect(first?.attributes).to.include({ 'error.type': 'overloaded', 'http.response.status_code': 503 });
    expect(second?.attributes).to.include({ 'http.response.status_code': 200, 'sluice.outcome': 'success' });
  });

  it('subscribes inside its span, and delivers in the context of the call', () => {
    const { tracer, within } = roots();
    const root = tracer.startSpan('root');
    const seen: string[] = [];
    const see = (where: string): void => {
      const active = trace.getSpan(context.active());
      seen.push(`${where} ${(active as { name?: string } | undefined)?.name ?? 'none'}`);
    };
    const source$ = defer(() => {
      see('source');
      return of(1);
    });
    const pipe$ = source$.pipe(
      traceAttempt({ model: 'v', runtime }),
      tap(() => see('between')),
      traced({ model: 'm' }),
    );
    within(root, () => pipe$.subscribe({ next: () => see('next'), complete: () => see('complete') }));
    root.end();
    expect(seen).to.deep.equal(['source attempt v', 'between root', 'next root', 'complete root']);
  });

  it('passes everything on where no provider is registered', () => {
    const call = recording(ask().pipe(traceAttempt({ runtime })));
    runtime.run();
    expect(call.done).to.equal(true);
    expect(traces.started).to.equal(0);
    expect(() => traceAttempt({ model: '' }))
      .to.throw()
      .with.property('code', 'invalid_option');
  });
});

describe('many calls through one place', () => {
  const CALLS = 200;
  let sentIn: (string | undefined)[] = [];

  beforeEach(() => {
    sentIn = [];
  });

  it('never give a span a foreign parent, by policy', async () => {
    provider = fakeProvider(runtime, reply);
    const concurrency = { initial: 1, min: 1, max: 1 };
    const policy = { models: { default: { concurrency, retry: { jitter: 'none', baseMs: 1 } } } } as const;
    const sluice = createSluice(provider.source, policy, { runtime, telemetry });
    await interleaved(() => sluice.chat({ model: 'a', messages }));
  });

  it('never give a span a foreign parent, by hand', async () => {
    provider = fakeProvider(runtime, reply);
    const call = { api: 'chat', request: { model: 'a', messages }, stream: true } as const;
    const limit = createConcurrencyLimit({ initial: 1, min: 1, max: 1 }, runtime);
    await interleaved(() =>
      attemptStream(provider.source, call, { runtime }).pipe(
        traceAttempt({ runtime }),
        limitConcurrency(limit, { runtime }),
        retried(),
        traced(),
      ),
    );
  });

  /** Each third attempt fails. */
  function reply(_model: string, index: number): Reply {
    sentIn.push(trace.getSpanContext(context.active())?.traceId);
    return index % 3 === 0 ? BUSY : { firstMs: 2, endMs: 3 };
  }

  async function interleaved(call: () => Observable<unknown>): Promise<void> {
    const { tracer, within } = roots();
    const foreign: string[] = [];
    const subscriptions = Array.from({ length: CALLS }, (_, index) => {
      const root = tracer.startSpan(`root ${index}`);
      const traceId = root.spanContext().traceId;
      const home = (): void => {
        const active = trace.getSpanContext(context.active())?.spanId;
        if (active !== root.spanContext().spanId) foreign.push(`${index} hears in ${active}`);
      };
      const subscription = within(root, () => call().subscribe({ next: home, complete: home, error: home }));
      return { subscription, root, traceId };
    });
    // Some leave while they wait, set off from a context that is none of theirs.
    const aside = tracer.startSpan('aside');
    within(aside, () => {
      for (const { subscription } of subscriptions.filter((_, index) => index % 7 === 6)) subscription.unsubscribe();
    });
    aside.end();
    await runtime.advanceAsync(100_000);
    for (const { root } of subscriptions) root.end();

    expect(foreign).to.deep.equal([]);
    const attempts = traces.spans.filter(({ name }) => name.startsWith('attempt'));
    expect(sentIn.toSorted()).to.deep.equal(attempts.map((span) => span.spanContext().traceId).toSorted());
    const callOf = new Map(traces.spans.map((span) => [span.spanContext().spanId, span]));
    for (const span of traces.spans.filter(({ name }) => /^(attempt|queue)/.test(name))) {
      const parent = callOf.get(span.parentSpanContext?.spanId ?? '');
      expect(parent?.name).to.match(/^chat/);
    }
    for (const { root, traceId } of subscriptions) {
      const calls = traces.spans.filter((span) => span.spanContext().traceId === traceId && /^chat/.test(span.name));
      expect(calls).to.have.length(1);
      expect(calls[0]?.parentSpanContext?.spanId).to.equal(root.spanContext().spanId);
    }
    const ended = traces.spans.filter(({ name }) => /^chat/.test(name));
    expect(ended).to.have.length(CALLS);
    expect(ended.filter(({ attributes }) => attributes['sluice.outcome'] === 'cancelled')).to.have.length(28);
  }
});

function roots() {
  const tracer = traces.provider.getTracer('test');
  return {
    tracer,
    within: <R>(span: ReturnType<typeof tracer.startSpan>, work: () => R): R =>
      context.with(trace.setSpan(context.active(), span), work),
  };
}
