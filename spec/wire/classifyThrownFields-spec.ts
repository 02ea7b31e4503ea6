import { expect } from 'chai';
import { APIConnectionError } from 'openai';
import type { ErrorCode } from '../../lib/core/errors.ts';
import { classifyThrown } from '../../lib/wire/classify.ts';

const UNANSWERED = {} as const;
const ANSWERED = { status: 200, requestId: 'req_1', model: 'm1' } as const;

const codeOf = (thrown: unknown): ErrorCode => classifyThrown(thrown, UNANSWERED).code;

describe('classifyThrown, by the fields of what was thrown', () => {
  it('takes a status of 300 to 599 for that of an answer, and no other', () => {
    for (const status of [300, 599]) expect(classifyThrown({ status }, UNANSWERED).status).to.equal(status);
    for (const status of [200, 299, 600, 400.5, '429', null]) {
      expect(classifyThrown({ status }, UNANSWERED), String(status)).to.include({ code: 'invalid_request' });
    }
    expect(classifyThrown({ status: 0, statusCode: 429 }, UNANSWERED).status).to.equal(429);
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
      expect(classifyThrown({ status: 400, ...shape }, UNANSWERED).code, JSON.stringify(shape)).to.equal(
        'context_too_long',
      );
    }
  });

  it('takes the id of the request from the error, then its headers, then the stream', () => {
    const idOf = (thrown: object): string | undefined => classifyThrown({ status: 500, ...thrown }, ANSWERED).requestId;
    const headers = { 'x-request-id': 'h' };
    for (const key of ['requestID', 'request_id', 'requestId']) expect(idOf({ [key]: 'own', headers })).to.equal('own');
    expect(idOf({ requestID: 'a', request_id: 'b', requestId: 'c' })).to.equal('a');
    expect(idOf({ request_id: 'b', requestId: 'c' })).to.equal('b');
    expect([idOf({ headers }), idOf({})]).to.deep.equal(['h', 'req_1']);
  });

  it('measures an instant in the headers from the time that it is told', () => {
    const thrown = { status: 429, headers: { 'retry-after': 'Thu, 01 Jan 1970 00:00:09 GMT' } };
    expect(classifyThrown(thrown, { ...UNANSWERED, wallNowMs: 2_000 }).retryAfterMs).to.equal(7_000);
    expect(classifyThrown(thrown, UNANSWERED).retryAfterMs).to.equal(undefined);
  });

  it('looks twelve errors deep, and at four of those that were collected', () => {
    const behind = (depth: number): unknown =>
      Array.from({ length: depth }).reduce((cause) => new Error('x', { cause }), { status: 429 });
    expect(classifyThrown(behind(11), UNANSWERED).code).to.equal('rate_limited');
    expect(classifyThrown(behind(12), UNANSWERED).code).to.equal('invalid_request');
    const collected = (at: number): unknown => ({
      errors: [...Array.from({ length: at }, () => ({})), { status: 429 }],
    });
    expect(classifyThrown(collected(3), UNANSWERED).code).to.equal('rate_limited');
    expect(classifyThrown(collected(4), UNANSWERED).code).to.equal('invalid_request');
    for (const cause of ['text', 5, null])
      expect(classifyThrown({ cause }, UNANSWERED).code).to.equal('invalid_request');
  });

  it('knows a failed connection by its words where the class may say so, and by a code', () => {
    const codeOf = (name: string, message: string): ErrorCode =>
      classifyThrown(Object.assign(new Error(message), { name }), UNANSWERED).code;
    for (const name of ['Error', 'TypeError', 'SocketError', 'FetchError', 'NetworkError']) {
      expect(codeOf(name, 'socket hang up'), name).to.equal('connection');
      expect(codeOf(name, 'who knows'), name).to.equal('invalid_request');
    }
    expect(codeOf('OwnError', 'socket hang up')).to.equal('invalid_request');
    expect(classifyThrown({ name: 'OwnError', code: 'connection_error' }, UNANSWERED).code).to.equal('connection');
  });

  it('knows a mistake in a program by every class of one', () => {
    for (const name of ['RangeError', 'ReferenceError', 'EvalError', 'URIError']) {
      const cause = Object.assign(new Error('x'), { name });
      expect(classifyThrown(new APIConnectionError({ cause }), UNANSWERED).code, name).to.equal('invalid_request');
    }
  });

  it('keeps the cause, the type and the message of an error inside a stream', () => {
    const inner = classifyThrown({ name: 'OwnError', error: { code: 'overloaded_error', message: 'limit' } }, ANSWERED);
    expect(inner).to.include({ code: 'overloaded', message: 'error in the answer overloaded_error: limit' });
    expect(inner.cause?.name).to.equal('OwnError');
    const flat = classifyThrown(
      { name: 'OwnError', code: 'rate_limit_exceeded', type: 'tokens', message: 'limit' },
      ANSWERED,
    );
    expect(flat).to.include({ code: 'rate_limited', providerCode: 'rate_limit_exceeded', providerType: 'tokens' });
    expect(flat.message).to.equal('error in the answer rate_limit_exceeded: limit');
    expect(flat.cause?.name).to.equal('OwnError');
    expect(classifyThrown({ type: 'overloaded_error', error: null }, ANSWERED).code).to.equal('overloaded');
  });

  it('looks for errors only: what else stands among them takes no place', () => {
    const behind = (depth: number): unknown =>
      Array.from({ length: depth }).reduce((cause) => new Error('x', { cause }), { status: 429 });
    for (const others of [
      ['a', 'b', 5],
      [null, undefined, true],
    ]) {
      expect(codeOf({ errors: [...others, behind(10)] })).to.equal('rate_limited');
      expect(codeOf({ errors: [...others, behind(11)] })).to.equal('invalid_request');
    }
  });

  it('finds an error that was made the message of another, and no error in other messages', () => {
    expect(codeOf(new Error(' {"status": 401}'))).to.equal('auth');
    for (const message of ['', '5', '"x"', '{"status": 401', 'status 401', '[]']) {
      expect(codeOf(new Error(message)), message).to.equal('invalid_request');
    }
  });

  it('reads all of the error that an SDK kept of the body', () => {
    const innererror = { code: 'ResponsibleAIPolicyViolation' };
    const error = { code: null, message: 'x', innererror };
    expect(codeOf({ status: 400, error })).to.equal('content_filtered');
    expect(codeOf({ status: 400, error: { error } })).to.equal('content_filtered');
  });

  it('goes by the name of a class that says something, and shows no other', () => {
    const typeOf = (name: string): string | undefined =>
      classifyThrown(Object.assign(new Error('x'), { name, status: 500 }), UNANSWERED).providerType;
    expect(typeOf('RateLimitError')).to.equal('RateLimitError');
    expect(typeOf('MyOwnError')).to.equal(undefined);
    expect(codeOf(Object.assign(new Error('x'), { name: 'MyOwnError', code: 'MY_OWN', type: 'mine' }))).to.equal(
      'invalid_request',
    );
  });

  it('takes only a SyntaxError about JSON or an event stream for a broken body', () => {
    const thrownAs = (name: string, message: string): ErrorCode => codeOf(Object.assign(new Error(message), { name }));
    expect(thrownAs('SyntaxError', 'no JSON')).to.equal('upstream_body_invalid');
    expect(thrownAs('SyntaxError', 'Could not parse a server-sent event')).to.equal('upstream_body_invalid');
    expect(thrownAs('SyntaxError', 'JSONP')).to.equal('invalid_request');
    expect(thrownAs('SyntaxError', '')).to.equal('invalid_request');
    expect(thrownAs('TypeError', 'JSON is not defined')).to.equal('invalid_request');
  });
});
