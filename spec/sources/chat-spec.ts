import { getEventListeners } from 'node:events';
import { expect } from 'chai';
import type { OpenAI } from 'openai';
import type { ChatCompletionChunk } from 'openai/resources/chat/completions';
import { fromEvent, take, takeUntil } from 'rxjs';
import type { Observable } from 'rxjs';
import { CallScope } from '../../lib/core/CallScope.ts';
import { runInScope } from '../../lib/core/currentScope.ts';
import { SluiceError } from '../../lib/core/errors.ts';
import type { SluiceEvent } from '../../lib/core/events.ts';
import type { AttemptOptions } from '../../lib/sources/AttemptOptions.ts';
import { chat } from '../../lib/sources/chat.ts';
import { systemRuntime } from '../../lib/core/runtime.ts';
import { DONE, role, say, stop, usage, whole } from '../helpers/chunks.ts';
import { forEachOpenAI } from '../helpers/openaiVersions.ts';
import { rawServer } from '../helpers/rawServer.ts';
import type { RawExchange, RawServer } from '../helpers/rawServer.ts';
import { record } from '../helpers/record.ts';

const messages = [{ role: 'user' as const, content: 'hi' }];
const textOf = (chunks: readonly ChatCompletionChunk[]): string =>
  chunks.map((chunk) => chunk.choices[0]?.delta?.content ?? '').join('');

describe('chat', () => {
  let server: RawServer;

  beforeEach(async () => {
    server = await rawServer();
  });
  afterEach(() => server.close());

  forEachOpenAI(({ name, OpenAI: Client }) => {
    let client: OpenAI;
    const ask = (options: AttemptOptions = {}, more: object = {}): Observable<ChatCompletionChunk> =>
      chat(client, { model: 'm1', messages, ...more }, options);
    /** A request that was answered up to its head. */
    const headed = async (): Promise<RawExchange> => {
      const exchange = await server.next();
      exchange.head();
      return exchange;
    };

    beforeEach(() => {
      client = new Client({ apiKey: 'key', baseURL: server.baseURL, maxRetries: 5 });
    });

    it('sends nothing before it is subscribed to, and one request for each subscription', async () => {
      const source = ask();
      await new Promise((resolve) => setImmediate(resolve));
      expect(server.connections).to.equal(0);
      const both = [record(source), record(source)];
      for (let at = 0; at < 2; at++) {
        const exchange = await headed();
        exchange.events(say('a'), stop(), DONE);
        exchange.end();
      }
      await Promise.all(both.map(({ end }) => end));
      expect(both.map(({ values }) => textOf(values))).to.deep.equal(['a', 'a']);
      expect(server.exchanges).to.have.length(2);
    });

    it('tells the scope when the SDK has prepared the request and sends it', async () => {
      const log: string[] = [];
      client = new Client({
        apiKey: 'key',
        baseURL: server.baseURL,
        fetch: (url, init) => {
          log.push('fetch');
          return fetch(url as string, init as RequestInit);
        },
      });
      const sink = { dispatched: () => void log.push('dispatched'), sent: () => void log.push('sent') };
      const scope = CallScope.start(systemRuntime, { sink });
      const seen = runInScope(scope, () => record(ask()));
      expect(log).to.deep.equal(['dispatched']);
      await server.next();
      expect(log).to.deep.equal(['dispatched', 'sent', 'fetch']);
      seen.unsubscribe();
    });

    it('tells listeners where the client sends to, or what it was told instead', async () => {
      const servers: unknown[] = [];
      const onEvent = (event: SluiceEvent): void => {
        if (event.type === 'attempt.started') servers.push(event.server);
      };
      const named = { host: 'gateway', port: 1 };
      for (const options of [{}, { server: named }]) record(ask({ ...options, onEvent })).unsubscribe();
      const { hostname: host, port } = new URL(server.baseURL);
      expect(servers).to.deep.equal([{ host, port: Number(port) }, named]);
    });

    it('lets the SDK build the request', async () => {
      const seen = record(ask({ headers: { 'x-mine': 'yes' } }, { temperature: 0.5, extra: { any: 1 } }));
      const { path, headers, body } = await server.next();
      expect(path).to.equal('/v1/chat/completions');
      expect(headers).to.include({ authorization: 'Bearer key', 'x-mine': 'yes', 'x-stainless-retry-count': '0' });
      expect(body).to.deep.equal({
        model: 'm1',
        messages,
        temperature: 0.5,
        extra: { any: 1 },
        stream: true,
        stream_options: { include_usage: true },
      });
      seen.unsubscribe();
    });

    it('emits the chunks as they were sent', async () => {
      const seen = record(ask());
      const exchange = await headed();
      exchange.events(
        role(),
        say('Hel'),
        { ...say('lo'), obfuscation: 'xy', nested: { any: [1] } },
        stop(),
        usage(),
        DONE,
      );
      await seen.end;
      expect(seen.values).to.deep.equal([
        role(),
        say('Hel'),
        { ...say('lo'), obfuscation: 'xy', nested: { any: [1] } },
        stop(),
      ]);
    });

    it('reads events however the body is split', async () => {
      const seen = record(ask());
      const exchange = await headed();
      const bytes = new TextEncoder().encode(`data: ${JSON.stringify(say('北京 🚀'))}\r\n\r\n: ping\n\n`);
      for (const byte of bytes) {
        exchange.write(Uint8Array.of(byte));
        if (byte > 0x7f) await new Promise((resolve) => setImmediate(resolve));
      }
      exchange.events(stop());
      exchange.end();
      await seen.end;
      expect(textOf(seen.values)).to.equal('北京 🚀');
      expect(seen.ended).to.equal('complete');
    });

    it('completes at [DONE] while the server keeps the connection open, and closes it', async () => {
      const seen = record(ask());
      const exchange = await headed();
      exchange.events(say('a'), stop(), DONE);
      await seen.end;
      const endedMs = performance.now();
      const { aborted, atMs } = await exchange.closed;
      expect(aborted).to.equal(true);
      expect(atMs - endedMs).to.be.below(500);
    });

    it('uses a connection again whose body has ended', async () => {
      for (const last of [[DONE], [usage()], [usage(), DONE]]) {
        const seen = record(ask());
        const exchange = await headed();
        exchange.events(say('a'), stop(), ...last);
        await seen.end;
        exchange.end();
        await exchange.closed;
        // Time for the client to put the connection back, also on a busy machine.
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
      expect(server.connections).to.equal(1);
    });

    it('closes the connection at once when it is unsubscribed from, in every phase', async () => {
      const phases: Record<string, (exchange: RawExchange) => void> = {
        'waiting for headers': () => {},
        'waiting for a body': (exchange) => exchange.head(),
        held: (exchange) => {
          exchange.head();
          exchange.events(role());
        },
        streaming: (exchange) => {
          exchange.head();
          exchange.events(role(), say('a'));
        },
        tail: (exchange) => {
          exchange.head();
          exchange.events(say('a'), stop());
        },
        'an error body': (exchange) => {
          exchange.head(500, { 'content-type': 'application/json' });
          exchange.write('{');
        },
      };
      for (const [phase, answer] of Object.entries(phases)) {
        const closed: string[] = [];
        const scope = CallScope.start(systemRuntime, { sink: { closed: () => closed.push(phase) } });
        const seen = runInScope(scope, () => record(ask()));
        const exchange = await server.next();
        answer(exchange);
        await new Promise((resolve) => setTimeout(resolve, 10));
        expect(seen.ended, phase).to.equal(undefined);
        const leftMs = performance.now();
        seen.unsubscribe();
        const { aborted, atMs } = await exchange.closed;
        expect(aborted, phase).to.equal(true);
        // What a busy machine adds is in it: 50 ms are measured by `npm run prove prompt-abort`.
        expect(atMs - leftMs, phase).to.be.below(500);
        expect(closed, phase).to.deep.equal([phase]);
      }
    });

    it('sends nothing where it is unsubscribed from at once', async () => {
      record(ask()).unsubscribe();
      await new Promise((resolve) => setTimeout(resolve, 20));
      expect(server.exchanges).to.have.length(0);
    });

    it('stops at the first chunk for take(1)', async () => {
      const seen = record(ask().pipe(take(1)));
      const exchange = await headed();
      exchange.events(say('a'), say('b'));
      await seen.end;
      expect(seen.values).to.have.length(1);
      expect((await exchange.closed).aborted).to.equal(true);
    });

    const calls = name.startsWith('openai 7') ? 1_000 : 100;
    it(`leaves nothing on a signal that ${calls} calls were tied to`, async () => {
      const { signal } = new AbortController();
      const closed: number[] = [];
      const scope = CallScope.start(systemRuntime, { sink: { closed: () => closed.push(1) } });
      await server.close();
      server = await rawServer((exchange, index) => {
        if (index % 4 === 0) return exchange.json(500, { error: { message: 'no' } });
        exchange.head();
        exchange.events(say('a'));
        if (index % 4 === 1) return exchange.reset();
        // The third kind is left by its consumer, the fourth ends well.
        exchange.events(stop(), DONE);
        exchange.end();
      });
      client = new Client({ apiKey: 'key', baseURL: server.baseURL });
      const one = async (at: number): Promise<void> => {
        const tied = ask().pipe(takeUntil(fromEvent(signal, 'abort')));
        await runInScope(scope, () => record(at % 4 === 2 ? tied.pipe(take(1)) : tied)).end;
      };
      for (let at = 0; at < calls; at += 50) await Promise.all(Array.from({ length: 50 }, (_, more) => one(at + more)));
      await new Promise((resolve) => setTimeout(resolve, 60));
      expect(getEventListeners(signal, 'abort')).to.have.length(0);
      expect(closed).to.have.length(calls);
    }).timeout(30_000);

    describe('failures', () => {
      const failing = async (
        answer: (exchange: RawExchange) => void,
        options: AttemptOptions = {},
      ): Promise<{ error: SluiceError; text: string; exchange: RawExchange }> => {
        const seen = record(ask(options));
        const exchange = await server.next();
        answer(exchange);
        await seen.end;
        return { error: seen.error, text: textOf(seen.values), exchange };
      };

      it('tries once, whatever the client would do', async () => {
        const { error } = await failing((exchange) => exchange.json(503, { error: { message: 'later' } }));
        expect(error.status).to.equal(503);
        expect(server.exchanges).to.have.length(1);
      });

      it('reports status, hints, request id and the provider’s names', async () => {
        const hints: (number | undefined)[] = [];
        const told: unknown[] = [];
        const sink = { responded: (status: number) => told.push(status), hints: () => told.push('hints') };
        const scope = CallScope.start(systemRuntime, { sink });
        const seen = runInScope(scope, () => record(ask({ onHints: ({ retryAfterMs }) => hints.push(retryAfterMs) })));
        const error = { message: 'Rate limit', type: 'requests', code: 'rate_limit_exceeded' };
        const headers = { 'retry-after-ms': '1234', 'x-request-id': 'req_9', 'x-ratelimit-remaining-requests': '0' };
        (await server.next()).json(429, { error }, headers);
        await seen.end;
        expect(seen.error).to.include({
          code: 'rate_limited',
          status: 429,
          retryAfterMs: 1234,
          requestId: 'req_9',
          providerCode: 'rate_limit_exceeded',
          model: 'm1',
          attempt: 1,
        });
        expect(hints).to.deep.equal([1234]);
        expect(told).to.deep.equal([429, 'hints']);
      });

      it('reports the hints of a success', async () => {
        const hints: (number | undefined)[] = [];
        const seen = record(ask({ onHints: ({ requests }) => hints.push(requests?.remaining) }));
        const exchange = await server.next();
        exchange.head(200, { 'content-type': 'text/event-stream', 'x-ratelimit-remaining-requests': '59' });
        exchange.events(say('a'), DONE);
        await seen.end;
        expect(hints).to.deep.equal([59]);
      });

      it('takes a status that HTTP does not know for a failure of the provider', async () => {
        const { error } = await failing((exchange) => exchange.json(999, { error: { message: 'odd' } }));
        expect(error).to.include({ source: 'upstream', status: 999 });
      });

      it('reads a part of an error body that never ends, and cancels the rest', async () => {
        const startMs = performance.now();
        const { error, exchange } = await failing((exchange) => {
          exchange.head(503, { 'content-type': 'application/json', 'retry-after': '7' });
          exchange.write('{"error":{"message":"');
        });
        expect(error).to.include({ status: 503, retryAfterMs: 7_000, source: 'upstream' });
        expect(performance.now() - startMs).to.be.within(900, 2_000);
        expect((await exchange.closed).aborted).to.equal(true);
      });

      it('reads at most 64 KiB of an error body', async () => {
        const { error, exchange } = await failing((exchange) => {
          exchange.head(500, { 'content-type': 'text/plain' });
          exchange.write('x'.repeat(100_000));
        });
        expect(error.code).to.equal('server_error');
        expect(error.message.length).to.be.below(500);
        expect((await exchange.closed).aborted).to.equal(true);
      });

      it('gives headers and body to the user’s classify, and nothing of them to the error', async () => {
        const { error } = await failing(
          (exchange) => exchange.json(500, { odd: 'private text' }, { 'x-kind': 'soft' }),
          {
            classify: ({ header, body }) =>
              header('X-Kind') === 'soft' && body?.includes('private') ? 'rate_limited' : undefined,
          },
        );
        expect(error.code).to.equal('rate_limited');
        expect(JSON.stringify(error)).to.not.include('private text');
      });

      it('tells an HTML page with a good status from an answer', async () => {
        const { error } = await failing((exchange) => {
          exchange.head(200, { 'content-type': 'text/html' });
          exchange.write('<!DOCTYPE html><html><head><title>502: Bad gateway</title></head></html>');
          exchange.end();
        });
        expect(error).to.include({ code: 'upstream_body_invalid', status: 200, contentType: 'text/html' });
        expect(error.message.length).to.be.below(250);
      });

      it('tells an error in a JSON body with a good status from an answer', async () => {
        for (const body of [
          { error: { message: 'Overloaded', type: 'overloaded_error' } },
          [{ error: { message: 'x', status: 'UNAVAILABLE' } }],
        ]) {
          const { error } = await failing((exchange) => exchange.json(200, body));
          expect(error.code).to.be.oneOf(['overloaded', 'server_error']);
        }
      });

      it('takes other JSON, plain text and an empty body for what they are', async () => {
        const json = await failing((exchange) => exchange.json(200, { hello: 1 }));
        expect(json.error.code).to.equal('upstream_body_invalid');
        const cut = await failing((exchange) => {
          exchange.head(200, { 'content-type': 'application/json' });
          exchange.write('{"choices":[{"mess');
          exchange.end();
        });
        expect(cut.error.code).to.equal('upstream_body_invalid');
        const text = await failing((exchange) => {
          exchange.head(200, { 'content-type': 'text/plain' });
          exchange.write('upstream unavailable');
          exchange.end();
        });
        expect(text.error.code).to.equal('upstream_body_invalid');
        const empty = await failing((exchange) => {
          exchange.head();
          exchange.end();
        });
        expect(empty.error.code).to.equal('stream_truncated');
      });

      it('turns an error event into its class, with a readable message', async () => {
        const { error, text } = await failing((exchange) => {
          exchange.head();
          exchange.events(say('Hel'));
          exchange.write(
            'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n',
          );
          exchange.end();
        });
        expect(text).to.equal('Hel');
        expect(error).to.include({ code: 'overloaded', status: undefined });
        expect(error.message).to.include('Overloaded');
        expect(error.partial?.text).to.equal('Hel');
      });

      it('takes an error beside empty choices for an error', async () => {
        const { error } = await failing((exchange) => {
          exchange.head();
          exchange.events({ id: 'g1', choices: [], error: { code: 502, message: 'Worker limit reached (33/32)' } });
          exchange.end();
        });
        expect(error.source).to.equal('upstream');
        expect(error.retryable).to.equal(true);
      });

      it('takes a reset and a cut for a failed connection, and keeps what came', async () => {
        for (const fault of ['reset', 'cut'] as const) {
          const seen = record(ask(), () => exchange[fault]());
          const exchange = await headed();
          exchange.events(say('Hello'));
          await seen.end;
          expect(textOf(seen.values)).to.equal('Hello');
          expect(seen.error).to.include({ code: 'connection', status: 200 });
          expect(seen.error.partial?.text).to.equal('Hello');
        }
      });

      it('takes a reset before any content for a failed connection, with nothing shown', async () => {
        const before = await failing((exchange) => exchange.reset());
        expect(before.error.code).to.equal('connection');
        const held = await failing((exchange) => {
          exchange.head();
          exchange.events(role());
          setTimeout(() => exchange.reset(), 5);
        });
        expect(held.error).to.include({ code: 'connection', partial: undefined });
        expect(held.text).to.equal('');
      });

      it('takes a clean end in the middle for a truncation', async () => {
        const { error, text } = await failing((exchange) => {
          exchange.head();
          exchange.events(say('Hel'));
          exchange.end();
        });
        expect(text).to.equal('Hel');
        expect(error.code).to.equal('stream_truncated');
      });

      it('takes a server that is not there for a failed connection', async () => {
        const nowhere = new Client({ apiKey: 'key', baseURL: 'http://127.0.0.1:9/v1' });
        const seen = record(chat(nowhere, { model: 'm1', messages }));
        await seen.end;
        expect(seen.error).to.include({ code: 'connection', status: undefined, attempt: 1 });
      });

      it('fails on an event that is not JSON, and on one above the limit', async () => {
        const broken = await failing((exchange) => {
          exchange.head();
          exchange.write('data: {"choices":[\n\n');
        });
        expect(broken.error.code).to.equal('upstream_body_invalid');
        expect((await broken.exchange.closed).aborted).to.equal(true);
        const large = await failing(
          (exchange) => {
            exchange.head();
            exchange.events(say('x'.repeat(5_000)));
          },
          { maxEventBytes: 1_000 },
        );
        expect(large.error).to.include({ code: 'upstream_body_invalid', limit: 1_000 });
      });

      it('passes over pings that are not JSON', async () => {
        const seen = record(ask());
        const exchange = await headed();
        exchange.write('event: ping\ndata: still here\n\n');
        exchange.events(say('a'), DONE);
        await seen.end;
        expect(seen.ended).to.equal('complete');
      });

      it('detects a stall behind pings', async () => {
        const seen = record(ask({ timeouts: { idleMs: 60 } }));
        const exchange = await headed();
        exchange.events(say('Hel'));
        const pings = setInterval(() => exchange.write(': ping\n\n'), 10);
        await seen.end;
        clearInterval(pings);
        expect(seen.error.code).to.equal('stream_idle');
        expect((await exchange.closed).aborted).to.equal(true);
      });
    });

    it('makes one chunk of a whole answer to a provider that ignores `stream`', async () => {
      const seen = record(ask());
      const call = { id: 't1', type: 'function', function: { name: 'f', arguments: '{}' } };
      (await server.next()).json(200, whole('Hello', { tool_calls: [call] }));
      await seen.end;
      expect(seen.ended).to.equal('complete');
      expect(seen.values).to.have.length(1);
      expect(seen.values[0]?.choices[0]).to.deep.equal({
        index: 0,
        delta: { role: 'assistant', content: 'Hello', tool_calls: [{ index: 0, ...call }] },
        finish_reason: 'stop',
      });
    });

    it('reads no more than a bounded part of a body that nobody takes, and loses nothing of it', async () => {
      let go = (): void => {};
      let paused = false;
      const demand = {
        ready: () => (paused ? new Promise<void>((resolve) => (go = resolve)) : undefined),
      };
      let received = 0;
      const seen = record(ask({ demand }), ({ choices }) => {
        received += choices[0]?.delta?.content?.length ?? 0;
        if (received > 1_000_000) paused = true;
      });
      const exchange = await headed();
      const part = 'x'.repeat(64 * 1024);
      let sent = 0;
      const total = 20 * 1024 * 1024;
      const sending = (async () => {
        while (sent < total) {
          sent += part.length;
          const line = `data: ${JSON.stringify(say(part))}\n\n`;
          if (!exchange.write(line)) await exchange.drained();
        }
        exchange.events(stop(), DONE);
        exchange.end();
      })();
      let atRest = -1;
      while (sent !== atRest) {
        atRest = sent;
        await new Promise((resolve) => setTimeout(resolve, 250));
      }
      expect(seen.ended).to.equal(undefined);
      expect(sent).to.be.below(15 * 1024 * 1024);
      paused = false;
      received = -1e12;
      const before = received;
      const already = seen.values.length;
      go();
      await sending;
      await seen.end;
      expect(seen.ended).to.equal('complete');
      expect(received - before + already * part.length).to.equal(sent);
    });

    it('leaves a demand that never comes without holding on to the connection', async () => {
      const seen = record(ask({ demand: { ready: () => new Promise<void>(() => {}) } }));
      const exchange = await headed();
      await new Promise((resolve) => setTimeout(resolve, 10));
      seen.unsubscribe();
      expect((await exchange.closed).aborted).to.equal(true);
    });
  });

  it('refuses a client that is none', () => {
    for (const client of [undefined, {}, { chat: {} }]) {
      expect(() => chat(client as never, { model: 'm', messages })).to.throw(SluiceError, 'client');
    }
  });
});
