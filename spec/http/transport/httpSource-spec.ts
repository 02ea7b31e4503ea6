import { expect } from 'chai';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Observable } from 'rxjs';
import { createSluice } from '../../../lib/client/createSluice.ts';
import { CallScope } from '../../../lib/core/CallScope.ts';
import { runInScope } from '../../../lib/core/currentScope.ts';
import type { SluiceEvent } from '../../../lib/core/events.ts';
import { systemRuntime } from '../../../lib/core/runtime.ts';
import { startEmulator } from '../../../lib/emulator/startEmulator.ts';
import { httpSource } from '../../../lib/http/transport/httpSource.ts';
import type { HttpSource } from '../../../lib/http/transport/httpSource.ts';
import { HTTP_SOURCE_DEFAULTS } from '../../../lib/http/transport/HttpSourceOptions.ts';
import type { HttpSourceOptions } from '../../../lib/http/transport/HttpSourceOptions.ts';
import type { AttemptOptions } from '../../../lib/sources/AttemptOptions.ts';
import { attemptStream } from '../../../lib/sources/attemptStream.ts';
import { byteServer } from '../../helpers/byteServer.ts';
import { DONE, role, say, stop, usage, whole } from '../../helpers/chunks.ts';
import type { RawChunk } from '../../helpers/chunks.ts';
import { rawServer } from '../../helpers/rawServer.ts';
import type { RawExchange, RawServer } from '../../helpers/rawServer.ts';
import { record } from '../../helpers/record.ts';
import { thrown } from '../../helpers/scripted.ts';

const request = { model: 'm1', messages: [{ role: 'user', content: 'hi' }] };
const textOf = (chunks: readonly RawChunk[]): string =>
  chunks.map(({ choices }) => (choices[0]?.['delta'] as { content?: string } | undefined)?.content ?? '').join('');

/** Waits for what must come, however busy the machine is. */
async function until(holds: () => boolean): Promise<void> {
  for (let waitedMs = 0; !holds() && waitedMs < 5_000; waitedMs += 5) await sleep(5);
}

describe('httpSource', () => {
  let server: RawServer;
  let source: HttpSource;
  const open = (more: Partial<HttpSourceOptions> = {}): HttpSource =>
    (source = httpSource({ baseURL: server.baseURL, ...more }));
  const ask = (options: AttemptOptions = {}, stream = true, more: object = {}): Observable<RawChunk> =>
    attemptStream(source, { api: 'chat', request: { ...request, ...more }, stream }, options);
  /** A request that was answered up to its head. */
  const headed = async (): Promise<RawExchange> => {
    const exchange = await server.next();
    exchange.head();
    return exchange;
  };

  beforeEach(async () => {
    server = await rawServer();
    open();
  });
  afterEach(async () => {
    await source.close();
    await server.close();
  });

  describe('the request', () => {
    it('is sent once for each subscription, and not before', async () => {
      const asked = ask();
      await sleep(5);
      expect(server.connections).to.equal(0);
      for (let at = 0; at < 2; at++) {
        const seen = record(asked);
        const exchange = await headed();
        exchange.events(say('a'), stop(), DONE);
        exchange.end();
        await seen.end;
      }
      expect(server.exchanges).to.have.length(2);
    });

    it('has the body, the key, and the headers of the source and of the attempt', async () => {
      open({ apiKey: 'secret', headers: { 'X-Org': 'o1', 'x-both': 'source' } });
      const seen = record(ask({ headers: { 'x-mine': 'yes', 'X-Both': 'attempt' } }));
      const { path, headers, body } = await server.next();
      expect(path).to.equal('/v1/chat/completions');
      expect(headers).to.include({
        authorization: 'Bearer secret',
        'content-type': 'application/json',
        'x-org': 'o1',
        'x-mine': 'yes',
        'x-both': 'attempt',
      });
      expect(headers).to.not.have.any.keys('accept-encoding', 'transfer-encoding');
      expect(body).to.deep.equal({ ...request, stream: true, stream_options: { include_usage: true } });
      seen.unsubscribe();
    });

    it('goes to the path of its API, and keeps the query of the base URL', async () => {
      open({ baseURL: `${server.baseURL}/deployments/d/?api-version=1` });
      for (const [api, path] of [
        ['chat', 'chat/completions'],
        ['responses', 'responses'],
      ] as const) {
        const seen = record(attemptStream(source, { api, request: { ...request, input: 'x' }, stream: true }));
        expect((await server.next()).path).to.equal(`/v1/deployments/d/${path}?api-version=1`);
        seen.unsubscribe();
      }
    });

    it('asks a function for the key at each attempt', async () => {
      let asked = 0;
      open({ apiKey: () => `k${++asked}` });
      for (const key of ['Bearer k1', 'Bearer k2']) {
        const seen = record(ask());
        expect((await server.next()).headers.authorization).to.equal(key);
        seen.unsubscribe();
      }
    });

    it('takes the bytes of an attempt as they are', async () => {
      const bytes = new TextEncoder().encode('{ "model":"m1",  "x": 1.0 }');
      const attempt = { api: 'chat', request, headers: {}, stream: false, demand: undefined, bytes } as const;
      const seen = record(source(attempt));
      const { headers, body } = await server.next();
      expect(headers['content-length']).to.equal(String(bytes.length));
      expect(body).to.deep.equal({ model: 'm1', x: 1 });
      seen.unsubscribe();
    });

    it('that cannot be written is a fault of the caller', async () => {
      const cases: Record<string, Observable<unknown>> = {
        'a number that is no JSON': ask({}, true, { seed: 1n }),
        'a header with a line break': ask({ headers: { 'x-mine': 'a\r\nb: c' } }),
      };
      for (const [name, asked] of Object.entries(cases)) {
        const seen = record(asked);
        await seen.end;
        expect(seen.error.code, name).to.equal('invalid_request');
      }
      expect(server.connections).to.equal(0);
    });
  });

  describe('the answer', () => {
    it('is emitted as it was sent, after the first content', async () => {
      const seen = record(ask());
      const exchange = await headed();
      const odd = { ...say('lo'), obfuscation: 'xy' };
      exchange.events(role(), say('Hel'), odd, stop(), usage(), DONE);
      await seen.end;
      expect(seen.values).to.deep.equal([role(), say('Hel'), odd, stop()]);
    });

    it('keeps its text for those who pass it on', async () => {
      const seen = record(attemptStream<{ text: string }>(source, { api: 'chat', request, stream: true, wire: true }));
      const exchange = await headed();
      const texts = ['{"choices":[{"index":0,  "delta":{"content":"a"}}]}', JSON.stringify(stop())];
      exchange.events(...texts, DONE);
      await seen.end;
      expect(seen.values.map(({ text }) => text)).to.deep.equal(texts);
    });

    it('that goes on in the same way is told as it came: its chunks, its text, and how many held any', async () => {
      const texts = ['Hel', 'lo', ' "quoted"', '\n', ', and', ' so', ' on'];
      const events: SluiceEvent[] = [];
      const seen = record(ask({ onEvent: (event) => events.push(event) }));
      const exchange = await headed();
      exchange.events(role(), ...texts.map((text) => say(text)));
      await until(() => seen.values.length === texts.length + 1);
      exchange.cut();
      await seen.end;
      expect(seen.values).to.deep.equal([role(), ...texts.map((text) => say(text))]);
      expect(seen.error.partial?.text).to.equal(texts.join(''));
      expect(events.find(({ type }) => type === 'attempt.ended')).to.include({ contentChunks: texts.length });
    });

    it('is read however it is split', async () => {
      const seen = record(ask());
      const exchange = await headed();
      for (const byte of new TextEncoder().encode(`: ping\n\ndata: ${JSON.stringify(say('北京 🚀'))}\r\n\r\n`)) {
        exchange.write(Uint8Array.of(byte));
        await new Promise((resolve) => setImmediate(resolve));
      }
      exchange.events(stop());
      exchange.end();
      await seen.end;
      expect(textOf(seen.values)).to.equal('北京 🚀');
    });

    it('may be whole', async () => {
      const seen = record(ask({}, false));
      const exchange = await server.next();
      expect(exchange.body['stream']).to.equal(false);
      exchange.json(200, whole('hello'), { 'x-request-id': 'r7' });
      await seen.end;
      expect(seen.values).to.deep.equal([whole('hello')]);
      expect((seen.values[0] as unknown as { _request_id: string })._request_id).to.equal('r7');
    });

    it('with an error status is told with its hints and its request id', async () => {
      const hints: unknown[] = [];
      const seen = record(ask({ onHints: (hint) => hints.push(hint.retryAfterMs) }));
      const error = { message: 'slow down', type: 'requests', code: 'rate_limit_exceeded' };
      (await server.next()).json(429, { error }, { 'retry-after-ms': '700', 'x-request-id': 'r1' });
      await seen.end;
      expect(seen.error).to.include({ code: 'rate_limited', status: 429, retryAfterMs: 700, requestId: 'r1' });
      expect(hints).to.deep.equal([700]);
    });

    it('with an error status that does not end is read for a second', async () => {
      const seen = record(ask());
      const exchange = await server.next();
      exchange.head(503, { 'content-type': 'application/json' });
      exchange.write('{"error":{"message":"the ser');
      await seen.end;
      expect(seen.error).to.include({ code: 'server_error', status: 503 });
      expect((await exchange.closed).aborted).to.equal(true);
    });

    it('with a redirect is not followed', async () => {
      const seen = record(ask());
      (await server.next()).json(307, {}, { location: `${server.baseURL}/elsewhere` });
      await seen.end;
      expect(seen.error.status).to.equal(307);
      expect(server.exchanges).to.have.length(1);
    });

    it('that ends too early is truncated', async () => {
      const seen = record(ask());
      const exchange = await headed();
      exchange.events(say('Hel'));
      exchange.end();
      await seen.end;
      expect(seen.error.code).to.equal('stream_truncated');
      expect(seen.error.partial?.text).to.equal('Hel');
    });

    for (const way of ['cut', 'reset'] as const) {
      it(`that breaks off is a failed connection: ${way}`, async () => {
        const seen = record(ask());
        const exchange = await headed();
        exchange.events(say('Hel'));
        await until(() => seen.values.length > 0);
        exchange[way]();
        await seen.end;
        expect(seen.error).to.include({ code: 'connection', status: 200 });
      });
    }

    for (const way of ['closes', 'resets'] as const) {
      it(`whose server ${way} the connection while nobody reads on comes to its end`, async () => {
        const bytes = await byteServer();
        open({ baseURL: bytes.baseURL });
        let goOn = (): void => {};
        let waits = 0;
        const ready = (): Promise<void> => {
          waits++;
          return new Promise((resolve) => (goOn = resolve));
        };
        let gone = false;
        bytes.serve(async (socket) => {
          const events = [say('a'), say('b'), stop()].map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`);
          socket.write(
            `HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: text/event-stream\r\n\r\n${events.join('')}`,
          );
          await until(() => waits > 0);
          if (way === 'closes') socket.end(() => (gone = true));
          else socket.once('close', () => (gone = true)).resetAndDestroy();
        });
        const seen = record(ask({ demand: { ready } }));
        await until(() => gone);
        // Until the other side has it too.
        await sleep(50);
        // As often as it is asked for: the end must not depend on it.
        const going = setInterval(() => goOn(), 1);
        await seen.end;
        clearInterval(going);
        if (way === 'closes') expect(textOf(seen.values)).to.equal('ab');
        else expect(seen.error.code).to.equal('connection');
        await bytes.close();
      });
    }

    it('that is no HTTP is a failed connection', async () => {
      const bytes = await byteServer();
      open({ baseURL: bytes.baseURL });
      for (const said of ['HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n', 'SSH-2.0-OpenSSH_9.9\r\n']) {
        bytes.serve((socket) => void socket.write(said));
        const seen = record(ask());
        await seen.end;
        expect(seen.error.code, said).to.equal('connection');
      }
      await bytes.close();
    });

    it('above the limit is refused', async () => {
      open({ maxEventBytes: 1_000 });
      const seen = record(ask({}, false));
      const exchange = await server.next();
      exchange.json(200, whole('x'.repeat(2_000)));
      await seen.end;
      expect(seen.error).to.include({ code: 'upstream_body_invalid', limit: 1_000 });
    });
  });

  describe('connections', () => {
    it('are used again once a body has ended, and counted', async () => {
      for (const last of [[DONE], [usage()], [usage(), DONE]]) {
        const seen = record(ask());
        const exchange = await headed();
        exchange.events(say('a'), stop(), ...last);
        exchange.end();
        await seen.end;
        await exchange.closed;
        await sleep(5);
      }
      expect(server.connections).to.equal(1);
      expect(source.connections).to.equal(1);
    });

    it('are closed 25 ms after the last event where the body does not end', async () => {
      const seen = record(ask());
      const exchange = await headed();
      exchange.events(say('a'), stop(), DONE);
      await seen.end;
      expect((await exchange.closed).aborted).to.equal(true);
    });

    it('are closed in the tick of an unsubscribe, in every phase', async () => {
      // The pool may open another one for each that is closed.
      open({ keepAliveMs: 50 });
      const phases: Record<string, (exchange: RawExchange) => void> = {
        'before the head': () => {},
        'before the body': (exchange) => exchange.head(),
        held: (exchange) => {
          exchange.head();
          exchange.events(role());
        },
        streaming: (exchange) => {
          exchange.head();
          exchange.events(say('a'));
        },
        'an error body': (exchange) => {
          exchange.head(500, { 'content-type': 'application/json' });
          exchange.write('{');
        },
      };
      for (const [name, answer] of Object.entries(phases)) {
        let closed = 0;
        const scope = CallScope.start(systemRuntime, { sink: { closed: () => void closed++ } });
        const seen = runInScope(scope, () => record(ask()));
        const exchange = await server.next();
        answer(exchange);
        await sleep(20);
        const leftMs = performance.now();
        seen.unsubscribe();
        expect(closed, name).to.equal(1);
        const { aborted, atMs } = await exchange.closed;
        expect(aborted, name).to.equal(true);
        expect(atMs - leftMs, name).to.be.below(500);
      }
      await until(() => source.connections === 0);
      expect(source.connections).to.equal(0);
    });

    it('are not waited for by those who left before they came about', async () => {
      let closed = 0;
      const scope = CallScope.start(systemRuntime, { sink: { closed: () => void closed++ } });
      runInScope(scope, () => record(ask())).unsubscribe();
      expect(closed).to.equal(1);
      await sleep(30);
      expect(server.exchanges).to.have.length(0);
    });

    it('that died while idle are replaced', async () => {
      const first = record(ask({}, false));
      (await server.next()).json(200, whole('a'));
      await first.end;
      await until(() => server.open === 1);
      server.exchanges[0]?.cut();
      await until(() => source.connections === 0);
      const second = record(ask({}, false));
      (await server.next()).json(200, whole('b'));
      await second.end;
      expect(second.ended).to.equal('complete');
      expect(server.connections).to.equal(2);
    });

    it('that die under a request fail it, and it is not sent twice', async () => {
      const seen = record(ask());
      (await server.next()).cut();
      await seen.end;
      expect(seen.error).to.include({ code: 'connection', retryable: true });
      expect(server.exchanges).to.have.length(1);
    });

    it('that nobody accepts fail the request', async () => {
      await server.close();
      const seen = record(ask());
      await seen.end;
      expect(seen.error).to.include({ code: 'connection', status: undefined });
      server = await rawServer();
    });

    it('are at most as many as was said', async () => {
      open({ maxConnections: 2 });
      const seen = [1, 2, 3].map(() => record(ask({}, false)));
      const first = [await server.next(), await server.next()];
      await sleep(30);
      expect(server.exchanges).to.have.length(2);
      for (const exchange of first) exchange.json(200, whole('a'));
      (await server.next()).json(200, whole('a'));
      await Promise.all(seen.map(({ end }) => end));
      expect(server.connections).to.equal(2);
    });

    it('are closed once they have been idle for long enough', async () => {
      open({ keepAliveMs: 50 });
      const seen = record(ask({}, false));
      (await server.next()).json(200, whole('a'), { 'keep-alive': '' });
      await seen.end;
      await until(() => source.connections === 0);
      expect(source.connections).to.equal(0);
    });

    it('fail what runs, and what comes later, when the source is closed', async () => {
      const running = record(ask());
      const exchange = await headed();
      exchange.events(say('a'));
      await until(() => running.values.length > 0);
      await source.close();
      await running.end;
      const later = record(ask());
      await later.end;
      expect([running.error.code, later.error.code]).to.deep.equal(['closed', 'closed']);
      expect(source.connections).to.equal(0);
      expect((await exchange.closed).aborted).to.equal(true);
    });

    it('are made by TLS, as the options say', async () => {
      const pem = (name: string): Buffer => readFileSync(new URL(`../../fixtures/tls/${name}.pem`, import.meta.url));
      const cert = pem('cert');
      const tls = createTlsServer({ cert, key: pem('key') }, (incoming, response) => {
        incoming.resume();
        response.end(JSON.stringify(whole('safe')));
      }).listen(0, '127.0.0.1');
      await once(tls, 'listening');
      const baseURL = `https://127.0.0.1:${(tls.address() as AddressInfo).port}/v1`;
      const refused = record((open({ baseURL }), ask({}, false)));
      await refused.end;
      expect(refused.error).to.include({ code: 'connection', retryable: false });
      await source.close();
      const trusted = record((open({ baseURL, tls: { ca: cert } }), ask({}, false)));
      await trusted.end;
      expect(trusted.values).to.deep.equal([whole('safe')]);
      await source.close();
      tls.close();
    });
  });

  it('reads no further than the consumer wants', async () => {
    let wanted: (() => void) | undefined;
    let ready = (): Promise<void> | undefined => undefined;
    const seen = record(ask({ demand: { ready: () => ready() }, timeouts: { idleMs: 60_000 } }));
    const exchange = await headed();
    exchange.events(say('a'));
    ready = () => new Promise((resolve) => (wanted = resolve));
    await until(() => wanted !== undefined);
    const before = seen.values.length;
    const part = say('x'.repeat(64 * 1024));
    // Far more than the buffers of both sockets take.
    for (let at = 0; at < 400 && exchange.written < 26e6; at++) exchange.events(part);
    await sleep(100);
    expect(seen.values.length - before).to.be.below(8);
    ready = () => undefined;
    wanted?.();
    exchange.events(stop(), DONE);
    exchange.end();
    await seen.end;
    expect(seen.ended).to.equal('complete');
    expect(seen.values.length).to.be.above(before + 300);
  });

  it('fails the attempt where the consumer cannot say', async () => {
    const demand = { ready: () => Promise.reject(new Error('no')) };
    const seen = record(source({ api: 'chat', request, headers: {}, stream: true, demand }));
    const exchange = await headed();
    await seen.end;
    expect(seen.ended).to.equal('error');
    expect((await exchange.closed).aborted).to.equal(true);
  });

  it('tells the scope when a request is prepared, on its way, and over', async () => {
    const log: string[] = [];
    const sink = {
      dispatched: (_: number, sentFollows: boolean) => void log.push(`dispatched ${sentFollows}`),
      sent: () => void log.push('sent'),
      responded: (status: number) => void log.push(`responded ${status}`),
      closed: () => void log.push('closed'),
    };
    const around = <R>(work: () => R): R => (log.push('around'), work());
    const scope = CallScope.start(systemRuntime, { sink, around });
    const seen = runInScope(scope, () => record(ask({}, false)));
    expect(log).to.deep.equal(['dispatched true', 'around']);
    (await server.next()).json(200, whole('a'));
    await seen.end;
    expect(log.slice(2)).to.deep.equal(['sent', 'responded 200', 'closed']);
  });

  it('carries 1,000 streams at once', async () => {
    const emulator = await startEmulator({
      answer: { tokens: 5, tokenMs: 20 },
      latency: { firstTokenMs: 50 },
    } as never);
    open({ baseURL: emulator.baseURL });
    const seen = Array.from({ length: 1_000 }, () => record(ask({ timeouts: { headersMs: 25_000 } })));
    await Promise.all(seen.map(({ end }) => end));
    expect(seen.filter(({ ended }) => ended === 'complete').length).to.equal(1_000);
    expect(emulator.report().statuses).to.deep.equal({ '200': 1_000 });
    await emulator.close();
    await until(() => source.connections === 0);
    expect(source.connections).to.equal(0);
  }).timeout(30_000);

  it('is a client of createSluice, and names its server', async () => {
    const servers: unknown[] = [];
    const sluice = createSluice(source, { models: { default: { retry: { baseMs: 1, capMs: 2 } } } });
    sluice.events$.subscribe((event) => event.type === 'attempt.started' && servers.push(event.server));
    const seen = record(sluice.chat(request as never));
    (await server.next()).json(503, { error: { message: 'later' } });
    const exchange = await headed();
    exchange.events(say('a'), stop(), DONE);
    exchange.end();
    await seen.end;
    expect(seen.ended).to.equal('complete');
    const port = Number(new URL(server.baseURL).port);
    expect(servers).to.deep.equal(Array(2).fill({ host: '127.0.0.1', port }));
    await sluice.close({ drainMs: 0 });
  });

  it('refuses options out of their range, and tells no secret', () => {
    const wrong: Record<string, Partial<Record<keyof HttpSourceOptions, unknown>>> = {
      baseURL: { baseURL: 'ftp://models.example' },
      'baseURL ': { baseURL: 'http://user:secret@models.example' },
      apiKey: { apiKey: '' },
      'headers.x-a': { headers: { 'x-a': 'secret\r\n' } },
      maxConnections: { maxConnections: 0 },
      keepAliveMs: { keepAliveMs: NaN },
      connectMs: { connectMs: 0 },
      tls: { tls: 'secret' },
      maxEventBytes: { maxEventBytes: 0.5 },
    };
    for (const [name, options] of Object.entries(wrong)) {
      const error = thrown(() => open(options as never));
      expect(error.code, name).to.equal('invalid_option');
      expect(error.message).to.include(name.trim()).and.not.include('secret');
    }
    expect(HTTP_SOURCE_DEFAULTS.maxConnections).to.equal(Infinity);
  });
});
