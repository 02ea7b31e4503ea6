import { expect } from 'chai';
import OpenAI, { APIConnectionError, APIConnectionTimeoutError, APIError, APIUserAbortError } from 'openai';
import type { ErrorCode } from '../../lib/core/errors.ts';
import { SluiceError } from '../../lib/core/errors.ts';
import { answerBehind, causeOf, classifyThrown } from '../../lib/wire/classify.ts';

const UNANSWERED = {} as const;
const ANSWERED = { status: 200, requestId: 'req_1', model: 'm1' } as const;

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
    expect(classifyThrown(error, UNANSWERED)).to.equal(error);
  });

  it("classifies an SDK's error like the answer that it was made from", () => {
    const headers = new Headers({ 'retry-after': '3', 'x-request-id': 'req_9' });
    const inner = { message: 'Rate limit reached', type: 'requests', code: 'rate_limit_exceeded' };
    const error = classifyThrown(APIError.generate(429, { error: inner }, undefined, headers), {
      ...UNANSWERED,
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
    expect(classifyThrown(html, UNANSWERED)).to.include({ code: 'server_error', status: 502 });
    expect(classifyThrown(APIError.generate(503, undefined, undefined, new Headers()), UNANSWERED)).to.include({
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
      expect(classifyThrown(shape, UNANSWERED)).to.include({ code: 'rate_limited', retryAfterMs: 2_000, status: 429 });
    }
    expect(classifyThrown({ name: 'AuthenticationError', status: 401 }, UNANSWERED)).to.include({
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
    expect(classifyThrown(error, ANSWERED)).to.include({ code: 'overloaded', requestId: 'req_1', status: undefined });
  });

  it("tells the caller's cancel from everything else", () => {
    const aborts = [
      new APIUserAbortError(),
      new DOMException('x', 'AbortError'),
      coded('x', 'ABORT_ERR'),
      Object.assign(new Error('x'), { name: 'AbortError' }),
    ];
    for (const abort of aborts)
      expect(classifyThrown(abort, ANSWERED)).to.include({ code: 'aborted', retryable: false });
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
      const error = classifyThrown(new APIConnectionError({ cause: cause as Error }), UNANSWERED);
      expect(error).to.include({ code: 'auth', status: 401, retryable: false });
    }
    const limited = Object.assign(new Error('slow'), { status: 429, headers });
    expect(classifyThrown(new APIConnectionError({ cause: limited }), UNANSWERED)).to.include({
      code: 'rate_limited',
      retryAfterMs: 7_000,
    });
  });

  it('knows a class or code behind it that says more than that the connection failed', () => {
    const behind = (cause: Error): ErrorCode =>
      classifyThrown(new APIConnectionError({ cause, message: 'Connection error.' }), UNANSWERED).code;
    expect(behind(new RateLimitError('slow down'))).to.equal('rate_limited');
    expect(behind(coded('no money', 'insufficient_quota'))).to.equal('quota_exhausted');
    expect(behind(coded('reset', 'ECONNRESET'))).to.equal('connection');
    expect(behind(new Error('who knows'))).to.equal('connection');
  });

  it("knows a mistake in a program behind it: the caller's own fetch went wrong", () => {
    for (const cause of [new RangeError('Invalid array length'), new ReferenceError('x is not defined')]) {
      const error = classifyThrown(new APIConnectionError({ cause }), UNANSWERED);
      expect(error).to.include({ code: 'invalid_request', source: 'local', retryable: false });
    }
    const failed = new TypeError('error sending request', { cause: coded('refused', 'ECONNREFUSED') });
    expect(classifyThrown(new APIConnectionError({ cause: failed }), UNANSWERED).code).to.equal('connection');
    const unclear = new TypeError('error sending request for url');
    expect(classifyThrown(new APIConnectionError({ cause: unclear }), UNANSWERED).code).to.equal('connection');
  });

  it('passes through a SluiceError that an SDK has wrapped: a refusal of ours is no failed connection', () => {
    const refusal = new SluiceError('circuit_open', 'open');
    expect(classifyThrown(new APIConnectionError({ cause: refusal }), UNANSWERED)).to.equal(refusal);
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
      expect(classifyThrown(thrown, UNANSWERED).code).to.equal('connection');
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
    for (const [thrown, code] of rows)
      expect(classifyThrown(thrown, ANSWERED), code).to.include({ code, retryable: true });
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
      const error = classifyThrown(thrown, ANSWERED);
      expect(error, String(thrown)).to.include({ code: 'connection', retryable: true, requestId: 'req_1' });
    }
  });

  it('does not retry a certificate that was refused', () => {
    const thrown = new TypeError('fetch failed', { cause: coded('x', 'CERT_HAS_EXPIRED') });
    expect(classifyThrown(thrown, UNANSWERED)).to.include({ code: 'connection', retryable: false });
  });

  it('takes broken JSON for a broken body', () => {
    const thrown = new SyntaxError('Unexpected token < in JSON at position 0');
    expect(classifyThrown(thrown, ANSWERED)).to.include({ code: 'upstream_body_invalid', retryable: true });
  });

  it('knows errors without a status by their class or code', () => {
    expect(classifyThrown(new RateLimitError('x'), UNANSWERED)).to.include({ code: 'rate_limited', retryable: true });
    expect(classifyThrown(coded('x', 'insufficient_quota'), UNANSWERED)).to.include({ code: 'quota_exhausted' });
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
      expect(classifyThrown(thrown, ANSWERED), typeof thrown).to.include({
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
    expect(classifyThrown(hostile, ANSWERED).retryable).to.equal(false);
    expect(classifyThrown(loop, ANSWERED).retryable).to.equal(false);
    expect(causeOf(hostile).name).to.be.a('string');
  });

  it('keeps a redacted copy of what was thrown and not the thing itself', () => {
    const thrown = Object.assign(new Error('Bearer sk-TEST-0000 was refused by the server'), {
      request: { headers: { authorization: 'sk-TEST-0000' } },
    });
    const error = classifyThrown(thrown, UNANSWERED);
    expect(error.cause).to.deep.equal({ name: 'Error', code: undefined, message: '… was refused by the server' });
    expect(JSON.stringify(error)).to.not.include('sk-TEST');
  });

  it('is of use without the SDK: nothing is told by instanceof', () => {
    const foreign = { constructor: { name: 'APIUserAbortError' }, message: 'Request was aborted.' };
    expect(classifyThrown(foreign, UNANSWERED)).to.include({ code: 'aborted' });
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
      const error = classifyThrown(thrown, ANSWERED);
      const status = /aborted|by itself/.test(message) ? undefined : 200;
      expect(error, message).to.include({ message, status, requestId: 'req_1', model: 'm1' });
    }
  });
});
