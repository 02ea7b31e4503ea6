import { expect } from 'chai';
import OpenAI, { APIConnectionError, APIConnectionTimeoutError, APIError, APIUserAbortError } from 'openai';
import type { ErrorCode } from '../../lib/core/errors.ts';
import { SluiceError } from '../../lib/core/errors.ts';
import { answerBehind, causeOf, classifyThrown } from '../../lib/wire/classify.ts';

const HEADERS = { phase: 'headers' } as const;
const BODY = { phase: 'body', status: 200, requestId: 'req_1', model: 'm1' } as const;

function coded(message: string, code: string, cause?: unknown): Error {
  return Object.assign(new Error(message, { cause }), { code });
}

const socketCut = (): Error => new TypeError('terminated', { cause: coded('other side closed', 'UND_ERR_SOCKET') });
class RateLimitError extends Error {}

describe('answerBehind', () => {
  it('finds the status and the headers that an error, or a cause of it, was made from', () => {
    const headers = new Headers({ 'retry-after': '3' });
    const made = APIError.generate(503, { error: { message: 'x' } }, undefined, headers);
    for (const thrown of [made, new Error('wrapped', { cause: made })]) {
      const answer = answerBehind(thrown);
      expect(answer?.status).to.equal(503);
      expect(answer?.headers.get('retry-after')).to.equal('3');
    }
  });

  it('finds nothing where nothing was answered', () => {
    expect(answerBehind(socketCut())).to.equal(undefined);
    expect(answerBehind('no error')).to.equal(undefined);
  });
});

describe('classifyThrown', () => {
  it('passes a SluiceError through as it is', () => {
    const error = new SluiceError('circuit_open', 'open');
    expect(classifyThrown(error, HEADERS)).to.equal(error);
  });

  it("classifies an SDK's error like the answer that it was made from", () => {
    const headers = new Headers({ 'retry-after': '3', 'x-request-id': 'req_9' });
    const inner = { message: 'Rate limit reached', type: 'requests', code: 'rate_limit_exceeded' };
    const error = classifyThrown(APIError.generate(429, { error: inner }, undefined, headers), {
      ...HEADERS,
      model: 'm1',
    });
    expect(error).to.include({
      code: 'rate_limited',
      status: 429,
      retryAfterMs: 3_000,
      requestId: 'req_9',
      model: 'm1',
    });
    expect(error.cause).to.include({ name: 'RateLimitError', code: 'rate_limit_exceeded' });
  });

  it('does so for a body that was no JSON, and for one that was absent', () => {
    const html = APIError.generate(502, undefined, '<html>Bad gateway</html>', new Headers());
    expect(classifyThrown(html, HEADERS)).to.include({ code: 'server_error', status: 502 });
    expect(classifyThrown(APIError.generate(503, undefined, undefined, new Headers()), HEADERS)).to.include({
      status: 503,
    });
  });

  it('reads the status and headers where other SDKs keep them', () => {
    const shapes: readonly unknown[] = [
      { statusCode: 429, responseHeaders: { 'Retry-After': '2' }, responseBody: '{"error":{"message":"x"}}' },
      { response: { status: 429, headers: { 'retry-after': ['2'] }, data: { error: { message: 'x' } } } },
      { $metadata: { httpStatusCode: 429 }, name: 'ThrottlingException', headers: new Map([['retry-after', '2']]) },
    ];
    for (const shape of shapes) {
      expect(classifyThrown(shape, HEADERS)).to.include({ code: 'rate_limited', retryAfterMs: 2_000, status: 429 });
    }
    expect(classifyThrown({ name: 'AuthenticationError', status: 401 }, HEADERS)).to.include({
      code: 'auth',
      status: 401,
    });
  });

  it("knows an error inside a stream by the SDK's error without a status", () => {
    const error = new APIError(
      undefined,
      { type: 'overloaded_error', message: 'Overloaded' },
      undefined,
      new Headers(),
    );
    expect(classifyThrown(error, BODY)).to.include({ code: 'overloaded', requestId: 'req_1', status: undefined });
  });

  it("tells the caller's cancel from everything else", () => {
    const aborts = [
      new APIUserAbortError(),
      new DOMException('x', 'AbortError'),
      coded('x', 'ABORT_ERR'),
      Object.assign(new Error('x'), { name: 'AbortError' }),
    ];
    for (const abort of aborts) expect(classifyThrown(abort, BODY)).to.include({ code: 'aborted', retryable: false });
  });

  it("finds them behind the SDK's own error about a fetch that threw", () => {
    const headers = { 'retry-after': '7' };
    const thrown: readonly unknown[] = [
      Object.assign(new Error('denied'), { name: 'AuthenticationError', status: 401 }),
      Object.assign(new Error('denied'), { response: { status: 401, headers } }),
      new Error('proxy', { cause: new Error('deeper', { cause: { statusCode: 401 } }) }),
      // As the SDK turns an object that is no Error into one.
      new Error(JSON.stringify({ name: 'AuthenticationError', status: 401 })),
    ];
    for (const cause of thrown) {
      const error = classifyThrown(new APIConnectionError({ cause: cause as Error }), HEADERS);
      expect(error).to.include({ code: 'auth', status: 401, retryable: false });
    }
    const limited = Object.assign(new Error('slow'), { status: 429, headers });
    expect(classifyThrown(new APIConnectionError({ cause: limited }), HEADERS)).to.include({
      code: 'rate_limited',
      retryAfterMs: 7_000,
    });
  });

  it('knows a class or code behind it that says more than that the connection failed', () => {
    const behind = (cause: Error): ErrorCode =>
      classifyThrown(new APIConnectionError({ cause, message: 'Connection error.' }), HEADERS).code;
    expect(behind(new RateLimitError('slow down'))).to.equal('rate_limited');
    expect(behind(coded('no money', 'insufficient_quota'))).to.equal('quota_exhausted');
    expect(behind(coded('reset', 'ECONNRESET'))).to.equal('connection');
    expect(behind(new Error('who knows'))).to.equal('connection');
  });

  it("knows a mistake in a program behind it: the caller's own fetch went wrong", () => {
    for (const cause of [new RangeError('Invalid array length'), new ReferenceError('x is not defined')]) {
      const error = classifyThrown(new APIConnectionError({ cause }), HEADERS);
      expect(error).to.include({ code: 'invalid_request', source: 'local', retryable: false });
    }
    const failed = new TypeError('error sending request', { cause: coded('refused', 'ECONNREFUSED') });
    expect(classifyThrown(new APIConnectionError({ cause: failed }), HEADERS).code).to.equal('connection');
    const unclear = new TypeError('error sending request for url');
    expect(classifyThrown(new APIConnectionError({ cause: unclear }), HEADERS).code).to.equal('connection');
  });

  it('passes through a SluiceError that an SDK has wrapped: a refusal of ours is no failed connection', () => {
    const refusal = new SluiceError('circuit_open', 'open');
    expect(classifyThrown(new APIConnectionError({ cause: refusal }), HEADERS)).to.equal(refusal);
  });

  it('takes what is no HTTP for a failed connection', () => {
    const unnamed = Object.assign(new Error('Response does not match the HTTP/1.1 protocol'), {
      name: 'HTTPParserError',
    });
    for (const thrown of [
      unnamed,
      coded('Invalid character in chunk size', 'HPE_INVALID_CHUNK_SIZE'),
      coded('Headers Overflow Error', 'UND_ERR_HEADERS_OVERFLOW'),
    ]) {
      expect(classifyThrown(thrown, HEADERS).code).to.equal('connection');
    }
  });

  it('tells timeouts by where they struck', () => {
    const rows: readonly (readonly [unknown, ErrorCode])[] = [
      [new APIConnectionTimeoutError(), 'timeout'],
      [new DOMException('x', 'TimeoutError'), 'timeout'],
      [new TypeError('fetch failed', { cause: coded('Headers Timeout Error', 'UND_ERR_HEADERS_TIMEOUT') }), 'timeout'],
      [new TypeError('terminated', { cause: coded('Body Timeout Error', 'UND_ERR_BODY_TIMEOUT') }), 'stream_idle'],
      [
        new TypeError('fetch failed', { cause: coded('Connect Timeout Error', 'UND_ERR_CONNECT_TIMEOUT') }),
        'connection',
      ],
      [coded('connect ETIMEDOUT 1.2.3.4:443', 'ETIMEDOUT'), 'connection'],
    ];
    for (const [thrown, code] of rows) expect(classifyThrown(thrown, BODY), code).to.include({ code, retryable: true });
  });

  it('knows a connection that failed, however deep the reason lies', () => {
    const cut = new APIConnectionError({ message: 'Connection error.', cause: socketCut() });
    const both = new AggregateError([coded('connect ECONNREFUSED ::1:1', 'ECONNREFUSED'), coded('x', 'ECONNREFUSED')]);
    for (const thrown of [
      socketCut(),
      cut,
      new TypeError('fetch failed', { cause: both }),
      new TypeError('fetch failed'),
      new TypeError('Failed to fetch'),
      coded('read ECONNRESET', 'ECONNRESET'),
      coded('Premature close', 'ERR_STREAM_PREMATURE_CLOSE'),
      new Error('socket hang up'),
      coded('getaddrinfo EAI_AGAIN api.example.com', 'EAI_AGAIN'),
      new APIConnectionError({ message: 'x' }),
    ]) {
      const error = classifyThrown(thrown, BODY);
      expect(error, String(thrown)).to.include({ code: 'connection', retryable: true, requestId: 'req_1' });
    }
  });

  it('does not retry a certificate that was refused', () => {
    const thrown = new TypeError('fetch failed', { cause: coded('x', 'CERT_HAS_EXPIRED') });
    expect(classifyThrown(thrown, HEADERS)).to.include({ code: 'connection', retryable: false });
  });

  it('takes broken JSON for a broken body', () => {
    const thrown = new SyntaxError('Unexpected token < in JSON at position 0');
    expect(classifyThrown(thrown, BODY)).to.include({ code: 'upstream_body_invalid', retryable: true });
  });

  it('knows errors without a status by their class or code', () => {
    expect(classifyThrown(new RateLimitError('x'), HEADERS)).to.include({ code: 'rate_limited', retryable: true });
    expect(classifyThrown(coded('x', 'insufficient_quota'), HEADERS)).to.include({ code: 'quota_exhausted' });
  });

  it('never calls a mistake in a program retryable, nor an upstream failure', () => {
    for (const thrown of [
      new TypeError("Cannot read properties of undefined (reading 'x')"),
      new RangeError('x'),
      new SyntaxError('mine'),
      new Error('boom'),
      'text',
      5,
      null,
      undefined,
      {},
      () => {},
      Symbol('x'),
    ]) {
      expect(classifyThrown(thrown, BODY), typeof thrown).to.include({
        code: 'invalid_request',
        source: 'local',
        retryable: false,
      });
    }
  });

  it('survives objects that throw when they are read', () => {
    const hostile = new Proxy(new Error('x'), {
      get() {
        throw new Error('mine');
      },
    });
    const loop: { cause?: unknown } = {};
    loop.cause = loop;
    expect(classifyThrown(hostile, BODY).retryable).to.equal(false);
    expect(classifyThrown(loop, BODY).retryable).to.equal(false);
    expect(causeOf(hostile).name).to.be.a('string');
  });

  it('keeps a redacted copy of what was thrown and not the thing itself', () => {
    const thrown = Object.assign(new Error('Bearer sk-TEST-0000 was refused by the server'), {
      request: { headers: { authorization: 'sk-TEST-0000' } },
    });
    const error = classifyThrown(thrown, HEADERS);
    expect(error.cause).to.deep.equal({ name: 'Error', code: undefined, message: '… was refused by the server' });
    expect(JSON.stringify(error)).to.not.include('sk-TEST');
  });

  it('is of use without the SDK: nothing is told by instanceof', () => {
    const foreign = { constructor: { name: 'APIUserAbortError' }, message: 'Request was aborted.' };
    expect(classifyThrown(foreign, HEADERS)).to.include({ code: 'aborted' });
    expect(OpenAI).to.be.a('function');
  });

  it('says in its message what happened, and keeps where', () => {
    const messages: readonly (readonly [unknown, string])[] = [
      [new APIUserAbortError(), 'the call was aborted'],
      [coded('x', 'UND_ERR_BODY_TIMEOUT'), 'the body stopped coming'],
      [coded('x', 'UND_ERR_HEADERS_TIMEOUT'), 'the request timed out'],
      [coded('x', 'CERT_HAS_EXPIRED'), "the server's certificate was refused: CERT_HAS_EXPIRED"],
      [coded('x', 'ECONNRESET'), 'the connection failed: ECONNRESET'],
      [Object.assign(new Error('x'), { name: 'HTTPParserError' }), 'the connection failed: no HTTP came'],
      [new TypeError('fetch failed'), 'the connection failed'],
      [new SyntaxError('bad JSON'), 'the answer could not be parsed'],
      [new Error('x', { cause: new RangeError('y') }), 'the call failed by itself: RangeError'],
      [new TypeError('x'), 'the call failed by itself: TypeError'],
    ];
    for (const [thrown, message] of messages) {
      const error = classifyThrown(thrown, BODY);
      const status = /aborted|by itself/.test(message) ? undefined : 200;
      expect(error, message).to.include({ message, status, requestId: 'req_1', model: 'm1' });
    }
  });

  it('takes a status of 300 to 599 for that of an answer, and no other', () => {
    for (const status of [300, 599]) expect(classifyThrown({ status }, HEADERS).status).to.equal(status);
    for (const status of [200, 299, 600, 400.5, '429', null]) {
      expect(classifyThrown({ status }, HEADERS), String(status)).to.include({ code: 'invalid_request' });
    }
    expect(classifyThrown({ status: 0, statusCode: 429 }, HEADERS).status).to.equal(429);
  });

  it('reads the body of the answer where an error keeps it, the nearest first', () => {
    const body = { error: { code: 'context_length_exceeded', message: 'x' } };
    const other = { error: { code: 'content_filter', message: 'x' } };
    const shapes: readonly object[] = [
      { error: body.error, body: other },
      { error: null, body },
      { response: { data: body }, responseBody: other, body: other },
      { responseBody: JSON.stringify(body), body: other },
      { body },
      { code: 'context_length_exceeded' },
      { type: 'context_length_exceeded', name: 'RateLimitError' },
      { message: 'maximum context length is 10 tokens' },
    ];
    for (const shape of shapes) {
      expect(classifyThrown({ status: 400, ...shape }, HEADERS).code, JSON.stringify(shape)).to.equal(
        'context_too_long',
      );
    }
  });

  it('takes the id of the request from the error, then its headers, then the stream', () => {
    const idOf = (thrown: object): string | undefined => classifyThrown({ status: 500, ...thrown }, BODY).requestId;
    const headers = { 'x-request-id': 'h' };
    for (const key of ['requestID', 'request_id', 'requestId']) expect(idOf({ [key]: 'own', headers })).to.equal('own');
    expect(idOf({ requestID: 'a', request_id: 'b', requestId: 'c' })).to.equal('a');
    expect(idOf({ request_id: 'b', requestId: 'c' })).to.equal('b');
    expect([idOf({ headers }), idOf({})]).to.deep.equal(['h', 'req_1']);
  });

  it('measures an instant in the headers from the time that it is told', () => {
    const thrown = { status: 429, headers: { 'retry-after': 'Thu, 01 Jan 1970 00:00:09 GMT' } };
    expect(classifyThrown(thrown, { ...HEADERS, wallNowMs: 2_000 }).retryAfterMs).to.equal(7_000);
    expect(classifyThrown(thrown, HEADERS).retryAfterMs).to.equal(undefined);
  });

  it('looks twelve errors deep, and at four of those that were collected', () => {
    const behind = (depth: number): unknown =>
      Array.from({ length: depth }).reduce((cause) => new Error('x', { cause }), { status: 429 });
    expect(classifyThrown(behind(11), HEADERS).code).to.equal('rate_limited');
    expect(classifyThrown(behind(12), HEADERS).code).to.equal('invalid_request');
    const collected = (at: number): unknown => ({
      errors: [...Array.from({ length: at }, () => ({})), { status: 429 }],
    });
    expect(classifyThrown(collected(3), HEADERS).code).to.equal('rate_limited');
    expect(classifyThrown(collected(4), HEADERS).code).to.equal('invalid_request');
    for (const cause of ['text', 5, null]) expect(classifyThrown({ cause }, HEADERS).code).to.equal('invalid_request');
  });

  it('knows a failed connection by its words where the class may say so, and by a code', () => {
    const codeOf = (name: string, message: string): ErrorCode =>
      classifyThrown(Object.assign(new Error(message), { name }), HEADERS).code;
    for (const name of ['Error', 'TypeError', 'SocketError', 'FetchError', 'NetworkError']) {
      expect(codeOf(name, 'socket hang up'), name).to.equal('connection');
      expect(codeOf(name, 'who knows'), name).to.equal('invalid_request');
    }
    expect(codeOf('OwnError', 'socket hang up')).to.equal('invalid_request');
    expect(classifyThrown({ name: 'OwnError', code: 'connection_error' }, HEADERS).code).to.equal('connection');
  });

  it('knows a mistake in a program by every class of one', () => {
    for (const name of ['RangeError', 'ReferenceError', 'EvalError', 'URIError']) {
      const cause = Object.assign(new Error('x'), { name });
      expect(classifyThrown(new APIConnectionError({ cause }), HEADERS).code, name).to.equal('invalid_request');
    }
  });

  it('keeps the cause, the type and the message of an error inside a stream', () => {
    const inner = classifyThrown({ name: 'OwnError', error: { code: 'overloaded_error', message: 'limit' } }, BODY);
    expect(inner).to.include({ code: 'overloaded', message: 'error in the answer overloaded_error: limit' });
    expect(inner.cause?.name).to.equal('OwnError');
    const flat = classifyThrown(
      { name: 'OwnError', code: 'rate_limit_exceeded', type: 'tokens', message: 'limit' },
      BODY,
    );
    expect(flat).to.include({ code: 'rate_limited', providerCode: 'rate_limit_exceeded', providerType: 'tokens' });
    expect(flat.message).to.equal('error in the answer rate_limit_exceeded: limit');
    expect(flat.cause?.name).to.equal('OwnError');
    expect(classifyThrown({ type: 'overloaded_error', error: null }, BODY).code).to.equal('overloaded');
  });
});
