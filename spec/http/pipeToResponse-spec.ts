import { expect } from 'chai';
import express from 'express';
import { once } from 'node:events';
import { createServer, request as httpRequest } from 'node:http';
import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { concat, NEVER, Observable, of, Subject, throwError, timer } from 'rxjs';
import { SluiceError } from '../../lib/core/errors.ts';
import type { AnswerEvent } from '../../lib/http/AnswerEvent.ts';
import type { DeliveryOptions, DeliveryReport } from '../../lib/http/DeliveryOptions.ts';
import { pipeToResponse } from '../../lib/http/pipeToResponse.ts';
import type { AnswerPart } from '../../lib/operators/answerPart.ts';
import { say, stop } from '../helpers/chunks.ts';
import { decode, utf8 } from '../helpers/readSse.ts';

const none = Object.create(null) as ServerResponse;
const part = (words: string): AnswerPart => say(words) as unknown as AnswerPart;
const hello$ = of(...([say('Hel'), say('lo'), stop()] as unknown as AnswerPart[]));

describe('pipeToResponse', () => {
  let server: Server;
  let reports: DeliveryReport[];
  let reported: Subject<DeliveryReport>;
  let answer$: Observable<AnswerPart | AnswerEvent>;
  let options: DeliveryOptions;
  let before: (response: ServerResponse) => void;

  beforeEach(async () => {
    reports = [];
    reported = new Subject();
    answer$ = hello$;
    options = {};
    before = () => {};
    server = await listening((_, response) => {
      before(response);
      answer$.pipe(pipeToResponse(response, options)).subscribe((report) => {
        reports.push(report);
        reported.next(report);
      });
    });
  });

  afterEach(async () => {
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  });

  it('sends events with the headers of a stream, and ends', async () => {
    const response = await fetch(urlOf(server));
    const { events } = decode([utf8(await response.text())]);
    expect(response.status).to.equal(200);
    expect(response.headers.get('content-type')).to.equal('text/event-stream; charset=utf-8');
    expect(response.headers.get('cache-control')).to.equal('no-cache, no-transform');
    expect(response.headers.get('x-accel-buffering')).to.equal('no');
    expect(events.map(([, name]) => name)).to.deep.equal(['delta', 'delta', 'done']);
    expect(reports).to.deep.equal([{ outcome: 'done', events: 3, error: undefined }]);
  });

  it('keeps the headers that others set, and sends those of the options', async () => {
    before = (response) => response.setHeader('access-control-allow-origin', '*');
    options = { headers: { 'x-chat': 'c-17' } };
    const { headers } = await fetch(urlOf(server));
    expect(headers.get('access-control-allow-origin')).to.equal('*');
    expect(headers.get('x-chat')).to.equal('c-17');
  });

  it('answers a failure before the first event with its status, as JSON', async () => {
    answer$ = throwError(() => new SluiceError('circuit_open', 'resting', { retryAfterMs: 4100 }));
    const response = await fetch(urlOf(server));
    expect(response.status).to.equal(503);
    expect(response.headers.get('retry-after')).to.equal('5');
    expect(response.headers.get('content-type')).to.equal('application/json; charset=utf-8');
    expect(await response.json()).to.deep.equal({
      error: { message: 'resting', type: 'local', code: 'circuit_open', param: null },
      retryAfterMs: 4100,
    });
    expect(reports[0]).to.have.property('outcome', 'failed');
  });

  it('tells a failure after it as the last event', async () => {
    answer$ = concat(
      of(part('Hel')),
      throwError(() => new SluiceError('stream_idle', 'nothing came')),
    );
    const response = await fetch(urlOf(server));
    const { events } = decode([utf8(await response.text())]);
    expect(response.status).to.equal(200);
    expect(events.at(-1)?.[1]).to.equal('failure');
  });

  it('speaks the format of the AI SDK', async () => {
    options = { format: 'ui-messages' };
    const response = await fetch(urlOf(server));
    expect(response.headers.get('x-vercel-ai-ui-message-stream')).to.equal('v1');
    const { events } = decode([utf8(await response.text())]);
    expect(events.at(-1)?.[0]).to.equal('[DONE]');
    expect(events.slice(0, -1).map(([data]) => (JSON.parse(data) as { type: string }).type)).to.deep.equal([
      'start',
      'start-step',
      'text-start',
      'text-delta',
      'text-delta',
      'text-end',
      'finish-step',
      'finish',
    ]);
  });

  it('unsubscribes in the tick in which it hears that the client left', async () => {
    const source = new Subject<AnswerPart>();
    let atClose: boolean | undefined;
    answer$ = source;
    before = (response) => {
      setImmediate(() => response.on('close', () => (atClose = source.observed)));
    };
    const controller = new AbortController();
    const fetched = fetch(urlOf(server), { signal: controller.signal });
    while (!source.observed) await once(server, 'request');
    source.next(part('Hel'));
    await fetched;
    const left = new Promise((resolve) => reported.subscribe(resolve));
    controller.abort();
    await left;
    expect(source.observed).to.equal(false);
    await new Promise((resolve) => setImmediate(resolve));
    expect(atClose).to.equal(false);
    expect(reports).to.deep.equal([{ outcome: 'left', events: 1, error: undefined }]);
  });

  it('never subscribes where the client has left already', async () => {
    let subscribed = false;
    answer$ = new Observable(() => void (subscribed = true));
    before = (response) => response.destroy();
    await fetch(urlOf(server)).catch(() => {});
    expect(subscribed).to.equal(false);
    expect(reports[0]).to.have.property('outcome', 'left');
  });

  it('ends the response when it is unsubscribed from', async () => {
    const responses = new Subject<ServerResponse>();
    const own = await listening((_, response) => responses.next(response));
    responses.subscribe((response) => {
      const subscription = concat(of(part('a')), NEVER)
        .pipe(pipeToResponse(response))
        .subscribe();
      setTimeout(() => subscription.unsubscribe(), 20);
    });
    const response = await fetch(urlOf(own));
    const failure = await response.text().catch((error: unknown) => error);
    expect(failure).to.be.instanceOf(Error);
    own.close();
  });

  it('ends the stream, and not the process, for an event that cannot be written', async () => {
    const wrong: AnswerEvent = { id: '1\n2', type: 'delta', data: { index: 0, text: 'b' } };
    answer$ = of<(AnswerPart | AnswerEvent)[]>(part('a'), wrong);
    const failure = await fetch(urlOf(server)).then(
      (response) => response.text().catch((error: unknown) => error),
      (error: unknown) => error,
    );
    expect(failure).to.be.instanceOf(Error);
    expect(reports[0]).to.have.property('outcome', 'failed');
  });

  it('drops a client that does not read, and asks the source to pause first', async () => {
    options = { maxPendingBytes: 100_000, pauseBytes: 50_000 };
    const words = part('x'.repeat(10_000));
    let stopped = false;
    answer$ = new Observable<AnswerPart>((subscriber) => {
      const more = setInterval(() => subscriber.next(words), 0);
      return () => {
        stopped = true;
        clearInterval(more);
      };
    });
    const ended = new Promise<DeliveryReport>((resolve) => reported.subscribe(resolve));
    const reader = await unread(server);
    const { outcome, error } = await ended;
    reader.destroy();
    expect(outcome).to.equal('dropped');
    expect(error).to.have.property('code', 'queue_full');
    expect(stopped).to.equal(true);
  });

  it('works behind Express, and leaves nothing on its response', async () => {
    const app = express();
    let left: readonly number[] = [];
    app.get('/', (_, response) => {
      const count = (): number[] => ['close', 'drain', 'error'].map((name) => response.listenerCount(name));
      const had = count();
      hello$.pipe(pipeToResponse(response)).subscribe(() => (left = count().map((now, at) => now - (had[at] ?? 0))));
    });
    const own = createServer(app as RequestListener);
    own.listen(0, '127.0.0.1');
    await once(own, 'listening');
    const { events } = decode([utf8(await (await fetch(urlOf(own))).text())]);
    expect(events.at(-1)?.[1]).to.equal('done');
    expect(left).to.deep.equal([0, 0, 0]);
    own.closeAllConnections();
    own.close();
  });

  it('sends nothing before it is subscribed to', () => {
    expect(() => timer(0).pipe(() => hello$.pipe(pipeToResponse(none)))).not.to.throw();
  });

  it('refuses wrong options when it is called', () => {
    expect(() => pipeToResponse(none, { heartbeatMs: NaN })).to.throw('heartbeatMs');
  });
});

async function listening(listener: RequestListener): Promise<Server> {
  const server = createServer(listener);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server;
}

function urlOf(server: Server): string {
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

/** A response whose body nobody reads. */
function unread(server: Server): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    httpRequest(urlOf(server), (message) => {
      message.pause();
      message.on('error', () => {});
      resolve(message);
    })
      .on('error', reject)
      .end();
  });
}
