import 'reflect-metadata';
import { Controller, Logger, Module, Req, Sse } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { expect } from 'chai';
import type { IncomingMessage, Server } from 'node:http';
import { concat, NEVER, of, Subject, take, throwError } from 'rxjs';
import type { Observable } from 'rxjs';
import { SluiceError } from '../../lib/core/errors.ts';
import type { AnswerEvent } from '../../lib/http/AnswerEvent.ts';
import { replayable } from '../../lib/http/replayable.ts';
import { toMessageEvents } from '../../lib/http/toMessageEvents.ts';
import type { SseMessage } from '../../lib/http/toMessageEvents.ts';
import { toServerSentEvents } from '../../lib/http/toServerSentEvents.ts';
import { whenStarted } from '../../lib/http/whenStarted.ts';
import type { AnswerPart } from '../../lib/operators/answerPart.ts';
import { say, stop } from '../helpers/chunks.ts';
import { marbles } from '../helpers/marbles.ts';
import { decode, utf8 } from '../helpers/readSse.ts';
import { seen } from '../helpers/seen.ts';

const part = (words: string): AnswerPart => say(words) as unknown as AnswerPart;
const end = stop() as unknown as AnswerPart;
const delta = (id: string, text: string, more: object = {}): object => ({
  type: 'delta',
  data: { index: 0, text },
  id,
  ...more,
});
const done = (id: string): object => ({
  type: 'done',
  data: { finishReason: 'stop', model: 'm1-2026', empty: false },
  id,
});

describe('toMessageEvents', () => {
  it(
    'emits messages, the first with the time to come back, and comments where nothing comes',
    marbles((m) => {
      const source = m.cold('a 8ms b 24ms s|', { a: part('Hel'), b: part('lo'), s: end });
      const expected = '     a 8ms b 9ms c 9ms c 5ms (d|)';
      m.expectObservable(source.pipe(toMessageEvents({ heartbeatMs: 10, retryMs: 7, runtime: m.runtime }))).toBe(
        expected,
        { a: delta('1', 'Hel', { retry: 7 }), b: delta('2', 'lo'), c: { comment: '' }, d: done('3') },
      );
    }),
  );

  it('has no timer where heartbeatMs is Infinity, and none after its end', () => {
    marbles((m) => {
      m.expectObservable(
        m
          .cold<AnswerPart>('a 20s (s|)', { a: part('a'), s: end })
          .pipe(toMessageEvents({ heartbeatMs: Infinity, runtime: m.runtime })),
      ).toBe('a 20s (d|)', { a: delta('1', 'a', { retry: 3000 }), d: done('2') });
    })();
  });

  it('tells a failure as the last message', () => {
    const source = concat(
      of(part('a')),
      throwError(() => new SluiceError('stream_idle', 'nothing came')),
    );
    const list = seen(source.pipe(toMessageEvents({ messageOf: () => 'sorry' }))).seen as SseMessage[];
    expect(list[1]).to.deep.include({ type: 'failure', id: '2' });
    expect(list[1]?.data).to.have.nested.property('error.message', 'sorry');
    expect(list[2]).to.equal('|');
  });

  it('unsubscribes from the source, and stops its timer', () => {
    const source = new Subject<AnswerPart>();
    const { subscription } = seen(source.pipe(toMessageEvents()));
    subscription.unsubscribe();
    expect(source.observed).to.equal(false);
  });

  it('stops a synchronous source', () => {
    expect(seen(of(part('a'), part('b'), end).pipe(toMessageEvents(), take(1))).seen).to.have.length(2);
  });

  it('refuses wrong options', () => {
    expect(() => toMessageEvents({ heartbeatMs: 0 })).to.throw('heartbeatMs');
    expect(() => toMessageEvents({ retryMs: 0.5 })).to.throw('retryMs');
  });
});

describe('toServerSentEvents', () => {
  it('writes the same as text', () => {
    const { seen: list } = seen(of(part('a'), end).pipe(toServerSentEvents({ retryMs: 9 })));
    expect(list).to.deep.equal([
      'event: delta\nid: 1\nretry: 9\ndata: {"index":0,"text":"a"}\n\n',
      'event: done\nid: 2\ndata: {"finishReason":"stop","model":"m1-2026","empty":false}\n\n',
      '|',
    ]);
  });
});

describe('whenStarted', () => {
  it('resolves with the first event, and gives it and all others once', async () => {
    const source = new Subject<AnswerPart>();
    const started = whenStarted(source);
    source.next(part('a'));
    source.next(part('b'));
    const { seen: list } = seen(await started);
    source.next(part('c'));
    source.complete();
    expect(list.slice(0, -2).map((event) => (event as AnswerEvent).id)).to.deep.equal(['1', '2', '3']);
    expect(list.at(-1)).to.equal('|');
  });

  it('gives the end that came before anyone subscribed', async () => {
    const failure = new Error('late');
    const events$ = await whenStarted(
      concat(
        of(part('a')),
        throwError(() => failure),
      ),
    );
    expect(seen(events$).seen.slice(1)).to.deep.equal([failure]);
    expect(seen(await whenStarted(of(part('a')))).seen.at(-1)).to.equal('|');
  });

  it('rejects with the status of a failure before it', async () => {
    const failed$ = throwError(() => new SluiceError('overloaded', 'busy', { retryAfterMs: 10 }));
    const failure = await whenStarted(failed$).catch((error: unknown) => error);
    expect(failure).to.deep.include({ statusCode: 503, message: 'busy' });
  });

  it('rejects when the signal is aborted, and unsubscribes', async () => {
    const source = new Subject<AnswerPart>();
    const controller = new AbortController();
    const started = whenStarted(source, { signal: controller.signal });
    controller.abort();
    expect(source.observed).to.equal(false);
    expect(await started.catch((error: unknown) => error)).to.have.property('statusCode', 499);
    const late = await whenStarted(source, { signal: AbortSignal.abort() }).catch((error: unknown) => error);
    expect(late).to.have.property('statusCode', 499);
  });

  it('unsubscribes from the source with the result', async () => {
    const source = new Subject<AnswerPart>();
    const started = whenStarted(source);
    source.next(part('a'));
    (await started).subscribe().unsubscribe();
    expect(source.observed).to.equal(false);
  });
});

describe('NestJS', () => {
  const answers = replayable();
  let url: string;
  let answer$: Observable<AnswerPart | AnswerEvent>;
  let app: Awaited<ReturnType<typeof NestFactory.create>>;

  class ChatController {
    plain(): Observable<SseMessage> {
      return answer$.pipe(toMessageEvents());
    }
    async started(request: IncomingMessage): Promise<Observable<SseMessage>> {
      const events$ = await whenStarted(answers.open({ lastEventId: request.headers['last-event-id'] }, () => answer$));
      return events$.pipe(toMessageEvents());
    }
  }
  decorate(Sse('plain'), 'plain');
  decorate(Sse('started'), 'started');
  Req()(ChatController.prototype, 'started', 0);
  Controller()(ChatController);
  // eslint-disable-next-line @typescript-eslint/no-extraneous-class -- Nest's modules have nothing in them
  class ChatModule {}
  Module({ controllers: [ChatController] })(ChatModule);

  function decorate(decorator: MethodDecorator, method: 'plain' | 'started'): void {
    const descriptor = Object.getOwnPropertyDescriptor(ChatController.prototype, method);
    if (descriptor) decorator(ChatController.prototype, method, descriptor);
  }

  before(async () => {
    Logger.overrideLogger(false);
    app = await NestFactory.create(ChatModule);
    await app.listen(0, '127.0.0.1');
    const address = (app.getHttpServer() as Server).address();
    url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`;
  });

  after(() => app.close());

  it('sends the messages of a handler', async () => {
    answer$ = of(part('Hel'), part('lo'), end);
    const text = await (await fetch(`${url}/plain`)).text();
    const { events } = decode([utf8(text)]);
    expect(events.map(([, name]) => name)).to.deep.equal(['delta', 'delta', 'done']);
    expect(text).to.include('id: 3\n').and.to.include('retry: 3000\n');
  });

  it('unsubscribes when the client leaves', async () => {
    const source = new Subject<AnswerPart>();
    answer$ = source;
    const controller = new AbortController();
    await fetch(`${url}/plain`, { signal: controller.signal });
    controller.abort();
    while (source.observed) await new Promise((resolve) => setImmediate(resolve));
  });

  it('answers a failure before the first event with its status', async () => {
    answer$ = throwError(() => new SluiceError('overloaded', 'busy'));
    const response = await fetch(`${url}/started`);
    expect(response.status).to.equal(503);
    expect(await response.json()).to.deep.equal({ statusCode: 503, message: 'busy' });
  });

  it('goes on where the client stopped, and says when there is nothing more', async () => {
    answer$ = of(part('Hel'), part('lo'), end);
    const text = await (await fetch(`${url}/started`)).text();
    const [first, , last] = [...text.matchAll(/^id: (.+)$/gm)].map(([, id = '']) => id);
    const again = (id: string | undefined): Promise<Response> =>
      fetch(`${url}/started`, { headers: { 'last-event-id': id ?? '' } });
    answer$ = NEVER;
    const { events } = decode([utf8(await (await again(first)).text())]);
    expect(events.map(([, name]) => name)).to.deep.equal(['delta', 'done']);
    expect((await again(last)).status).to.equal(204);
    expect((await again('other-1')).status).to.equal(410);
    answers.close();
  });
});
