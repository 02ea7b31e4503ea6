import { expect } from 'chai';
import type { ErrorCode } from '../../lib/core/errors.ts';
import { classifyResponse } from '../../lib/wire/classify.ts';
import { headerReader } from '../../lib/wire/headers.ts';
import { classified, failure } from '../helpers/classified.ts';

describe('classifyResponse', () => {
  it('tells by the status when there is no body', () => {
    const expected: Readonly<Record<number, ErrorCode>> = {
      302: 'bad_request',
      400: 'bad_request',
      401: 'auth',
      402: 'quota_exhausted',
      403: 'auth',
      404: 'not_found',
      405: 'not_found',
      407: 'auth',
      408: 'timeout',
      409: 'conflict',
      410: 'not_found',
      413: 'request_too_large',
      415: 'bad_request',
      422: 'bad_request',
      425: 'overloaded',
      429: 'rate_limited',
      451: 'content_filtered',
      498: 'overloaded',
      500: 'server_error',
      501: 'server_error',
      502: 'server_error',
      503: 'server_error',
      504: 'server_error',
      520: 'server_error',
      522: 'server_error',
      524: 'server_error',
      529: 'overloaded',
      599: 'server_error',
    };
    const codes = Object.fromEntries(Object.keys(expected).map((status) => [status, classified(Number(status)).code]));
    expect(codes).to.deep.equal(expected);
    for (const status of [408, 409, 425, 429, 500, 502, 503, 504, 520, 522, 524, 529]) {
      expect(classified(status).retryable, String(status)).to.equal(true);
    }
  });

  it('takes a 503 that says when to come back for an overload', () => {
    expect(classified(503, undefined, { 'retry-after': '5' })).to.include({ code: 'overloaded', retryAfterMs: 5_000 });
  });

  it('obeys x-should-retry over everything else, and keeps the code', () => {
    expect(classified(503, undefined, { 'x-should-retry': 'false' })).to.include({
      code: 'server_error',
      retryable: false,
    });
    expect(classified(400, undefined, { 'x-should-retry': 'true' })).to.include({
      code: 'bad_request',
      retryable: true,
    });
  });

  it('names the sizes of what was too large', () => {
    expect(
      classified(429, failure('Request too large: Limit 30,000, Requested 60,000.', 'tokens', 'rate_limit_exceeded')),
    ).to.include({ limit: 30_000, requested: 60_000 });
    const context = [
      'prompt is too long: 210000 tokens > 200000 maximum',
      'The input token count (210000) exceeds the maximum number of tokens allowed (200000).',
      "This model's maximum context length is 200000 tokens. However, you requested 210000 tokens (200000 in the messages, 10000 in the completion).",
    ];
    for (const message of context) {
      expect(classified(400, failure(message, 'invalid_request_error')), message).to.include({
        code: 'context_too_long',
        limit: 200_000,
        requested: 210_000,
      });
    }
  });

  it('carries the hint of a failure that is not to be retried', () => {
    const error = classified(429, {
      error: { type: 'usage_limit_reached', message: 'limit reached', resets_in_seconds: 7_139 },
    });
    expect(error).to.include({ code: 'quota_exhausted', retryAfterMs: 7_139_000 });
  });

  it("keeps the provider's own names, and its request id where no header had one", () => {
    const body = { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' }, request_id: 'req_011' };
    const error = classifyResponse({ status: 529, headers: headerReader({}), body, wallNowMs: 0 });
    expect(error).to.include({
      providerType: 'overloaded_error',
      requestId: 'req_011',
      message: '529 overloaded_error: Overloaded',
    });
    expect(classified(400, failure('x', 'invalid_request_error', 'unknown_parameter'))).to.include({
      providerCode: 'unknown_parameter',
      providerType: 'invalid_request_error',
    });
  });

  describe('pages', () => {
    const page =
      '<!DOCTYPE html><html><head><title>502: Bad gateway</title><style>a{}</style></head><body>cloud&nbsp;edge <script>x("rate limit")</script></body></html>';
    const html = { 'content-type': 'text/html; charset=UTF-8' };

    it('are told by their status, and shown without markup', () => {
      const error = classified(502, page, html);
      expect(error).to.include({ code: 'server_error', retryable: true, status: 502, contentType: 'text/html' });
      expect(error.message).to.equal('502 text/html: 502: Bad gateway cloud edge');
    });

    it('are not told by their words, which may be about anything', () => {
      expect(classified(500, '<html>We are overloaded</html>', html).code).to.equal('server_error');
      expect(classified(400, '<html>invalid api key</html>').code).to.equal('bad_request');
    });

    it('are known by how they begin as well', () => {
      expect(classified(502, page).message).to.include('Bad gateway');
      expect(classified(524, '<html>timeout</html>', html)).to.include({ code: 'server_error', retryable: true });
    });

    it('are none where they are JSON, whatever they are called', () => {
      const json = JSON.stringify(failure('x', 'tokens', 'rate_limit_exceeded'));
      for (const status of [200, 429, 500]) {
        const error = classified(status, json, html);
        expect(error, `${status}`).to.include({ code: 'rate_limited', contentType: undefined });
      }
      expect(classified(200, '{"choices":[]}', html)).to.include({ code: 'upstream_body_invalid' });
    });

    it('in a 200 are no answer', () => {
      const error = classified(200, page, html);
      expect(error).to.include({ code: 'upstream_body_invalid', status: 200, contentType: 'text/html' });
      expect(classified(200, `<html>${'rate '.repeat(1_000)}</html>`, html).message.length).to.be.below(240);
    });
  });

  it('tells an error in the body of a 200 by the body, and does not call it a 200', () => {
    expect(classified(200, { error: { code: 502, message: 'Worker limit reached (33/32)' } })).to.include({
      code: 'overloaded',
      status: 502,
    });
    expect(classified(200, { error: { type: 'overloaded_error', message: 'Overloaded' } })).to.include({
      code: 'overloaded',
      status: undefined,
    });
    expect(classified(200, 'garbage')).to.include({ code: 'upstream_body_invalid', status: 200 });
    expect(classified(200, undefined)).to.include({ code: 'upstream_body_invalid', status: 200 });
    expect(classified(200, { foo: 1 })).to.include({ code: 'upstream_body_invalid', status: 200 });
  });

  it('says by what it goes: the status, the first name that is another, and what may be shown of the message', () => {
    const messages: readonly (readonly [string, number, unknown, Record<string, string>?])[] = [
      ['500 no_room: limit', 500, failure('limit', 'server_error', 'no_room')],
      ['500 server_error: limit', 500, failure('limit', 'server_error', '500')],
      ['500: limit', 500, failure('limit', undefined, '500')],
      ['500: limit', 500, failure('limit'), { 'content-type': 'application/json' }],
      ['500 no_room', 500, failure('bobby', 'server_error', 'no_room')],
      ['500 no_room', 500, failure('', 'server_error', 'no_room')],
      ['500 text/plain', 500, undefined, { 'content-type': 'text/plain' }],
      ['answered with status 500', 500, undefined],
      ['answered with status 500', 500, failure('bobby')],
      ['error in the answer: limit', 200, failure('limit')],
      ['error in the answer', 200, failure('bobby')],
      ['502 text/html: Bad gateway', 502, '<p>Bad gateway', { 'content-type': 'text/html' }],
      ['502: Bad gateway', 502, ' \n<!DOCTYPE html>Bad gateway'],
      ['502: see … gateway', 502, 'see <html>Bad gateway'],
      ['502: … gateway', 502, `${' '.repeat(500)}<html>Bad gateway`],
      ['502: Bad gateway', 502, 'Bad gateway', { 'content-type': 'text/plain' }],
    ];
    for (const [message, status, body, headers] of messages) {
      expect(classified(status, body, headers).message, JSON.stringify(body)).to.equal(message);
    }
  });

  it('names the content type of a page, and of what is no answer at all', () => {
    const typeOf = (status: number, body: unknown, type: string): string | undefined =>
      classified(status, body, { 'content-type': type }).contentType;
    expect(typeOf(502, 'x', 'text/html')).to.equal('text/html');
    expect(typeOf(502, '<html>x', 'text/plain')).to.equal('text/plain');
    expect(typeOf(200, 'x', 'text/plain')).to.equal('text/plain');
    expect(typeOf(502, 'x', 'text/plain')).to.equal(undefined);
    expect(typeOf(500, failure('x'), 'application/json')).to.equal(undefined);
  });

  it('takes an answer of status 2xx without an error for a broken one, and of no other status', () => {
    for (const status of [200, 299]) expect(classified(status, {}).code, `${status}`).to.equal('upstream_body_invalid');
    for (const status of [199, 300]) expect(classified(status, {}).code, `${status}`).to.equal('bad_request');
  });

  it('takes nothing but a 503 for an overload because of the time that it names', () => {
    const hint = { 'retry-after': '1' };
    expect([503, 500, 404].map((status) => classified(status, undefined, hint).code)).to.deep.equal([
      'overloaded',
      'server_error',
      'not_found',
    ]);
    expect(classified(503).code).to.equal('server_error');
    expect(classified(503, failure('x', undefined, 'invalid_api_key'), hint).code).to.equal('auth');
  });

  it('keeps the id of the request where it can be one, and no key', () => {
    const idOf = (id: unknown): string | undefined =>
      classifyResponse({
        status: 500,
        headers: headerReader({}),
        body: { error: { message: 'x', request_id: id } },
        wallNowMs: 0,
      }).requestId;
    expect(classifyResponse({ status: 500, headers: headerReader({}), body: undefined, wallNowMs: 0 })).to.include({
      requestId: undefined,
    });
    expect(classified(500, { error: { message: 'x', request_id: 'req_2' } }).requestId).to.equal('req_1');
    for (const id of ['req_1', 'a.b:c/d-e', 'task-1', 'sky_1', 'x'.repeat(128)]) expect(idOf(id), id).to.equal(id);
    for (const id of ['', 'a b', 'req_1\n', ' req_1', 'x'.repeat(129), 'sk-1', 'SK_1', 'Bearer_1', undefined]) {
      expect(idOf(id), id).to.equal(undefined);
    }
  });
});
