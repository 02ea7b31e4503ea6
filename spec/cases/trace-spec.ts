import { context, trace } from '@opentelemetry/api';
import { expect } from 'chai';
import OpenAI from 'openai';
import { lastValueFrom } from 'rxjs';
import { inspect } from 'node:util';
import { createSluice } from '../../lib/client/createSluice.ts';
import type { Sluice } from '../../lib/client/Sluice.ts';
import { isSluiceError } from '../../lib/core/errors.ts';
import type { SluiceEvent } from '../../lib/core/events.ts';
import { toAsyncIterable } from '../../lib/operators/toAsyncIterable.ts';
import type { PolicyInput } from '../../lib/policy/PolicyInput.ts';
import { openTelemetry } from '../../lib/telemetry/openTelemetry.ts';
import { casesOf } from '../helpers/cases.ts';
import type { Case } from '../helpers/cases.ts';
import { chatChunks, scriptedFetch } from '../helpers/scriptedFetch.ts';
import type { FetchReply } from '../helpers/scriptedFetch.ts';
import { tracing } from '../helpers/tracing.ts';
import type { Tracing } from '../helpers/tracing.ts';
import { UNFIT } from './unfit.ts';

interface TraceInput {
  readonly steps: readonly { readonly api_key?: string; readonly prompt?: string; readonly answer?: string }[];
}
interface TraceExpect {
  readonly absent_everywhere?: readonly string[];
}
type TraceCase = Case<TraceInput, TraceExpect>;

const KEY = 'sk-TEST-0000';
const ANSWER: FetchReply = { chunks: chatChunks(['Hel', 'lo']) };
const QUICK: PolicyInput = { models: { default: { retry: { jitter: 'none', baseMs: 20 } } } };
const UNSET = 0;
const ERROR = 2;

/** A client over a scripted provider, and everything that comes out of it. */
class World {
  readonly traces: Tracing = tracing();
  readonly said: unknown[] = [];
  /** Spans that were active as requests were sent. */
  readonly sentIn: (string | undefined)[] = [];
  readonly #telemetry = openTelemetry({ tracerProvider: this.traces.provider });

  client(replies: readonly FetchReply[], policy: PolicyInput = QUICK, apiKey = 'none'): Sluice {
    const fetch = scriptedFetch(replies, () => this.sentIn.push(trace.getSpanContext(context.active())?.spanId));
    const openai = new OpenAI({ apiKey, baseURL: 'https://api.openai.com/v1', fetch, maxRetries: 0 });
    const sluice = createSluice(openai, policy, { telemetry: this.#telemetry });
    sluice.events$.subscribe((event: SluiceEvent) => this.said.push(event));
    return sluice;
  }

  /** Runs a call to its end; what it failed with is returned. */
  async call(sluice: Sluice, prompt = 'Hello'): Promise<unknown> {
    try {
      await lastValueFrom(sluice.chat({ model: 'm', messages: [{ role: 'user', content: prompt }] }));
      return undefined;
    } catch (error) {
      this.said.push(error, inspect(error, { depth: 10, showHidden: true }), JSON.stringify(error));
      for (let cause = error; cause !== undefined; cause = (cause as Error).cause) this.said.push(inspect(cause));
      return error;
    }
  }

  async inSpan<R>(name: string, work: () => Promise<R>): Promise<{ readonly id: string; readonly result: R }> {
    const span = this.traces.provider.getTracer('test').startSpan(name);
    const result = await context.with(trace.setSpan(context.active(), span), work);
    span.end();
    return { id: span.spanContext().spanId, result };
  }

  get calls(): Tracing['spans'] {
    return this.traces.spans.filter(({ name }) => name === 'chat m');
  }
  get attempts(): Tracing['spans'] {
    return this.traces.spans.filter(({ name }) => name === 'attempt m');
  }

  expectAbsent(words: readonly string[]): void {
    const spans = this.traces.spans.map(({ name, attributes, events, status }) => ({
      name,
      attributes,
      events,
      status,
    }));
    expect(spans).to.not.have.length(0);
    const text = JSON.stringify(spans) + inspect(this.said, { depth: 10 });
    for (const word of words) expect(text).to.not.include(word);
  }
}

/** By id: what happens, and what must be true afterwards. */
const CASES: Readonly<Record<string, (world: World, given: TraceCase) => Promise<void>>> = {
  'span-lifecycle-01': async (world) => {
    const stream$ = world.client([ANSWER]).chat({ model: 'm', messages: [{ role: 'user', content: 'Hello' }] });
    for await (const chunk of toAsyncIterable(stream$)) {
      expect(chunk.model).to.equal('m-2026');
      break;
    }
    expect(world.attempts[0]?.status.code).to.equal(UNSET);
    expect(world.attempts[0]?.attributes).to.include({ 'sluice.outcome': 'cancelled' });
    expect(world.calls).to.have.length(1);
  },
  'span-lifecycle-02': async (world) => {
    await world.call(world.client([{ chunks: chatChunks(['x'], null), end: 'reset' }]));
    for (const span of [world.attempts[0], world.calls[0]]) {
      expect(span?.status.code).to.equal(ERROR);
      expect(span?.attributes['error.type']).to.equal('connection');
    }
  },
  'span-lifecycle-03': async (world) => {
    await world.call(world.client([{ chunks: chatChunks(['x'], null), end: 'reset' }]));
    // What is set on a span that has ended is not exported.
    expect(world.attempts[0]?.status.code).to.equal(ERROR);
    expect(world.attempts[0]?.attributes).to.include({ 'sluice.outcome': 'failure' });
  },
  'span-lifecycle-04': async (world) => {
    const limited = { status: 429, headers: { 'retry-after-ms': '10' } };
    await world.call(world.client([{ status: 503 }, limited, ANSWER]));
    expect(world.attempts.map(({ attributes }) => attributes['http.response.status_code'])).to.deep.equal([
      503, 429, 200,
    ]);
    expect(world.attempts.map(({ status }) => status.code)).to.deep.equal([ERROR, ERROR, UNSET]);
    const [call] = world.calls;
    expect(call?.status.code).to.equal(UNSET);
    expect(call?.events.map(({ name }) => name)).to.deep.equal(['retry.scheduled', 'retry.scheduled']);
    const [first, second] = world.attempts;
    const waitedMs = msBetween(first?.endTime, second?.startTime);
    expect(waitedMs).to.be.at.least(19);
  },
  'span-lifecycle-05': async (world) => {
    const stream$ = world.client([{ ...ANSWER, afterMs: 50 }]).chat({ model: 'm', messages: [] as never });
    stream$.subscribe({ error: () => {} }).unsubscribe();
    await Promise.resolve();
    expect(world.calls).to.have.length(1);
  },
  'span-parent-01': async (world) => {
    const sluice = world.client([{ status: 503 }, ANSWER]);
    const inside: (string | undefined)[] = [];
    const { id } = await world.inSpan('req', async () => {
      const stream$ = sluice.chat({ model: 'm', messages: [{ role: 'user', content: 'Hello' }] });
      async function* generator(): AsyncGenerator {
        for await (const chunk of toAsyncIterable(stream$)) yield chunk;
      }
      for await (const chunk of generator()) {
        expect(chunk).to.be.an('object');
        inside.push(trace.getSpanContext(context.active())?.spanId);
      }
    });
    expect(world.calls[0]?.parentSpanContext?.spanId).to.equal(id);
    expect(new Set(inside)).to.deep.equal(new Set([id]));
    expect(new Set(world.traces.spans.map((span) => span.spanContext().traceId)).size).to.equal(1);
  },
  'span-parent-02': async (world) => {
    const sluice = world.client([{ ...ANSWER, afterMs: 50 }]);
    const both = await Promise.all(['r1', 'r2'].map((name) => world.inSpan(name, () => world.call(sluice))));
    const parents = world.calls.map(({ parentSpanContext }) => parentSpanContext?.spanId);
    expect(parents).to.have.members(both.map(({ id }) => id));
  },
  'span-parent-04': async (world) => {
    await world.inSpan('req', () => world.call(world.client([{ status: 503 }, ANSWER])));
    expect(world.sentIn).to.deep.equal(world.attempts.map((span) => span.spanContext().spanId));
    expect(world.sentIn).to.have.length(2);
  },
  'secrets-01': async (world, { expect: { absent_everywhere: words = [] } }) => {
    const body = { error: { message: `Incorrect API key provided: ${KEY}.`, code: 'invalid_api_key' } };
    const error = await world.call(world.client([{ status: 403, json: body }], QUICK, KEY));
    expect(isSluiceError(error)).to.equal(true);
    world.expectAbsent(words);
  },
  'secrets-02': async (world, { expect: { absent_everywhere: words = [] } }) => {
    const sluice = world.client([ANSWER], QUICK, KEY);
    const stream$ = sluice.chat({ model: 'm', messages: [{ role: 'user', content: 'Hello' }] });
    world.said.push(inspect(sluice, { depth: 10 }), inspect(stream$, { depth: 4 }), sluice.snapshot());
    await world.call(sluice);
    world.expectAbsent(words);
  },
  'secrets-05': async (world, { expect: { absent_everywhere: words = [] } }) => {
    const quota = { account: { requestsPerMinute: 600 } };
    const sluice = world.client([ANSWER], { ...QUICK, quota }, KEY);
    await world.call(sluice);
    world.said.push(sluice.snapshot());
    world.expectAbsent(words);
  },
  'content-capture-01': async (world, { input, expect: { absent_everywhere: words = [] } }) => {
    const [{ prompt = '', answer = '' } = {}] = input.steps;
    await world.call(world.client([{ chunks: chatChunks([answer]) }]), prompt);
    world.expectAbsent(words);
  },
  'content-capture-02': async (world, { input, expect: { absent_everywhere: words = [] } }) => {
    const [{ prompt = '' } = {}] = input.steps;
    const delta = {
      tool_calls: [{ index: 0, id: 't', type: 'function', function: { name: 'f', arguments: 'SECRET-ARGS' } }],
    };
    const called = {
      id: 'c',
      object: 'chat.completion.chunk',
      created: 1,
      model: 'm',
      choices: [{ index: 0, delta, finish_reason: null }],
    };
    await world.call(world.client([{ chunks: [called, ...chatChunks([])] }]), prompt);
    const echo = { error: { message: `Invalid value: '${prompt}' in ${prompt}`, type: 'invalid_request_error' } };
    await world.call(world.client([{ status: 400, json: echo }]), prompt);
    await world.call(world.client([{ chunks: [{ error: { message: prompt } }] }]), prompt);
    world.expectAbsent(words);
  },
};

describe('public reports of form trace', () => {
  let world: World;
  beforeEach(() => {
    world = new World();
  });
  afterEach(() => {
    expect(world.traces.spans.length, 'spans ended').to.equal(world.traces.started);
    world.traces.stop();
  });

  for (const given of casesOf<TraceInput, TraceExpect>('trace')) {
    const { id, symptom } = given;
    if (UNFIT[id] !== undefined) it.skip(`${id}: ${UNFIT[id]}`);
    else {
      it(`${id}: ${given.expect.must} [${symptom}]`, async () => {
        const run = CASES[id];
        if (run === undefined) throw new Error(`nothing runs case ${id}`);
        await run(world, given);
      });
    }
  }
});

function msBetween(from: [number, number] | undefined, to: [number, number] | undefined): number {
  if (from === undefined || to === undefined) return NaN;
  return (to[0] - from[0]) * 1000 + (to[1] - from[1]) / 1e6;
}
