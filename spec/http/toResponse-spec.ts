import { expect } from 'chai';
import { Hono } from 'hono';
import { serve } from '@hono/node-server';
import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { concat, NEVER, Observable, of, Subject, throwError } from 'rxjs';
import { SluiceError } from '../../lib/core/errors.ts';
import type { Demand } from '../../lib/core/attempt.ts';
import { currentPace } from '../../lib/core/pace.ts';
import type { DeliveryReport } from '../../lib/http/DeliveryOptions.ts';
import { toReadableStream } from '../../lib/http/toReadableStream.ts';
import { toResponse } from '../../lib/http/toResponse.ts';
import type { AnswerPart } from '../../lib/operators/answerPart.ts';
import { virtualRuntime } from '../../lib/testing/virtualRuntime.ts';
import { say, stop } from '../helpers/chunks.ts';
import { decode, utf8 } from '../helpers/readSse.ts';

const part = (words: string): AnswerPart => say(words) as unknown as AnswerPart;
const hello$ = of(...([say('Hel'), say('lo'), stop()] as unknown as AnswerPart[]));
const names = (text: string): (string | undefined)[] => decode([utf8(text)]).events.map(([, name]) => name);
const decoder = new TextDecoder();

describe('toResponse', () => {
  it('resolves to a stream of events', async () => {
    const response = await toResponse(hello$, { headers: { 'x-chat': 'c-17' } });
    expect(response.status).to.equal(200);
    expect(response.headers.get('content-type')).to.equal('text/event-stream; charset=utf-8');
    expect(response.headers.get('x-chat')).to.equal('c-17');
    const text = await response.text();
    expect(names(text)).to.deep.equal(['delta', 'done']);
    expect(text).to.include('"text":"Hello"');
  });

  it('resolves with the first event, and not before', async () => {
    const source = new Subject<AnswerPart>();
    let resolved = false;
    const response = toResponse(source);
    void response.then(() => (resolved = true));
    await settle();
    expect(resolved).to.equal(false);
    source.next(part('a'));
    expect((await response).status).to.equal(200);
    await (await response).body?.cancel();
  });

  it('resolves to the status of a failure before it', async () => {
    const failed$ = throwError(() => new SluiceError('rate_limited', 'wait', { retryAfterMs: 900 }));
    const reports: DeliveryReport[] = [];
    const response = await toResponse(failed$, { onEnd: (report) => reports.push(report) });
    expect(response.status).to.equal(429);
    expect(response.headers.get('retry-after')).to.equal('1');
    expect(await response.json()).to.have.nested.property('error.code', 'rate_limited');
    expect(reports[0]).to.have.property('outcome', 'failed');
  });

  it('resolves to a stream after openAfterMs', async () => {
    const runtime = virtualRuntime();
    const response = toResponse(NEVER, { runtime, openAfterMs: 100 });
    await runtime.advanceAsync(100);
    expect((await response).status).to.equal(200);
    await (await response).body?.cancel();
    expect(runtime.pending).to.equal(0);
  });

  it('ends the call when the signal of the request is aborted before there is a body', async () => {
    const source = new Subject<AnswerPart>();
    const controller = new AbortController();
    const response = toResponse(source, { signal: controller.signal });
    expect(source.observed).to.equal(true);
    controller.abort();
    expect(source.observed).to.equal(false);
    expect((await response).status).to.equal(499);
  });

  it('asks for nothing where the signal has been aborted already', async () => {
    let subscribed = false;
    const source = new Observable<AnswerPart>(() => void (subscribed = true));
    expect((await toResponse(source, { signal: AbortSignal.abort() })).status).to.equal(499);
    expect(subscribed).to.equal(false);
  });

  it('refuses wrong options when it is called', () => {
    expect(() => toResponse(hello$, { maxStalledMs: -1 })).to.throw('maxStalledMs');
  });

  it('is what a handler of Hono returns, and hears when the client leaves', async () => {
    const source = new Subject<AnswerPart>();
    const app = new Hono();
    app.get('/', (c) => toResponse(source, { signal: c.req.raw.signal }));
    const server = serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }) as Server;
    await once(server, 'listening');
    const controller = new AbortController();
    const fetched = fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`, { signal: controller.signal });
    while (!source.observed) await settle();
    source.next(part('Hel'));
    const body = (await fetched).body as ReadableStream<Uint8Array>;
    expect(decoder.decode((await body.getReader().read()).value)).to.include('retry: 3000');
    controller.abort();
    while (source.observed) await settle();
    server.close();
  });
});

describe('toReadableStream', () => {
  it('subscribes when it is first read', async () => {
    let subscribed = false;
    const source = new Observable<AnswerPart>(() => void (subscribed = true));
    const stream = toReadableStream(source);
    await settle();
    expect(subscribed).to.equal(false);
    const reader = stream.getReader();
    void reader.read();
    await settle();
    expect(subscribed).to.equal(true);
    await reader.cancel();
  });

  it('unsubscribes in the tick in which it is cancelled', async () => {
    const source = new Subject<AnswerPart>();
    const reports: DeliveryReport[] = [];
    const reader = toReadableStream(source, { onEnd: (report) => reports.push(report) }).getReader();
    void reader.read();
    await settle();
    expect(source.observed).to.equal(true);
    void reader.cancel();
    expect(source.observed).to.equal(false);
    expect(reports[0]).to.have.property('outcome', 'left');
  });

  it('merges what comes between two reads', async () => {
    const source = new Subject<AnswerPart>();
    const reader = toReadableStream(source).getReader();
    const first = reader.read();
    await settle();
    for (const words of ['a', 'b', 'c', 'd']) source.next(part(words));
    expect(decoder.decode((await first).value)).to.equal('retry: 3000\n\n');
    expect(names(decoder.decode((await reader.read()).value))).to.deep.equal(['delta']);
    source.complete();
    expect(names(decoder.decode((await reader.read()).value))).to.deep.equal(['done']);
    expect((await reader.read()).done).to.equal(true);
  });

  it('holds the source back while nobody reads', async () => {
    let demand: Demand | undefined;
    const source = new Observable<AnswerPart>((subscriber) => {
      demand = currentPace();
      subscriber.next(part('x'.repeat(100)));
      subscriber.next(part('x'.repeat(100)));
    });
    const reader = toReadableStream(source, { pauseBytes: 50 }).getReader();
    await reader.read();
    const ready = demand?.ready();
    expect(ready).to.be.a('promise');
    await reader.read();
    await ready;
    await reader.cancel();
    expect(demand?.ready()).to.equal(undefined);
  });

  it('tells every failure as an event', async () => {
    const failed$ = throwError(() => new SluiceError('overloaded', 'busy'));
    expect(names(await new Response(toReadableStream(failed$)).text())).to.deep.equal(['failure']);
  });

  it('breaks off for a reader that does not read', async () => {
    const runtime = virtualRuntime();
    const source = concat(of(part('a'), part('b')), NEVER);
    const reader = toReadableStream(source, { runtime, maxStalledMs: 50 }).getReader();
    await reader.read();
    await runtime.advanceAsync(50);
    const failure = await reader.closed.catch((error: unknown) => error);
    expect(failure).to.be.instanceOf(Error);
  });

  it('leaves no listener on the signal', async () => {
    const { signal } = new AbortController();
    let listeners = 0;
    const add = signal.addEventListener.bind(signal);
    const remove = signal.removeEventListener.bind(signal);
    Object.assign(signal, {
      addEventListener: (...args: Parameters<typeof add>) => (listeners++, add(...args)),
      removeEventListener: (...args: Parameters<typeof remove>) => (listeners--, remove(...args)),
    });
    await new Response(toReadableStream(hello$, { signal })).text();
    expect(listeners).to.equal(0);
  });
});

function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
