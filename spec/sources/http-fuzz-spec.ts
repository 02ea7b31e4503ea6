import { expect } from 'chai';
import fc from 'fast-check';
import type { Socket } from 'node:net';
import { setImmediate as turn, setTimeout as sleep } from 'node:timers/promises';
import { OpenAI } from 'openai';
import type { Observable } from 'rxjs';
import { httpSource } from '../../lib/http/transport/httpSource.ts';
import type { HttpSource } from '../../lib/http/transport/httpSource.ts';
import { attemptStream } from '../../lib/sources/attemptStream.ts';
import { chat } from '../../lib/sources/chat.ts';
import { complete } from '../../lib/sources/complete.ts';
import { respond } from '../../lib/sources/respond.ts';
import { byteServer } from '../helpers/byteServer.ts';
import type { ByteServer } from '../helpers/byteServer.ts';
import { record } from '../helpers/record.ts';

const messages = [{ role: 'user' as const, content: 'hi' }];
const LIMIT_MS = 200;
const timeouts = { headersMs: LIMIT_MS, firstContentMs: LIMIT_MS, idleMs: LIMIT_MS, responseMs: LIMIT_MS, tailMs: 20 };

const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text);
const head = fc
  .tuple(
    fc.constantFrom('200 OK', '204 No Content', '301 Moved', '429 Too Many', '500 Oops', '999 Odd', '103 Early', '0 x'),
    fc.constantFrom(
      'content-type: text/event-stream\r\n',
      'content-type: application/json\r\nretry-after: 1e99\r\n',
      'content-encoding: gzip\r\n',
      'transfer-encoding: chunked\r\n',
      'content-length: 5\r\n',
      'content-length: -1\r\n',
      'x: \u0001\r\n',
      '',
    ),
  )
  .map(([status, fields]) => utf8(`HTTP/1.1 ${status}\r\n${fields}\r\n`));
const piece = fc.oneof(
  fc
    .constantFrom(
      'data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\n',
      'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n',
      'data: {"type":"response.output_text.delta","delta":"a"}\n\n',
      'data: {"type":"response.completed","response":{}}\n\n',
      'data: [DONE]\n\n',
      'event: error\ndata: {"error":{"message":"x"}}\n\n',
      '{"choices":[{"index":0,"message":{"content":"a"},"finish_reason":"stop"}]}',
      '5\r\ndata:\r\n',
      '0\r\n\r\n',
      'HTTP/1.1 200 OK\r\n\r\n',
      ': ping\n\n',
      '\r\n',
    )
    .map(utf8),
  fc.uint8Array({ maxLength: 40 }),
);
const answer = fc.record({
  bytes: fc
    .tuple(fc.oneof({ weight: 5, arbitrary: head }, piece), fc.array(piece, { maxLength: 6 }))
    .map(([first, rest]) => Buffer.concat([first, ...rest])),
  splits: fc.array(fc.nat(300), { maxLength: 5 }),
  end: fc.constantFrom<'end' | 'reset' | 'hang'>('end', 'end', 'reset', 'hang'),
});

/**
 * An answer whose head says where its body ends. One that goes on until its connection is closed is not reset under Node's own
 * `fetch`: where its reader is just pausing, that fails an assertion in Node, which ends the process.
 */
const FRAMED = /^HTTP\/1\.1 [^1]\S* .*\r\n(transfer-encoding: chunked|content-length: 5)\r\n/;

describe('sources, fuzzed over HTTP', () => {
  let server: ByteServer;
  let client: OpenAI;
  let pooled: HttpSource;
  before(async () => {
    server = await byteServer();
    client = new OpenAI({ baseURL: server.baseURL, apiKey: 'none', maxRetries: 0 });
    pooled = httpSource({ baseURL: server.baseURL });
  });
  after(async () => {
    await pooled.close();
    await server.close();
  });

  type Options = NonNullable<Parameters<typeof chat>[2]>;
  const sources: Record<string, (options: Options) => Observable<unknown>> = {
    chat: (options) => chat(client, { model: 'm', messages }, options),
    respond: (options) => respond(client, { model: 'm', input: 'hi' }, options),
    complete: (options) => complete(client, { model: 'm', messages }, options),
    'chat by httpSource': (options) => {
      const call = { api: 'chat', request: { model: 'm', messages }, stream: true } as const;
      return attemptStream(pooled, call, options);
    },
    'complete by httpSource': (options) => {
      const call = { api: 'chat', request: { model: 'm', messages }, stream: false } as const;
      return attemptStream(pooled, call, options);
    },
  };

  for (const [name, source] of Object.entries(sources)) {
    it(`end any bytes once, within the limits, in success or in a SluiceError of the provider: ${name}`, async () => {
      await fc.assert(
        fc.asyncProperty(answer, async ({ bytes, splits, end }) => {
          server.serve(async (socket) => {
            const ends = [...new Set([...splits.filter((at) => at < bytes.length), bytes.length])].sort(
              (a, b) => a - b,
            );
            let from = 0;
            for (const to of ends) {
              socket.write(bytes.subarray(from, to));
              from = to;
              await turn();
            }
            const reset = end === 'reset' && (name.includes('httpSource') || FRAMED.test(bytes.toString('latin1')));
            if (reset) socket.resetAndDestroy();
            else if (end !== 'hang') socket.end();
          });
          const seen = record(source({ timeouts }));
          await Promise.race([seen.end, sleep(5_000)]);
          expect(seen.ended, 'an end').to.not.equal(undefined);
          if (seen.ended === 'error') expect(seen.error.source, seen.error.message).to.equal('upstream');
        }),
        { numRuns: 60 },
      );
      for (let waitedMs = 0; server.open > 0 && waitedMs < 2_000; waitedMs += 20) await sleep(20);
    }).timeout(60_000);
  }

  describe('with a body that does not end', () => {
    const PART = 16 * 1024;
    const OK = 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n';
    const FAILED = 'HTTP/1.1 500 Oops\r\ncontent-type: application/json\r\n\r\n';
    const floods: Record<string, { readonly first: string; readonly part: string; readonly code: string }> = {
      'a line': { first: `${OK}data: `, part: 'x'.repeat(PART), code: 'upstream_body_invalid' },
      'an event': { first: OK, part: `data: ${'x'.repeat(PART)}\n`, code: 'upstream_body_invalid' },
      comments: { first: OK, part: ': ping\n\n'.repeat(PART / 8), code: 'timeout' },
      'blank lines': { first: OK, part: '\n'.repeat(PART), code: 'timeout' },
      'events without content': {
        first: OK,
        part: 'data: {"choices":[{"index":0,"delta":{}}]}\n\n'.repeat(64),
        code: 'timeout',
      },
      'a page': { first: `${OK}<html>`, part: 'x'.repeat(PART), code: 'upstream_body_invalid' },
      'an object': { first: `${OK}{"x":"`, part: 'x'.repeat(PART), code: 'upstream_body_invalid' },
      'an error': { first: `${FAILED}{"error":"`, part: 'x'.repeat(PART), code: 'server_error' },
    };

    const ways = ['chat', 'chat by httpSource'].flatMap((way) =>
      Object.entries(floods).map(([name, flood]) => ({ way, name, ...flood })),
    );
    for (const { way, name, first, part, code } of ways) {
      it(`keeps a bounded part of ${name}, and closes the connection: ${way}`, async () => {
        let sent = 0;
        let closed: Promise<unknown> = Promise.resolve();
        server.serve(async (socket: Socket) => {
          closed = new Promise((resolve) => socket.once('close', resolve));
          socket.write(first);
          while (!socket.destroyed) {
            sent += part.length;
            if (!socket.write(part))
              await Promise.race([new Promise((resolve) => socket.once('drain', resolve)), closed]);
            await turn();
          }
        });
        // Where it is not time that ends it, a busy machine gets as much of that as it wants.
        const limits = code === 'timeout' ? { timeouts } : {};
        const settings = { ...limits, maxEventBytes: 256 * 1024, maxHeldBytes: 256 * 1024, maxHeldChunks: 100_000 };
        const before = process.memoryUsage().rss;
        const seen = record(sources[way]!(settings));
        await seen.end;
        await closed;
        expect(seen.error.code).to.equal(code);
        expect(process.memoryUsage().rss - before, `after ${sent} bytes`).to.be.below(200 * 1024 * 1024);
        // What is held is bounded by the limit, and what is under way by the sockets' own buffers.
        if (code === 'upstream_body_invalid') expect(sent).to.be.below(32 * 1024 * 1024);
      });
    }
  });

  it('reads an event of a megabyte that comes byte by byte', async () => {
    const text = 'ä'.repeat(512 * 1024);
    const bytes = utf8(
      `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: text }, finish_reason: 'stop' }] })}\n\ndata: [DONE]\n\n`,
    );
    let at = 0;
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        if (at < bytes.length) controller.enqueue(bytes.subarray(at, ++at));
        else controller.close();
      },
    });
    const local = new OpenAI({ apiKey: 'none', fetch: () => Promise.resolve(new Response(body)) });
    const seen = record(chat(local, { model: 'm', messages }));
    await seen.end;
    expect(seen.values[0]?.choices[0]?.delta.content?.length).to.equal(text.length);
  }).timeout(30_000);
});
