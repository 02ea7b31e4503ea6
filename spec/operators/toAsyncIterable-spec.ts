import { expect } from 'chai';
import OpenAI from 'openai';
import { concat, defer, EMPTY, finalize, mergeMap, NEVER, Observable, of, range, Subject, tap, throwError } from 'rxjs';
import type { Demand } from '../../lib/core/attempt.ts';
import { CallScope } from '../../lib/core/CallScope.ts';
import { currentScope, runInScope } from '../../lib/core/currentScope.ts';
import { currentPace } from '../../lib/core/pace.ts';
import { SluiceError } from '../../lib/core/errors.ts';
import { concatByConversation } from '../../lib/operators/concatByConversation.ts';
import { text } from '../../lib/operators/text.ts';
import { toAsyncIterable } from '../../lib/operators/toAsyncIterable.ts';
import { chat } from '../../lib/sources/chat.ts';
import { virtualRuntime } from '../../lib/testing/virtualRuntime.ts';

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

async function collected<T>(values: AsyncIterable<T>): Promise<unknown[]> {
  const all: unknown[] = [];
  try {
    for await (const value of values) all.push(value);
    all.push('|');
  } catch (error) {
    all.push(error);
  }
  return all;
}

/** Emits 0, 1, 2... as fast as its call's demand lets it. */
function paced(total: number): { readonly source: Observable<number>; readonly made: () => number } {
  let made = 0;
  const source = defer(() => {
    const { demand } = currentScope() ?? CallScope.start(virtualRuntime());
    return new Observable<number>((subscriber) => {
      const run = async (): Promise<void> => {
        while (made < total && !subscriber.closed) {
          await demand?.ready();
          if (!subscriber.closed) subscriber.next(made++);
        }
        subscriber.complete();
      };
      void run();
    });
  });
  return { source, made: () => made };
}

describe('toAsyncIterable', () => {
  describe('delivers', () => {
    it('what is empty, one, or many, synchronous or not', async () => {
      expect(await collected(toAsyncIterable(EMPTY))).to.deep.equal(['|']);
      expect(await collected(toAsyncIterable(of(1)))).to.deep.equal([1, '|']);
      expect(await collected(toAsyncIterable(range(0, 5000)))).to.deep.equal([...Array(5000).keys(), '|']);
      expect(await collected(toAsyncIterable(paced(500).source))).to.deep.equal([...Array(500).keys(), '|']);
    });

    it('values to a loop that waits for them', async () => {
      const source = new Subject<string>();
      const all = collected(toAsyncIterable(source));
      for (const value of ['a', 'b']) {
        await turn();
        source.next(value);
      }
      source.complete();
      expect(await all).to.deep.equal(['a', 'b', '|']);
    });

    it('undefined as a value', async () => {
      expect(await collected(toAsyncIterable(of(undefined, undefined)))).to.deep.equal([undefined, undefined, '|']);
    });

    it('to several next() calls at once, in their order', async () => {
      const source = new Subject<number>();
      const iterator = toAsyncIterable(source);
      const results = Promise.all([iterator.next(), iterator.next(), iterator.next()]);
      source.next(1);
      source.next(2);
      source.complete();
      expect(await results).to.deep.equal([
        { done: false, value: 1 },
        { done: false, value: 2 },
        { done: true, value: undefined },
      ]);
    });

    it('what came before an error, then the error once, then the end', async () => {
      const error = new SluiceError('stream_truncated', 'cut');
      const iterator = toAsyncIterable(
        concat(
          of('a', 'b'),
          throwError(() => error),
        ),
      );
      expect(await iterator.next()).to.deep.equal({ done: false, value: 'a' });
      await turn();
      expect(await iterator.next()).to.deep.equal({ done: false, value: 'b' });
      expect(await iterator.next().catch((thrown: unknown) => thrown)).to.equal(error);
      expect(await iterator.next()).to.deep.equal({ done: true, value: undefined });
    });

    it('an error to the first of those that wait, and the end to the others', async () => {
      const source = new Subject<number>();
      const error = new Error('one');
      const iterator = toAsyncIterable(source);
      const results = Promise.allSettled([iterator.next(), iterator.next()]);
      source.error(error);
      expect(await results).to.deep.equal([
        { status: 'rejected', reason: error },
        { status: 'fulfilled', value: { done: true, value: undefined } },
      ]);
      expect(await iterator.next()).to.deep.equal({ done: true, value: undefined });
    });
  });

  describe('subscribes', () => {
    it('at the first next(), and once', async () => {
      let subscribed = 0;
      const iterator = toAsyncIterable(defer(() => of(++subscribed, 'more')));
      await turn();
      expect(subscribed).to.equal(0);
      await iterator.next();
      expect(await collected(iterator), 'goes on').to.deep.equal(['more', '|']);
      expect(await collected(iterator), 'is over').to.deep.equal(['|']);
      expect(subscribed).to.equal(1);
    });

    it('never, where it was left before', async () => {
      let subscribed = 0;
      const iterator = toAsyncIterable(defer(() => of(++subscribed)));
      expect(await iterator.return?.()).to.deep.equal({ done: true, value: undefined });
      expect(await collected(iterator)).to.deep.equal(['|']);
      expect(subscribed).to.equal(0);
    });

    it('outside the frame in which next() happens to be called', async () => {
      const frames: unknown[] = [];
      const iterator = toAsyncIterable(defer(() => of(frames.push(currentScope()))));
      await runInScope(CallScope.start(virtualRuntime()), () => iterator.next());
      expect(frames).to.deep.equal([undefined]);
    });
  });

  describe('unsubscribes in the same tick', () => {
    it('when a loop is left by break or by an exception', async () => {
      for (const leave of [
        (): 'break' => 'break',
        (): never => {
          throw new Error('left');
        },
      ]) {
        const source = new Subject<number>();
        const loop = (async () => {
          for await (const value of toAsyncIterable(source)) if (value === 1 && leave() === 'break') break;
        })().catch((error: unknown) => (error as Error).message);
        source.next(1);
        source.next(2);
        await turn();
        expect(source.observed).to.be.false;
        expect(await loop).to.be.oneOf([undefined, 'left']);
      }
    });

    it('at return(), also while next() waits, which ends', async () => {
      const source = new Subject<number>();
      const iterator = toAsyncIterable(source);
      const waits = iterator.next();
      const left = iterator.return?.();
      expect(source.observed).to.be.false;
      expect(await waits).to.deep.equal({ done: true, value: undefined });
      expect(await left).to.deep.equal({ done: true, value: undefined });
    });

    it('at return(), and forgets what is held and what failed', async () => {
      const iterator = toAsyncIterable(
        concat(
          of(1, 2),
          throwError(() => new Error('late')),
        ),
      );
      await iterator.next();
      await iterator.return?.();
      expect(await iterator.next()).to.deep.equal({ done: true, value: undefined });
    });

    it('at throw(), which rejects with what was thrown', async () => {
      const source = new Subject<number>();
      const iterator = toAsyncIterable(source);
      const waits = iterator.next();
      const error = new Error('thrown');
      const rejected = iterator.throw?.(error).catch((thrown: unknown) => thrown);
      expect(source.observed).to.be.false;
      expect(await rejected).to.equal(error);
      expect(await waits).to.deep.equal({ done: true, value: undefined });
    });

    it('from a source that emits while it is subscribed to', async () => {
      let made = 0;
      const endless = new Observable<number>((subscriber) => {
        while (!subscriber.closed) subscriber.next(made++);
      });
      const all = await collected(toAsyncIterable(endless, { maxBuffered: 10 }));
      expect(all.slice(0, -1)).to.deep.equal([...Array(10).keys()]);
      expect(made).to.equal(11);
    });
  });

  describe('with a signal', () => {
    it('ends with aborted in the tick of the abort, dropping what is held, and lets go of the signal', async () => {
      const controller = new AbortController();
      const listeners = counted(controller.signal);
      const source = new Subject<number>();
      const iterator = toAsyncIterable(source, { signal: controller.signal });
      const first = iterator.next();
      source.next(1);
      source.next(2);
      await first;
      expect(listeners()).to.equal(1);

      controller.abort();
      expect(source.observed).to.be.false;
      const error: unknown = await iterator.next().catch((thrown: unknown) => thrown);
      expect(error).to.be.instanceOf(SluiceError).that.includes({ code: 'aborted', source: 'local' });
      expect((error as SluiceError).message).to.include('the signal of the iteration');
      expect(await iterator.next()).to.deep.equal({ done: true, value: undefined });
      expect(listeners()).to.equal(0);
    });

    it('rejects a next() that waits', async () => {
      const controller = new AbortController();
      const waits = collected(toAsyncIterable(NEVER, { signal: controller.signal }));
      await turn();
      controller.abort();
      expect((await waits)[0]).to.include({ code: 'aborted' });
    });

    it('subscribes to nothing where it was aborted before', async () => {
      let subscribed = false;
      const source = defer(() => of((subscribed = true)));
      const [error] = await collected(toAsyncIterable(source, { signal: AbortSignal.abort() }));
      expect(error).to.include({ code: 'aborted' });
      expect(subscribed).to.be.false;
    });

    it('leaves no listener, however the iteration ends', async () => {
      const { signal } = new AbortController();
      const listeners = counted(signal);
      const left = toAsyncIterable(NEVER, { signal });
      void left.next();
      await collected(toAsyncIterable(of(1), { signal }));
      await collected(
        toAsyncIterable(
          throwError(() => new Error('x')),
          { signal },
        ),
      );
      expect(listeners()).to.equal(1);
      await left.return?.();
      expect(listeners()).to.equal(0);
    });
  });

  describe('sets the pace', () => {
    it('so that a source that can pause makes no more than bufferSize ahead, and nothing is lost', async () => {
      for (const bufferSize of [1, 10, undefined]) {
        const { source, made } = paced(200);
        const values: number[] = [];
        for await (const value of toAsyncIterable(source, { bufferSize })) {
          values.push(value);
          await turn();
          expect(made() - values.length).to.be.at.most(bufferSize ?? 64);
        }
        expect(values).to.deep.equal([...Array(200).keys()]);
      }
    });

    it('for every call that is started within the subscription, each with a frame of its own', async () => {
      const frames: CallScope[] = [];
      const ask = (n: number): Observable<number> =>
        defer(() => {
          frames.push(currentScope() ?? CallScope.start(virtualRuntime({ seed: n })));
          return of(n);
        });
      const source = of(1, 2).pipe(mergeMap(ask));
      await collected(toAsyncIterable(source));
      expect(frames[0]?.demand).to.not.be.undefined;
      expect(frames[0]?.demand).to.equal(frames[1]?.demand);
      expect(frames[0]?.callId).to.not.equal(frames[1]?.callId);
      expect(currentPace()).to.be.undefined;
    });

    it('for what concatByConversation asks later', async () => {
      const requests = new Subject<number>();
      const demands: (Demand | undefined)[] = [];
      const ask = (n: number): Observable<number> => defer(() => of(demands.push(currentScope()?.demand) + n));
      const iterator = toAsyncIterable(requests.pipe(concatByConversation(() => 'k', ask)));
      const first = iterator.next();
      requests.next(1);
      await first;
      expect(demands[0]).to.not.be.undefined;
      await iterator.return?.();
    });

    it('and lets a paused source go when the loop is left', async () => {
      let demand: Demand | undefined;
      const source = defer(() => {
        demand = CallScope.start(virtualRuntime()).demand;
        return concat(of(1, 2, 3), NEVER);
      });
      const iterator = toAsyncIterable(source, { bufferSize: 2 });
      await iterator.next();
      const ready = demand?.ready();
      expect(ready).to.be.instanceOf(Promise);
      expect(demand?.ready(), 'one promise for all that wait').to.equal(ready);
      await iterator.return?.();
      await ready;
      expect(demand?.ready()).to.be.undefined;
    });

    it('keeps what a source that cannot pause emits, up to maxBuffered', async () => {
      const source = new Subject<number>();
      const iterator = toAsyncIterable(source, { bufferSize: 1, maxBuffered: 3 });
      const first = iterator.next();
      for (const n of [0, 1, 2, 3]) source.next(n);
      expect(source.observed).to.be.true;
      await first;
      source.next(4);
      expect(source.observed).to.be.false;
      const [error] = (await collected(iterator)).slice(-1);
      expect(error).to.include({ code: 'queue_full', limit: 3 });
    });

    it('counts what waits to be taken, not what has been', async () => {
      const source = new Subject<number>();
      const iterator = toAsyncIterable(source, { bufferSize: 1, maxBuffered: 3 });
      const first = iterator.next();
      for (const n of [0, 1, 2, 3]) source.next(n);
      for (let i = 0; i < 2; i++) await iterator.next();
      await first;
      for (const n of [4, 5]) source.next(n);
      expect(source.observed).to.be.true;
      source.next(6);
      expect(source.observed).to.be.false;
      const rest = await collected(iterator);
      expect(rest.slice(0, -1)).to.deep.equal([3, 4, 5]);
      expect((rest[3] as Error).message).to.include('3 values wait');
    });

    it('asks for more only once less than bufferSize waits', async () => {
      let demand: Demand | undefined;
      const values = new Subject<number>();
      const source = defer(() => {
        demand = CallScope.start(virtualRuntime()).demand;
        return values;
      });
      const iterator = toAsyncIterable(source, { bufferSize: 2 });
      const first = iterator.next();
      for (const n of [0, 1, 2, 3]) values.next(n);
      await first;
      let asked = 0;
      void demand?.ready()?.then(() => asked++);
      const takes = async (): Promise<unknown> => {
        const { value } = await iterator.next();
        await turn();
        return [value, asked, demand?.ready() === undefined];
      };
      expect(await takes()).to.deep.equal([1, 0, false]);
      expect(await takes()).to.deep.equal([2, 1, true]);
    });

    it('asks nobody to wait once the source has ended', async () => {
      let demand: Demand | undefined;
      const source = defer(() => {
        demand = CallScope.start(virtualRuntime()).demand;
        return of(1, 2, 3, 4);
      });
      const iterator = toAsyncIterable(source, { bufferSize: 2 });
      await iterator.next();
      expect(demand?.ready()).to.equal(undefined);
    });

    it('takes 100,000 held values out in order', async () => {
      let next = 0;
      for await (const value of toAsyncIterable(range(0, 100_000))) if (value !== next++) expect.fail(`${value}`);
      expect(next).to.equal(100_000);
    });
  });

  it('reads of a streamed body no more than its reader takes, loses nothing, and aborts it when left', async () => {
    const TOTAL = 20_000;
    const event = (content: string, more = ''): Uint8Array =>
      new TextEncoder().encode(`data: {"choices":[{"index":0,"delta":{"content":"${content}"}${more}}]}\n\n`);
    let pulled = 0;
    let signal: AbortSignal | null | undefined;
    const client = new OpenAI({
      apiKey: 'none',
      fetch: (_url, init) => {
        signal = init?.signal;
        const body = new ReadableStream<Uint8Array>({
          pull(controller) {
            if (pulled < TOTAL) controller.enqueue(event(`${pulled++},`));
            else if (pulled++ === TOTAL) controller.enqueue(event('', ',"finish_reason":"stop"'));
            else controller.close();
          },
        });
        return Promise.resolve(new Response(body, { headers: { 'content-type': 'text/event-stream' } }));
      },
    });
    const pieces$ = chat(client, { model: 'm', messages: [{ role: 'user', content: 'q' }] }).pipe(text());
    let taken = 0;
    for await (const piece of toAsyncIterable(pieces$)) {
      expect(piece).to.equal(`${taken++},`);
      if (taken % 100 === 0) await turn();
      if (taken % 100 === 0) expect(pulled - taken).to.be.at.most(80);
      if (taken === 2000) break;
    }
    expect(signal?.aborted).to.be.true;

    pulled = TOTAL - 300;
    taken = pulled;
    for await (const piece of toAsyncIterable(pieces$)) {
      expect(piece).to.equal(`${taken++},`);
      if (taken % 50 === 0) await turn();
    }
    expect(taken).to.equal(TOTAL);
  });

  it('tears the source down when the loop is left, and rejects nothing that nobody sees', async () => {
    let torn = 0;
    const source = concat(
      of(1, 2),
      throwError(() => new Error('unseen')),
    ).pipe(
      tap({ error: () => undefined }),
      finalize(() => torn++),
    );
    for await (const value of toAsyncIterable(source)) if (value === 1) break;
    const pending = toAsyncIterable(NEVER.pipe(finalize(() => torn++)));
    void pending.next();
    await pending.return?.();
    await turn();
    expect(torn).to.equal(2);
  });

  it('refuses wrong options when it is made', () => {
    expect(() => toAsyncIterable(EMPTY, { bufferSize: 0 })).to.throw(
      SluiceError,
      'bufferSize must be a whole number of at least 1, got 0',
    );
    expect(() => toAsyncIterable(EMPTY, { maxBuffered: NaN })).to.throw('maxBuffered must be above 0, or Infinity');
  });
});

/** How many listeners a signal has, by what is added to it and removed from it from now on. */
function counted(signal: AbortSignal): () => number {
  let count = 0;
  const { addEventListener, removeEventListener } = signal;
  signal.addEventListener = (...args: Parameters<typeof addEventListener>) => {
    if (args[0] === 'abort') count++;
    addEventListener.apply(signal, args);
  };
  signal.removeEventListener = (...args: Parameters<typeof removeEventListener>) => {
    if (args[0] === 'abort') count--;
    removeEventListener.apply(signal, args);
  };
  return () => count;
}
