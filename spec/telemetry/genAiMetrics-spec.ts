import { expect } from 'chai';
import type { CallStart } from '../../lib/core/CallObserver.ts';
import type { SluiceEvent } from '../../lib/core/events.ts';
import { metricObserver } from '../../lib/telemetry/metricObserver.ts';
import type { MetricObserverOptions } from '../../lib/telemetry/metricObserver.ts';
import { testMetrics } from '../helpers/metricsOf.ts';
import type { TestMetrics } from '../helpers/metricsOf.ts';
import { withOtelEnvironment } from '../helpers/otelEnvironment.ts';

const CHAT = 'gen_ai.operation.name=chat,gen_ai.provider.name=openai';
const M = `${CHAT},gen_ai.request.model=m`;
const M_SERVED = `${M},gen_ai.response.model=m-2026`;
const N_SERVED = `${CHAT},gen_ai.request.model=n,gen_ai.response.model=n-2026`;

const usage = (inputTokens: number, outputTokens: number, more: object = {}): object => ({
  inputTokens,
  outputTokens,
  totalTokens: inputTokens + outputTokens,
  ...more,
});

describe('metricObserver, by the GenAI conventions', () => {
  let test: TestMetrics;
  beforeEach(() => {
    test = testMetrics();
  });

  function call(options: MetricObserverOptions = {}, start: Partial<CallStart> = {}) {
    const { onCall, onEvent } = metricObserver({ meterProvider: test.provider, ...options });
    onCall?.({
      callId: 'c',
      api: 'chat',
      model: 'm',
      stream: true,
      atMs: 1_000,
      attributes: {},
      ...start,
    } as CallStart);
    const tell = (type: string, more: object): void =>
      onEvent?.({ callId: 'c', attempt: 1, model: 'm', type, ...more } as SluiceEvent);
    return {
      committed: (atMs: number) => tell('committed', { atMs, firstContentMs: 1 }),
      attempt: (more: object = {}) =>
        tell('attempt.ended', {
          outcome: 'success',
          status: 200,
          durationMs: 2_000,
          responseModel: 'm-2026',
          finishReasons: ['stop'],
          contentChunks: 0,
          contentMs: 0,
          ...more,
        }),
      ended: (outcome = 'success', code?: string) =>
        tell('call.ended', { outcome, code, attempts: 1, durationMs: 2_500, atMs: 3_500 }),
    };
  }

  it('measures how long a call took with all its attempts, in seconds', async () => {
    const { attempt, ended } = call();
    attempt();
    ended();
    const measured = await test.collect();
    expect(measured.numbers('gen_ai.client.operation.duration')).to.deep.equal({ [M_SERVED]: 1 });
    expect(measured.sum('gen_ai.client.operation.duration')).to.equal(2.5);
  });

  it('names the error of one that failed, by the code of the call', async () => {
    call().ended('failure', 'overloaded');
    call().ended('failure');
    expect((await test.collect()).numbers('gen_ai.client.operation.duration')).to.deep.equal({
      [`error.type=overloaded,${M}`]: 1,
      [`error.type=_OTHER,${M}`]: 1,
    });
  });

  it('does not measure the duration of one that its caller ended', async () => {
    call().ended('dropped');
    call().ended('failure', 'aborted');
    expect((await test.collect()).points('gen_ai.client.operation.duration')).to.deep.equal([]);
  });

  it('measures the time to the first content from the start of the call, once, however the call ends', async () => {
    for (const outcome of ['success', 'failure', 'dropped']) {
      const { committed, ended } = call();
      committed(1_750);
      committed(9_000);
      ended(outcome);
    }
    const measured = await test.collect();
    expect(measured.numbers('gen_ai.client.operation.time_to_first_chunk')).to.deep.equal({ [M]: 3 });
    expect(measured.sum('gen_ai.client.operation.time_to_first_chunk')).to.equal(3 * 0.75);
  });

  it('measures neither that nor the time per chunk where the answer was not streamed', async () => {
    const { committed, attempt, ended } = call({}, { stream: false });
    committed(1_750);
    attempt({ contentChunks: 2, contentMs: 10 });
    ended();
    const measured = await test.collect();
    expect(measured.points('gen_ai.client.operation.time_to_first_chunk')).to.deep.equal([]);
    expect(measured.points('gen_ai.client.operation.time_per_output_chunk')).to.deep.equal([]);
  });

  it('measures the mean time per chunk after the first, once a call', async () => {
    const { attempt, ended } = call();
    attempt({ contentChunks: 5, contentMs: 400 });
    ended();
    const measured = await test.collect();
    expect(measured.numbers('gen_ai.client.operation.time_per_output_chunk')).to.deep.equal({ [M_SERVED]: 1 });
    expect(measured.sum('gen_ai.client.operation.time_per_output_chunk')).to.be.closeTo(0.1, 1e-9);
  });

  it('measures no time per chunk of a single one', async () => {
    const { attempt, ended } = call();
    attempt({ contentChunks: 1, contentMs: 0 });
    ended();
    expect((await test.collect()).points('gen_ai.client.operation.time_per_output_chunk')).to.deep.equal([]);
  });

  it('measures the tokens of a call that succeeded, all attempts of a model together', async () => {
    const { attempt, ended } = call();
    attempt({ outcome: 'failure', code: 'stream_truncated', usage: usage(10, 3) });
    attempt({ attempt: 2, usage: usage(10, 7) });
    ended();
    const measured = await test.collect();
    expect(measured.numbers('gen_ai.client.token.usage')).to.deep.equal({
      [`${M_SERVED},gen_ai.token.type=input`]: 1,
      [`${M_SERVED},gen_ai.token.type=output`]: 1,
    });
    expect(measured.sum('gen_ai.client.token.usage', { 'gen_ai.token.type': 'input' })).to.equal(20);
    expect(measured.sum('gen_ai.client.token.usage', { 'gen_ai.token.type': 'output' })).to.equal(10);
  });

  it('counts them for the model of the attempt that used them', async () => {
    const { attempt, ended } = call();
    attempt({ outcome: 'failure', code: 'stream_truncated', usage: usage(10, 3) });
    attempt({ attempt: 2, model: 'n', responseModel: 'n-2026', usage: usage(12, 7) });
    ended();
    const measured = await test.collect();
    expect(measured.sum('gen_ai.client.token.usage', { 'gen_ai.request.model': 'm' })).to.equal(13);
    expect(measured.sum('gen_ai.client.token.usage', { 'gen_ai.request.model': 'n' })).to.equal(19);
    expect(measured.numbers('gen_ai.client.operation.duration')).to.deep.equal({
      [`${CHAT},gen_ai.request.model=m,gen_ai.response.model=n-2026`]: 1,
    });
  });

  it('measures 0 tokens of a success without usage, and none of a call that failed', async () => {
    const answered = call();
    answered.attempt();
    answered.ended();
    const failed = call();
    failed.attempt({ outcome: 'failure', usage: usage(10, 3) });
    failed.ended('failure', 'stream_truncated');
    const measured = await test.collect();
    expect(measured.total('gen_ai.client.token.usage')).to.equal(2);
    expect(measured.sum('gen_ai.client.token.usage')).to.equal(0);
  });

  it('names the operation that the attributes of the call name, and chat otherwise', async () => {
    call({}, { api: undefined }).ended();
    call({}, { api: undefined, attributes: { 'gen_ai.operation.name': 'embeddings' } }).ended();
    const points = (await test.collect()).points('gen_ai.client.operation.duration');
    expect(points.map(({ attributes }) => attributes['gen_ai.operation.name'])).to.have.members(['chat', 'embeddings']);
  });

  it('says nothing of a call that nobody announced', async () => {
    metricObserver({ meterProvider: test.provider }).onEvent?.({
      ...{ callId: 'd', attempt: 1, model: 'm', type: 'call.ended', outcome: 'success', attempts: 1, durationMs: 1 },
    } as never);
    const { metrics } = await test.collect();
    expect(metrics.filter(({ descriptor }) => descriptor.name.startsWith('gen_ai'))).to.deep.equal([]);
  });

  describe('counts a call within a pipe that was announced as one with it', () => {
    const start = { callId: 'c', api: 'chat', model: 'm', stream: true, atMs: 0, attributes: {} } as CallStart;
    const fact = { callId: 'c', attempt: 1, model: 'm' };
    const retry = { ...fact, type: 'retry.scheduled', code: 'overloaded' } as never;
    const end = (durationMs: number): never =>
      ({ ...fact, type: 'call.ended', outcome: 'success', attempts: 1, durationMs }) as never;

    for (const same of [true, false]) {
      it(same ? 'where one observes both' : 'where each has an observer, though both hear it', async () => {
        const outer = metricObserver({ meterProvider: test.provider });
        const inner = same ? outer : metricObserver({ meterProvider: test.provider });
        outer.onCall?.(start);
        inner.onCall?.({ ...start, model: 'inner' });
        for (const event of [retry, end(1_000)]) {
          inner.onEvent?.(event);
          outer.onEvent?.(event);
        }
        outer.onEvent?.(end(3_000));
        const measured = await test.collect();
        expect(measured.total('sluice.retries')).to.equal(1);
        expect(measured.total('sluice.calls')).to.equal(1);
        expect(measured.sum('gen_ai.client.operation.duration')).to.equal(3);
      });
    }
  });

  it('knows the provider by its host, or from the option', async () => {
    const server = { host: 'api.groq.com', port: 443 };
    call({}, { server }).ended();
    call({ provider: 'own' }, { server }).ended();
    call({ provider: (at, model) => `${model} at ${at?.host}` }, { server }).ended();
    const points = (await test.collect()).points('gen_ai.client.operation.duration');
    expect(points.map(({ attributes }) => attributes['gen_ai.provider.name'])).to.have.members([
      ...['groq', 'own', 'm at api.groq.com'],
    ]);
  });

  it('bounds the models that providers name', async () => {
    for (let n = 0; n < 30; n++) {
      const { attempt, ended } = call({ maxModels: 3 });
      attempt({ responseModel: `m-${n}` });
      ended();
    }
    const one = metricObserver({ meterProvider: test.provider, maxModels: 3 });
    for (let n = 0; n < 30; n++) {
      one.onCall?.({
        callId: `c${n}`,
        api: 'chat',
        model: 'bounded',
        stream: true,
        atMs: 0,
        attributes: {},
      } as CallStart);
      const of = { callId: `c${n}`, attempt: 1, model: 'bounded' };
      one.onEvent?.({ ...of, type: 'attempt.ended', outcome: 'success', responseModel: `m-${n}` } as never);
      one.onEvent?.({ ...of, type: 'call.ended', outcome: 'success', attempts: 1, durationMs: 1 } as never);
    }
    const served = (await test.collect())
      .points('gen_ai.client.operation.duration')
      .filter(({ attributes }) => attributes['gen_ai.request.model'] === 'bounded')
      .map(({ attributes }) => attributes['gen_ai.response.model']);
    expect(served).to.have.members(['m-0', 'm-1', 'm-2', 'other']);
  });

  describe('by the newest names', () => {
    const LATEST = { semconv: 'latest' } as const;

    it('measures the same', async () => {
      const { committed, attempt, ended } = call(LATEST);
      committed(1_750);
      attempt({ contentChunks: 5, contentMs: 400, usage: usage(10, 7) });
      ended();
      const measured = await test.collect();
      expect(measured.sum('gen_ai.client.inference.duration')).to.equal(2.5);
      expect(measured.sum('gen_ai.client.inference.time_to_first_chunk')).to.equal(0.75);
      expect(measured.sum('gen_ai.client.inference.time_per_output_chunk')).to.be.closeTo(0.1, 1e-9);
      expect(measured.sum('gen_ai.client.inference.operation.input_tokens')).to.equal(10);
      expect(measured.sum('gen_ai.client.inference.operation.output_tokens')).to.equal(7);
      expect(measured.metrics.map(({ descriptor }) => descriptor.name).join()).not.to.include('client.operation');
    });

    it('counts the usage of every attempt for its model, also of calls that fail', async () => {
      const { attempt, ended } = call(LATEST);
      attempt({ outcome: 'failure', usage: usage(10, 3, { cachedInputTokens: 4, reasoningTokens: 2 }) });
      attempt({ attempt: 2, model: 'n', responseModel: 'n-2026', outcome: 'failure', usage: usage(5, 1) });
      attempt({ attempt: 3, model: 'n', responseModel: 'n-2026', outcome: 'failure' });
      ended('failure', 'stream_truncated');
      const measured = await test.collect();
      const of = (what: string) => measured.numbers(`gen_ai.client.inference.usage.${what}`);
      const all = ',gen_ai.token.modality=unknown';
      expect(of('input_tokens')).to.deep.equal({ [M_SERVED + all]: 10, [N_SERVED + all]: 5 });
      expect(of('output_tokens')).to.deep.equal({ [M_SERVED + all]: 3, [N_SERVED + all]: 1 });
      expect(of('cache_read.input_tokens')).to.deep.equal({ [M_SERVED + all]: 4 });
      expect(of('reasoning.output_tokens')).to.deep.equal({ [M_SERVED + all]: 2 });
      expect(measured.points('gen_ai.client.inference.operation.input_tokens')).to.deep.equal([]);
    });

    it('counts 0 where no usage came', async () => {
      const { attempt, ended } = call(LATEST);
      attempt();
      ended();
      const measured = await test.collect();
      expect(Object.values(measured.numbers('gen_ai.client.inference.usage.input_tokens'))).to.deep.equal([0]);
      expect(measured.total('gen_ai.client.inference.operation.output_tokens')).to.equal(1);
    });

    describe('asked for by the environment', () => {
      for (const [value, semconv, expected] of [
        ['http, gen_ai_latest_experimental', undefined, 'gen_ai.client.inference.duration'],
        ['http', undefined, 'gen_ai.client.operation.duration'],
        ['gen_ai_latest_experimental', 'v1.41', 'gen_ai.client.operation.duration'],
      ] as const) {
        it(`${value}${semconv ? ` but not by the option, ${semconv}` : ''}: ${expected}`, async () => {
          await withOtelEnvironment({ OTEL_SEMCONV_STABILITY_OPT_IN: value }, async () => call({ semconv }).ended());
          expect((await test.collect()).total(expected)).to.equal(1);
        });
      }
    });
  });

  it('advises the buckets of the conventions', async () => {
    const { attempt, ended } = call();
    attempt({ usage: usage(5, 5) });
    ended();
    const measured = await test.collect();
    const bounds = (name: string): readonly number[] =>
      (measured.points(name)[0]?.value as { buckets: { boundaries: number[] } }).buckets.boundaries;
    expect(bounds('gen_ai.client.operation.duration')).to.deep.equal([
      0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92,
    ]);
    expect(bounds('gen_ai.client.token.usage')).to.deep.equal(Array.from({ length: 14 }, (_, n) => 4 ** n));
  });
});
