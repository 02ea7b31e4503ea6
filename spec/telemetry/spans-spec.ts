import { expect } from 'chai';
import { take } from 'rxjs';
import { createSluice } from '../../lib/client/createSluice.ts';
import type { CallOptions } from '../../lib/client/CallOptions.ts';
import type { Sluice } from '../../lib/client/Sluice.ts';
import type { SluiceOptions } from '../../lib/client/SluiceOptions.ts';
import type { PolicyInput } from '../../lib/policy/PolicyInput.ts';
import { text } from '../../lib/operators/text.ts';
import { openTelemetry } from '../../lib/telemetry/openTelemetry.ts';
import type { ProviderOption } from '../../lib/telemetry/providerOf.ts';
import { virtualRuntime } from '../../lib/testing/index.ts';
import type { VirtualRuntime } from '../../lib/testing/index.ts';
import { fakeProvider } from '../helpers/fakeProvider.ts';
import type { FakeProvider, Reply } from '../helpers/fakeProvider.ts';
import { recording } from '../helpers/scripted.ts';
import type { Recording } from '../helpers/scripted.ts';
import { tracing, unknownNames } from '../helpers/tracing.ts';
import type { Tracing } from '../helpers/tracing.ts';

const messages = [{ role: 'user' as const, content: 'Hello' }];
const BUSY: Reply = { error: 'overloaded', fields: { status: 503 }, firstMs: 5 };
const BROKEN: Reply = { error: 'server_error', fields: { status: 500 }, firstMs: 5 };
const ONE = { initial: 1, min: 1, max: 1 };
const PLAIN = { jitter: 'none', baseMs: 100, capMs: 100 } as const;

describe('spans of a client', () => {
  let runtime: VirtualRuntime;
  let traces: Tracing;
  let provider: FakeProvider;
  let sluice: Sluice;

  beforeEach(() => {
    traces = tracing();
  });
  afterEach(() => {
    runtime.run();
    expect(traces.spans.length, 'spans ended').to.equal(traces.started);
    // `feature` is what the application says.
    expect(unknownNames(traces.spans).filter((name) => name !== 'feature')).to.deep.equal([]);
    traces.stop();
    expect(provider.open, 'attempts left').to.equal(0);
  });

  function start(policy: PolicyInput, replies: readonly Reply[] = [{}], options: SluiceOptions = {}): void {
    runtime = virtualRuntime();
    provider = fakeProvider(runtime, (_model, index) => replies[Math.min(index, replies.length - 1)] ?? {});
    const telemetry = openTelemetry({ tracerProvider: traces.provider });
    sluice = createSluice(provider.source, policy, { runtime, telemetry, ...options });
  }
  const ask = (options: CallOptions = {}, model = 'a'): Recording<string> =>
    recording(sluice.chat({ model, messages }, options as CallOptions & { restarts?: false }).pipe(text()));

  it('has one for the call and one for its attempt', () => {
    start({}, [{ firstMs: 20, endMs: 30 }]);
    ask();
    runtime.run();
    expect(traces.tree()).to.deep.equal(['chat a CLIENT 0..30', '  attempt a CLIENT 200 0..30 [first_chunk]']);
    expect(traces.named('chat a').attributes).to.deep.include({
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': 'openai',
      'gen_ai.request.model': 'a',
      'gen_ai.request.stream': true,
      'gen_ai.response.time_to_first_chunk': 0.02,
      'gen_ai.response.model': 'a',
      'gen_ai.response.id': 'c',
      'gen_ai.response.finish_reasons': ['stop'],
      'openai.api.type': 'chat_completions',
      'sluice.outcome': 'success',
      'sluice.attempts': 1,
    });
  });

  it('leaves a call clean that succeeds after two failures, and shows them red', () => {
    start({ models: { default: {}, a: { retry: PLAIN } } }, [BUSY, BROKEN, {}]);
    ask();
    runtime.run();
    expect(traces.tree()).to.deep.equal([
      'chat a CLIENT 0..230 [retry.scheduled retry.scheduled]',
      '  attempt a CLIENT 503 ERROR overloaded 0..5',
      '  attempt a CLIENT 500 ERROR server_error 105..110',
      '  attempt a CLIENT 200 210..230 [first_chunk]',
    ]);
    const [first, second, third] = traces.spans;
    expect(first?.attributes).to.not.have.property('http.request.resend_count');
    expect(second?.attributes).to.include({ 'http.request.resend_count': 1, 'sluice.attempt.number': 2 });
    expect(third?.attributes).to.include({ 'http.request.resend_count': 2, 'sluice.attempt.number': 3 });
    expect(first?.status.message).to.equal('it was overloaded');
    expect(traces.named('chat a').events[0]?.attributes).to.deep.equal({
      'error.type': 'overloaded',
      'sluice.wait_ms': 100,
      'sluice.wait_source': 'backoff',
    });
  });

  it('shows which model answered in place of another', () => {
    start({ models: { default: {}, a: { retry: { attempts: 1 }, fallback: ['b'] } } }, [BUSY, {}]);
    ask();
    runtime.run();
    expect(traces.tree()).to.deep.equal([
      'chat a CLIENT 0..25 [fallback]',
      '  attempt a CLIENT 503 ERROR overloaded 0..5',
      '  attempt b CLIENT 200 5..25 [first_chunk]',
    ]);
    expect(traces.named('chat a').attributes).to.include({ 'gen_ai.response.model': 'b' });
    expect(traces.named('chat a').events[0]?.attributes).to.deep.equal({
      'error.type': 'overloaded',
      'sluice.from': 'a',
      'sluice.to': 'b',
    });
  });

  it('shows an answer that starts over', () => {
    start({ models: { default: {}, a: { retry: PLAIN, midStream: 'restart' } } }, [
      { error: 'stream_truncated', text: 'x', firstMs: 5, endMs: 10 },
      {},
    ]);
    recording(sluice.chat({ model: 'a', messages }, { restarts: true }));
    runtime.run();
    expect(traces.tree()).to.deep.equal([
      'chat a CLIENT 0..130 [retry.scheduled restart]',
      '  attempt a CLIENT 200 ERROR stream_truncated 0..10 [first_chunk]',
      '  attempt a CLIENT 200 110..130 [first_chunk]',
    ]);
  });

  it('shows waits of more than a millisecond, in lanes and for admission', () => {
    start({ models: { default: {}, a: { concurrency: ONE } } }, [{ endMs: 50 }]);
    ask({ conversation: 'c' });
    ask({ conversation: 'c' });
    ask();
    runtime.run();
    expect(traces.tree()).to.deep.equal([
      'chat a CLIENT 0..50',
      '  attempt a CLIENT 200 0..50 [first_chunk]',
      'chat a CLIENT 0..150',
      '  queue INTERNAL 0..50',
      '  queue INTERNAL 50..100',
      '  attempt a CLIENT 200 100..150 [first_chunk]',
      'chat a CLIENT 0..100',
      '  queue INTERNAL 0..50',
      '  attempt a CLIENT 200 50..100 [first_chunk]',
    ]);
    const queues = traces.spans.filter(({ name }) => name === 'queue').map(({ attributes }) => attributes);
    expect(queues.map((attributes) => attributes['sluice.queue'])).to.have.members(['lane', 'quota', 'quota']);
  });

  it('shows no wait of a millisecond', () => {
    start({ models: { default: {}, a: { concurrency: ONE } } }, [{ firstMs: 1, endMs: 1 }]);
    ask();
    ask();
    runtime.run();
    expect(traces.spans.filter(({ name }) => name === 'queue')).to.have.length(0);
  });

  it('ends what is cancelled in a queue', () => {
    start({ models: { default: {}, a: { concurrency: ONE } } }, [{ endMs: 50 }]);
    ask();
    const waits = ask();
    runtime.advance(30);
    waits.subscription.unsubscribe();
    expect(cancelledIn()).to.equal('queue');
    runtime.run();
    expect(traces.tree().slice(2)).to.deep.equal([
      'chat a CLIENT cancelled 0..30 [cancelled]',
      '  queue INTERNAL cancelled 0..30',
    ]);
  });

  it('ends what is cancelled between two attempts', () => {
    start({ models: { default: {}, a: { retry: PLAIN } } }, [BUSY]);
    const call = ask();
    runtime.advance(30);
    call.subscription.unsubscribe();
    expect(traces.tree()).to.deep.equal([
      'chat a CLIENT cancelled 0..30 [retry.scheduled cancelled]',
      '  attempt a CLIENT 503 ERROR overloaded 0..5',
    ]);
    expect(cancelledIn()).to.equal('backoff');
  });

  it('ends what is cancelled before and after the first content, and no error is seen', () => {
    for (const [atMs, stage] of [
      [5, 'first_content'],
      [30, 'streaming'],
    ] as const) {
      start({}, [{ endMs: 50 }]);
      const call = ask();
      runtime.advance(atMs);
      call.subscription.unsubscribe();
      expect(cancelledIn()).to.equal(stage);
    }
    expect(traces.spans.map(({ status }) => status.code)).to.deep.equal([0, 0, 0, 0]);
    expect(traces.spans.at(-1)?.attributes).to.deep.include({ 'gen_ai.response.finish_reasons': ['error'] });
  });

  it('takes an aborted signal for a cancel', () => {
    start({}, [{ endMs: 50 }]);
    const controller = new AbortController();
    ask({ signal: controller.signal });
    runtime.advance(30);
    controller.abort();
    expect(traces.tree()).to.deep.equal([
      'chat a CLIENT cancelled 0..30 [cancelled]',
      '  attempt a CLIENT 200 cancelled 0..30 [first_chunk]',
    ]);
  });

  it('shows a breaker that opens, and the call that it refuses', () => {
    start({ models: { default: {}, a: { retry: { attempts: 1 }, breaker: { consecutiveFailures: 1 } } } }, [BUSY]);
    ask();
    runtime.advance(20);
    ask();
    expect(traces.tree()).to.deep.equal([
      'chat a CLIENT ERROR overloaded 0..5 [breaker.changed]',
      '  attempt a CLIENT 503 ERROR overloaded 0..5',
      'chat a CLIENT ERROR circuit_open 20..20 [refused]',
    ]);
    expect(traces.spans[1]?.events[0]?.attributes).to.include({ 'sluice.from': 'closed', 'sluice.to': 'open' });
  });

  it('shows what a deadline cut', () => {
    start({ deadlineMs: 40, models: { default: { timeouts: { firstContentMs: 100 } } } }, [{ hangs: true }]);
    ask();
    runtime.run();
    expect(traces.tree()).to.deep.equal([
      'chat a CLIENT ERROR timeout_deadline 0..40',
      '  attempt a CLIENT ERROR timeout_deadline 0..40',
    ]);
  });

  it('ends the spans of a call whose consumer has had enough', () => {
    start({}, [{ endMs: 50 }]);
    sluice.chat({ model: 'a', messages }).pipe(take(1)).subscribe();
    runtime.run();
    expect(traces.tree()).to.deep.equal([
      'chat a CLIENT cancelled 0..10 [cancelled]',
      '  attempt a CLIENT 200 cancelled 0..10 [first_chunk]',
    ]);
  });

  it('ends the span of a call that a closed client refuses', async () => {
    start({});
    await sluice.close();
    ask();
    expect(traces.tree()).to.deep.equal(['chat a CLIENT ERROR closed 0..0']);
  });

  it('names a call with its own transport as its attributes say', () => {
    const openai = { chat: { completions: { create: () => undefined } }, baseURL: 'https://api.groq.com/openai/v1' };
    runtime = virtualRuntime();
    provider = fakeProvider(runtime);
    const telemetry = openTelemetry({ tracerProvider: traces.provider });
    sluice = createSluice(openai as never, {}, { runtime, telemetry });
    const attributes = { 'gen_ai.operation.name': 'embeddings', feature: 'search' };
    const call = sluice.call('e', () => new Promise(() => {}), { attributes, tenant: 'acme' }).subscribe();
    call.unsubscribe();
    expect(traces.named('embeddings e').attributes).to.include({
      feature: 'search',
      'gen_ai.operation.name': 'embeddings',
      'gen_ai.provider.name': 'groq',
      'server.address': 'api.groq.com',
      'server.port': 443,
      'sluice.tenant': 'acme',
    });
    expect(traces.named('attempt e').attributes).to.include({ 'server.address': 'api.groq.com' });
    expect(traces.named('attempt e').attributes).to.not.have.property('gen_ai.operation.name');
  });

  it('says how the request asked to be answered', () => {
    start({});
    const request = {
      model: 'a',
      messages,
      temperature: 0.5,
      max_completion_tokens: 10,
      n: 2,
      seed: 7,
      stop: 'END',
      reasoning_effort: 'low' as const,
      service_tier: 'flex' as const,
      response_format: { type: 'json_object' as const },
    };
    sluice.chat(request).subscribe();
    runtime.run();
    expect(traces.named('chat a').attributes).to.deep.include({
      'gen_ai.request.temperature': 0.5,
      'gen_ai.request.max_tokens': 10,
      'gen_ai.request.choice.count': 2,
      'gen_ai.request.seed': 7,
      'gen_ai.request.stop_sequences': ['END'],
      'gen_ai.request.reasoning.level': 'low',
      'openai.request.service_tier': 'flex',
      'gen_ai.output.type': 'json',
    });
  });

  it('tells samplers what they decide by', () => {
    start({});
    ask({ tenant: 'acme' });
    runtime.run();
    const [atStart] = traces.startedWith;
    expect(atStart).to.include({
      'gen_ai.operation.name': 'chat',
      'gen_ai.request.model': 'a',
      'sluice.tenant': 'acme',
    });
    expect(atStart).to.have.property('gen_ai.provider.name');
  });

  it('reports the usage that was delivered, and what was wasted besides', () => {
    start({ models: { default: {}, a: { retry: PLAIN } } });
    recording(sluice.complete({ model: 'a', messages }));
    runtime.run();
    expect(traces.named('chat a').attributes).to.include({
      'gen_ai.usage.input_tokens': 10,
      'gen_ai.usage.output_tokens': 5,
    });
    expect(traces.named('chat a').attributes).to.not.have.property('sluice.usage.wasted_tokens');
    expect(traces.named('attempt a').attributes).to.not.have.property('gen_ai.usage.input_tokens');
  });

  it('takes the provider from the option, and can be switched off', () => {
    const named = (provider: ProviderOption): unknown => {
      start({}, [{}], { telemetry: openTelemetry({ tracerProvider: traces.provider, provider }) });
      ask();
      runtime.run();
      return traces.spans.at(-1)?.attributes['gen_ai.provider.name'];
    };
    expect(named('own')).to.equal('own');
    expect(named((_server, model) => `of ${model}`)).to.equal('of a');
    expect(named(() => undefined)).to.equal('openai');
    const before = traces.spans.length;
    start({}, [{}], { telemetry: openTelemetry({ tracerProvider: traces.provider, spans: false }) });
    ask();
    runtime.run();
    expect(traces.spans).to.have.length(before);
  });

  /** Where the latest call says that it was cancelled. */
  function cancelledIn(): unknown {
    const event = traces.spans.at(-1)?.events.find(({ name }) => name === 'cancelled');
    return event?.attributes?.['sluice.stage'];
  }
});
