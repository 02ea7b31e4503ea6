import { getEventListeners } from 'node:events';
import { expect } from 'chai';
import type { OpenAI } from 'openai';
import { fromEvent, retry, take, takeUntil } from 'rxjs';
import { CallScope } from '../../lib/core/CallScope.ts';
import { runInScope } from '../../lib/core/currentScope.ts';
import { SluiceError } from '../../lib/core/errors.ts';
import type { SluiceEvent } from '../../lib/core/events.ts';
import { systemRuntime } from '../../lib/core/runtime.ts';
import { fromCall } from '../../lib/sources/fromCall.ts';
import { virtualRuntime } from '../../lib/testing/virtualRuntime.ts';
import { DONE, say, stop } from '../helpers/chunks.ts';
import { forEachOpenAI } from '../helpers/openaiVersions.ts';
import { rawServer } from '../helpers/rawServer.ts';
import type { RawServer } from '../helpers/rawServer.ts';
import { record } from '../helpers/record.ts';

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const never = <T>(): Promise<T> => new Promise<T>(() => {});

/** An iterable whose values are given by hand, and which says what was asked of it. */
function manual<T>(): {
  iterable: AsyncIterable<T>;
  asked: number;
  returned: number;
  give(value: T): void;
  end(): void;
  fail(error: unknown): void;
} {
  let settle: { resolve(result: IteratorResult<T>): void; reject(error: unknown): void } | undefined;
  const state = {
    asked: 0,
    returned: 0,
    iterable: {
      [Symbol.asyncIterator]: () => ({
        next: () => {
          state.asked++;
          return new Promise<IteratorResult<T>>((resolve, reject) => (settle = { resolve, reject }));
        },
        return: () => {
          state.returned++;
          return Promise.reject(new Error('nobody wants to know'));
        },
      }),
    },
    give: (value: T) => settle?.resolve({ done: false, value }),
    end: () => settle?.resolve({ done: true, value: undefined }),
    fail: (error: unknown) => settle?.reject(error),
  };
  return state;
}

describe('fromCall', () => {
  it('calls once for each subscription, with a signal of its own', async () => {
    const signals: AbortSignal[] = [];
    const source = fromCall((signal) => {
      signals.push(signal);
      return Promise.resolve(7);
    });
    expect(signals).to.have.length(0);
    const both = [record(source), record(source)];
    await Promise.all(both.map(({ end }) => end));
    expect(both.map(({ values }) => values)).to.deep.equal([[7], [7]]);
    expect(new Set(signals).size).to.equal(2);
    // What was delivered may still be read from: a response, say.
    expect(signals.map(({ aborted }) => aborted)).to.deep.equal([false, false]);
  });

  it('pulls an iterable one by one and completes with it', async () => {
    const made = manual<string>();
    const seen = record(fromCall(() => Promise.resolve(made.iterable)));
    await turn();
    expect(made.asked).to.equal(1);
    made.give('a');
    await turn();
    expect(seen.values).to.deep.equal(['a']);
    expect(made.asked).to.equal(2);
    made.end();
    await seen.end;
    expect(seen.ended).to.equal('complete');
    expect(made.returned).to.equal(0);
  });

  it('ends an iterable whose next value is awaited, when it is unsubscribed from', async () => {
    const made = manual<string>();
    let signal: AbortSignal | undefined;
    const closed: number[] = [];
    const scope = CallScope.start(systemRuntime, { sink: { closed: () => closed.push(1) } });
    const call = (given: AbortSignal): Promise<AsyncIterable<string>> => {
      signal = given;
      return Promise.resolve(made.iterable);
    };
    const seen = runInScope(scope, () => record(fromCall(call)));
    await turn();
    seen.unsubscribe();
    expect(signal?.aborted).to.equal(true);
    expect(made.returned).to.equal(1);
    expect(closed).to.have.length(0);
    made.fail(new Error('aborted'));
    await turn();
    expect(closed).to.have.length(1);
    expect(seen.values).to.deep.equal([]);
  });

  it('stops at take(1), and ends the iterable', async () => {
    const made = manual<string>();
    const seen = record(fromCall(() => Promise.resolve(made.iterable)).pipe(take(1)));
    await turn();
    made.give('a');
    await seen.end;
    expect(made.returned).to.equal(1);
  });

  it('lets go of a call that does not settle, one second after the abort', () => {
    const runtime = virtualRuntime();
    const closed: number[] = [];
    const scope = CallScope.start(runtime, { sink: { closed: () => closed.push(runtime.clock.now()) } });
    const seen = runInScope(scope, () => record(fromCall(() => never<number>(), { runtime })));
    seen.unsubscribe();
    runtime.advance(5_000);
    expect(closed).to.deep.equal([1_000]);
  });

  it('observes a call that fails after it was left', async () => {
    let fail = (): void => {};
    const call = (): Promise<number> => new Promise((_, reject) => (fail = () => reject(new Error('late'))));
    const seen = record(fromCall(call));
    seen.unsubscribe();
    fail();
    await turn();
    expect(seen.ended).to.equal(undefined);
  });

  it('waits for the consumer before each value', async () => {
    let go = (): void => {};
    const waits = [undefined, new Promise<void>((resolve) => (go = resolve))];
    const made = manual<number>();
    record(fromCall(() => Promise.resolve(made.iterable), { demand: { ready: () => waits.shift() } }));
    await turn();
    made.give(1);
    await turn();
    expect(made.asked).to.equal(1);
    go();
    await turn();
    expect(made.asked).to.equal(2);
  });

  describe('limits', () => {
    it('gives up on a call that does not settle', async () => {
      const runtime = virtualRuntime();
      const seen = record(fromCall(() => never<number>(), { runtime }));
      runtime.advance(600_000);
      expect(seen.error).to.include({ code: 'timeout', while: 'response', limit: 600_000 });
      const short = record(fromCall(() => never<number>(), { runtime, timeouts: { responseMs: 9 } }));
      runtime.advance(9);
      expect(short.error.limit).to.equal(9);
    });

    it('gives up on an iterable without a first value, and on one that stalls', async () => {
      const runtime = virtualRuntime();
      const timeouts = { firstContentMs: 100, idleMs: 30 };
      const first = manual<number>();
      const seen = record(fromCall(() => Promise.resolve(first.iterable), { runtime, timeouts }));
      await turn();
      runtime.advance(100);
      expect(seen.error).to.include({ code: 'timeout', while: 'first_content', limit: 100 });
      expect(first.returned).to.equal(1);

      const second = manual<number>();
      const stalled = record(fromCall(() => Promise.resolve(second.iterable), { runtime, timeouts }));
      await turn();
      second.give(1);
      await turn();
      runtime.advance(29);
      expect(stalled.ended).to.equal(undefined);
      runtime.advance(1);
      expect(stalled.error).to.include({ code: 'stream_idle', limit: 30 });
    });

    it('cuts at the deadline of the call, and sends nothing after it', () => {
      const runtime = virtualRuntime();
      const scope = CallScope.start(runtime, { deadlineAtMs: 50 });
      let calls = 0;
      const source = fromCall(() => (calls++, never<number>()), { runtime });
      const seen = runInScope(scope, () => record(source));
      runtime.advance(50);
      expect(seen.error.code).to.equal('timeout_deadline');
      const late = runInScope(scope, () => record(source));
      expect(late.error).to.include({ code: 'timeout_deadline', while: 'entry' });
      expect(calls).to.equal(1);
    });
  });

  it('turns what the call throws or rejects with into one error, by its class', async () => {
    const fails = [
      [
        () => {
          throw Object.assign(new Error('429 slow'), { status: 429, headers: new Headers({ 'retry-after': '3' }) });
        },
        { code: 'rate_limited', retryAfterMs: 3_000, status: 429 },
      ],
      [() => Promise.reject(new TypeError('fetch failed')), { code: 'connection', retryAfterMs: undefined }],
      [() => Promise.reject(Object.assign(new Error('x'), { statusCode: 401 })), { code: 'auth', status: 401 }],
    ] as const;
    for (const [call, expected] of fails) {
      const seen = record(fromCall(call as () => Promise<number>, { model: 'm9' }));
      await seen.end;
      expect(seen.error).to.include({ ...expected, model: 'm9', attempt: 1 });
    }
  });

  it('tells the scope and the listeners, each thing once', async () => {
    const told: string[] = [];
    const events: SluiceEvent[] = [];
    const hints: (number | undefined)[] = [];
    const sink = {
      dispatched: () => told.push('dispatched'),
      responded: (status: number) => told.push(`responded ${status}`),
      hints: () => told.push('hints'),
      usage: ({ totalTokens }: { totalTokens: number }) => told.push(`usage ${totalTokens}`),
      closed: () => told.push('closed'),
    };
    let calls = 0;
    const call = (): Promise<object> =>
      calls++ === 0
        ? Promise.reject(Object.assign(new Error('x'), { status: 503, headers: { 'retry-after-ms': '5' } }))
        : Promise.resolve({ usage: { prompt_tokens: 4, total_tokens: 4 } });
    const options = {
      model: 'embed',
      onEvent: (event: SluiceEvent) => events.push(event),
      onHints: ({ retryAfterMs }: { retryAfterMs: number | undefined }) => hints.push(retryAfterMs),
    };
    const scope = CallScope.start(systemRuntime, { sink });
    const seen = runInScope(scope, () => record(fromCall(call, options).pipe(retry(1))));
    await seen.end;
    await turn();
    expect(seen.values).to.have.length(1);
    expect(hints).to.deep.equal([5]);
    const first = ['dispatched', 'responded 503', 'hints', 'closed'];
    expect(told.filter((what) => what !== 'dispatched' && what !== 'closed')).to.deep.equal([
      'responded 503',
      'hints',
      'usage 4',
    ]);
    expect(told.filter((what) => what === 'closed')).to.have.length(2);
    expect(first).to.have.length(4);
    expect(events.map(({ type, attempt, model }) => `${attempt} ${model} ${type}`)).to.deep.equal([
      '1 embed attempt.started',
      '1 embed hints',
      '1 embed attempt.ended',
      '2 embed attempt.started',
      '2 embed committed',
      '2 embed attempt.ended',
    ]);
    expect(events.at(-1)).to.have.nested.property('usage.totalTokens', 4);
    expect(scope.call.failed).to.have.length(1);
  });

  it('asks the user’s classify first', async () => {
    const classify = ({ status }: { status: number | undefined }): 'overloaded' | undefined =>
      status === 500 ? 'overloaded' : undefined;
    const call = (): Promise<number> => Promise.reject(Object.assign(new Error('x'), { status: 500 }));
    const seen = record(fromCall(call, { classify }));
    await seen.end;
    expect(seen.error.code).to.equal('overloaded');
  });

  it('ends as dropped when it is left', () => {
    const events: SluiceEvent[] = [];
    record(fromCall(() => never<number>(), { onEvent: (event) => events.push(event) })).unsubscribe();
    expect(events.at(-1)).to.include({ type: 'attempt.ended', outcome: 'dropped' });
  });

  it('leaves nothing on a signal that 1,000 calls were tied to', async () => {
    const { signal } = new AbortController();
    const kinds = [
      () => Promise.resolve(1),
      () => Promise.reject(new Error('no')),
      () => never<number>(),
      () => Promise.resolve(manual<number>().iterable as unknown as number),
    ];
    const running = Array.from({ length: 1_000 }, (_, at) =>
      record(fromCall(kinds[at % 4] as () => Promise<number>).pipe(takeUntil(fromEvent(signal, 'abort')))),
    );
    await turn();
    for (const seen of running) seen.unsubscribe();
    await turn();
    expect(getEventListeners(signal, 'abort')).to.have.length(0);
  });

  it('refuses what is no function, and a wrong option, when it is created', () => {
    expect(() => fromCall('x' as never))
      .to.throw(SluiceError, 'call')
      .with.property('code', 'invalid_option');
    expect(() => fromCall(() => never<number>(), { timeouts: { responseMs: 0 } })).to.throw(SluiceError, 'responseMs');
  });

  describe('over HTTP', () => {
    let server: RawServer;
    beforeEach(async () => {
      server = await rawServer();
    });
    afterEach(() => server.close());

    forEachOpenAI(({ OpenAI: Client }) => {
      let client: OpenAI;
      beforeEach(() => {
        client = new Client({ apiKey: 'key', baseURL: server.baseURL, maxRetries: 0 });
      });

      it('gives embeddings', async () => {
        const body = { model: 'embed', input: 'x' };
        const seen = record(fromCall((signal) => client.embeddings.create(body, { signal, maxRetries: 0 })));
        const data = [{ object: 'embedding', index: 0, embedding: [0.5] }];
        (await server.next()).json(200, {
          object: 'list',
          data,
          model: 'embed',
          usage: { prompt_tokens: 1, total_tokens: 1 },
        });
        await seen.end;
        expect(seen.values[0]?.data).to.have.length(1);
      });

      it('reads the SDK’s own stream, and aborts it', async () => {
        const body = { model: 'm', messages: [], stream: true as const };
        const seen = record(fromCall((signal) => client.chat.completions.create(body, { signal })));
        const exchange = await server.next();
        exchange.head();
        exchange.events(say('a'), stop(), DONE);
        exchange.end();
        await seen.end;
        expect(seen.values.map(({ choices }) => choices[0]?.delta.content)).to.deep.equal(['a', undefined]);

        const left = record(fromCall((signal) => client.chat.completions.create(body, { signal })));
        const second = await server.next();
        second.head();
        second.events(say('a'));
        await new Promise((resolve) => setTimeout(resolve, 10));
        left.unsubscribe();
        expect((await second.closed).aborted).to.equal(true);
      });
    });
  });
});
