import { expect } from 'chai';
import type { OpenAI } from 'openai';
import type { SluiceEvent } from '../../lib/core/events.ts';
import { complete } from '../../lib/sources/complete.ts';
import { whole } from '../helpers/chunks.ts';
import { forEachOpenAI } from '../helpers/openaiVersions.ts';
import { rawServer } from '../helpers/rawServer.ts';
import type { RawServer } from '../helpers/rawServer.ts';
import { record } from '../helpers/record.ts';

const request = { model: 'm1', messages: [{ role: 'user' as const, content: 'hi' }] };

describe('complete', () => {
  let server: RawServer;

  beforeEach(async () => {
    server = await rawServer();
  });
  afterEach(() => server.close());

  forEachOpenAI(({ OpenAI: Client }) => {
    let client: OpenAI;
    beforeEach(() => {
      client = new Client({ apiKey: 'key', baseURL: server.baseURL });
    });

    it('emits the answer once and completes', async () => {
      const events: SluiceEvent[] = [];
      const seen = record(complete(client, request, { onEvent: (event) => events.push(event) }));
      const exchange = await server.next();
      expect(exchange.body).to.deep.equal({ ...request, stream: false });
      exchange.json(200, whole('Hello'), { 'x-request-id': 'req_1' });
      await seen.end;
      expect(seen.ended).to.equal('complete');
      expect(seen.values).to.deep.equal([whole('Hello')]);
      expect((seen.values[0] as { _request_id?: string })._request_id).to.equal('req_1');
      expect(events.at(-1)).to.deep.include({ outcome: 'success', finishReasons: ['stop'], responseModel: 'm1-2026' });
      expect(events.at(-1)).to.have.nested.property('usage.totalTokens', 5);
    });

    it('takes an answer without a finish reason, behind blank lines that keep the connection alive', async () => {
      const seen = record(complete(client, request));
      const exchange = await server.next();
      exchange.head(200, { 'content-type': 'application/json' });
      exchange.write('\n');
      await new Promise((resolve) => setTimeout(resolve, 5));
      exchange.write('\n\n  {"choices":[{"index":0,"message":');
      await new Promise((resolve) => setTimeout(resolve, 5));
      exchange.write('{"role":"assistant","content":null}}]}');
      exchange.end();
      await seen.end;
      expect(seen.ended).to.equal('complete');
      expect(seen.values).to.have.length(1);
    });

    it('fails with what a body with a good status really is', async () => {
      const bodies = [
        [{ error: { message: 'Overloaded', type: 'overloaded_error' } }, 'overloaded'],
        [{ choices: [{ index: 0, message: {}, finish_reason: 'error' }] }, 'server_error'],
        [{}, 'upstream_body_invalid'],
        ['just text', 'upstream_body_invalid'],
        [[], 'upstream_body_invalid'],
      ] as const;
      for (const [body, code] of bodies) {
        const seen = record(complete(client, request));
        (await server.next()).json(200, body);
        await seen.end;
        expect(seen.error.code, JSON.stringify(body)).to.equal(code);
        expect(seen.error.partial).to.equal(undefined);
      }
    });

    it('fails where the body is HTML, cut or not there', async () => {
      const html = record(complete(client, request));
      const page = await server.next();
      page.head(200, { 'content-type': 'text/html' });
      page.write('<!DOCTYPE html><title>502</title>');
      page.end();
      await html.end;
      expect(html.error).to.include({ code: 'upstream_body_invalid', contentType: 'text/html' });

      const cut = record(complete(client, request));
      const half = await server.next();
      half.head(200, { 'content-type': 'application/json' });
      half.write('{"choices":[');
      setTimeout(() => half.cut(), 5);
      await cut.end;
      expect(cut.error.code).to.equal('connection');

      const empty = record(complete(client, request));
      const nothing = await server.next();
      nothing.head(200, { 'content-type': 'application/json' });
      nothing.end();
      await empty.end;
      expect(empty.error.code).to.equal('upstream_body_invalid');
    });

    it('has one limit, from dispatch to the whole answer', async () => {
      const seen = record(complete(client, request, { timeouts: { responseMs: 50, headersMs: 5, firstContentMs: 5 } }));
      const exchange = await server.next();
      exchange.head(200, { 'content-type': 'application/json' });
      exchange.write('{');
      await seen.end;
      expect(seen.error).to.include({ code: 'timeout', while: 'response', limit: 50 });
      expect((await exchange.closed).aborted).to.equal(true);
    });

    it('aborts the request when it is unsubscribed from', async () => {
      const seen = record(complete(client, request));
      const exchange = await server.next();
      seen.unsubscribe();
      expect((await exchange.closed).aborted).to.equal(true);
    });

    it('refuses `stream: true`', () => {
      const seen = record(complete(client, { ...request, stream: true }));
      expect(seen.error).to.include({ code: 'invalid_request' });
      expect(seen.error.message).to.include('stream');
    });
  });
});
