import { expect } from 'chai';
import type { OpenAI } from 'openai';
import { respond } from '../../lib/sources/respond.ts';
import { forEachOpenAI } from '../helpers/openaiVersions.ts';
import { rawServer } from '../helpers/rawServer.ts';
import type { RawExchange, RawServer } from '../helpers/rawServer.ts';
import { record } from '../helpers/record.ts';

const request = { model: 'm1', input: 'hi' };
const response = (status: string, more: object = {}): object => ({
  id: 'r1',
  object: 'response',
  status,
  model: 'm1-2026',
  ...more,
});
const created = { type: 'response.created', sequence_number: 0, response: response('in_progress') };
const progress = { type: 'response.in_progress', sequence_number: 1, response: response('in_progress') };
const delta = (text: string): object => ({
  type: 'response.output_text.delta',
  item_id: 'i',
  output_index: 0,
  content_index: 0,
  delta: text,
});
const usage = { input_tokens: 3, output_tokens: 2, total_tokens: 5 };
const completed = { type: 'response.completed', response: response('completed', { usage }) };

describe('respond', () => {
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
    const headed = async (): Promise<RawExchange> => {
      const exchange = await server.next();
      exchange.head();
      return exchange;
    };

    it('holds back until the first content and completes with the terminal event, whatever the connection does', async () => {
      const seen = record(respond(client, request));
      const exchange = await headed();
      expect(exchange.path).to.equal('/v1/responses');
      expect(exchange.body).to.deep.equal({ ...request, stream: true });
      exchange.events(created, progress);
      await new Promise((resolve) => setTimeout(resolve, 10));
      expect(seen.values).to.deep.equal([]);
      exchange.events(delta('Hel'), delta('lo'), completed);
      await seen.end;
      expect(seen.ended).to.equal('complete');
      expect(seen.values).to.deep.equal([created, progress, delta('Hel'), delta('lo'), completed]);
      expect((await exchange.closed).aborted).to.equal(true);
    });

    it('uses a connection again that ends after the terminal event', async () => {
      for (let at = 0; at < 3; at++) {
        const seen = record(respond(client, request));
        const exchange = await headed();
        exchange.events(delta('a'), completed);
        exchange.end();
        await seen.end;
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
      expect(server.connections).to.equal(1);
    });

    it('completes with an answer that was cut by a limit', async () => {
      const incomplete = {
        type: 'response.incomplete',
        response: response('incomplete', { incomplete_details: { reason: 'max_output_tokens' } }),
      };
      const seen = record(respond(client, request));
      (await headed()).events(delta('a'), incomplete);
      await seen.end;
      expect(seen.ended).to.equal('complete');
      expect(seen.values.at(-1)).to.deep.equal(incomplete);
    });

    it('fails with what the stream reports, flat or nested, first or later', async () => {
      const faults = [
        [{ type: 'error', code: 'insufficient_quota', message: 'No money', param: null }, 'quota_exhausted'],
        [{ type: 'error', error: { type: 'server_error', code: 'server_error', message: 'x' } }, 'server_error'],
        [
          {
            type: 'response.failed',
            response: response('failed', { error: { code: 'rate_limit_exceeded', message: 'x' } }),
          },
          'rate_limited',
        ],
      ] as const;
      for (const [fault, code] of faults) {
        const first = record(respond(client, request));
        (await headed()).events(created, fault);
        await first.end;
        expect(first.error.code).to.equal(code);
        expect(first.values).to.deep.equal([]);

        const later = record(respond(client, request));
        (await headed()).events(created, delta('Hel'), fault);
        await later.end;
        expect(later.error.code).to.equal(code);
        expect(later.error.partial?.text).to.equal('Hel');
      }
    });

    it('takes an end without a terminal event for a truncation', async () => {
      const seen = record(respond(client, request));
      const exchange = await headed();
      exchange.events(created, delta('Hel'));
      exchange.end();
      await seen.end;
      expect(seen.error.code).to.equal('stream_truncated');
    });

    it('takes a whole answer to a streamed request for what it is', async () => {
      const seen = record(respond(client, request));
      (await server.next()).json(200, response('completed', { output: [] }));
      await seen.end;
      expect(seen.error).to.include({ code: 'upstream_body_invalid', status: 200 });
    });

    it('lets events of a running tool count as progress', async () => {
      const seen = record(respond(client, request, { timeouts: { idleMs: 200 } }));
      const exchange = await headed();
      exchange.events(delta('a'));
      for (let at = 0; at < 5; at++) {
        await new Promise((resolve) => setTimeout(resolve, 60));
        exchange.events({ type: 'response.web_search_call.searching', item_id: 'i', output_index: 0 });
      }
      expect(seen.ended).to.equal(undefined);
      const pings = setInterval(() => exchange.events({ type: 'keepalive' }), 10);
      await seen.end;
      clearInterval(pings);
      expect(seen.error.code).to.equal('stream_idle');
    });

    it('closes the connection within 50 ms of an unsubscribe', async function () {
      this.retries(3);
      const seen = record(respond(client, request));
      const exchange = await headed();
      exchange.events(delta('a'));
      await new Promise((resolve) => setTimeout(resolve, 10));
      const leftMs = performance.now();
      seen.unsubscribe();
      expect((await exchange.closed).atMs - leftMs).to.be.below(50);
    });
  });

  it('refuses a wrong request before anything is sent', () => {
    const client = { chat: { completions: { create: () => {} } } } as never;
    for (const wrong of [
      { model: '', input: 'x' },
      { model: 'm', input: [] },
      { model: 'm', input: 'x', stream: false },
    ]) {
      expect(record(respond(client, wrong)).error.code).to.equal('invalid_request');
    }
  });
});
