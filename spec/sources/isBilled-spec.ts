import { expect } from 'chai';
import { SluiceError } from '../../lib/core/errors.ts';
import type { ErrorCode } from '../../lib/core/errors.ts';
import { isBilled } from '../../lib/sources/isBilled.ts';
import type { EndOfAttempt } from '../../lib/sources/isBilled.ts';

const ended = (parts: Partial<EndOfAttempt>): boolean =>
  isBilled({ outcome: 'failure', error: undefined, status: undefined, streamed: true, content: false, ...parts });
const failed = (code: ErrorCode, parts: Partial<EndOfAttempt> = {}, status?: number): boolean =>
  ended({ error: new SluiceError(code, 'it failed', { status }), ...parts });

describe('isBilled', () => {
  it('is true for an answer, and for what has had content, however it ended', () => {
    expect(ended({ outcome: 'success' })).to.equal(true);
    for (const code of ['server_error', 'connection', 'stream_idle', 'rate_limited'] as const) {
      expect(failed(code, { content: true, status: 200 }), code).to.equal(true);
    }
    expect(ended({ outcome: 'dropped', content: true })).to.equal(true);
  });

  it('is true for an answer that had begun, and was cut off', () => {
    for (const code of ['timeout', 'stream_idle', 'stream_truncated', 'connection', 'timeout_deadline'] as const) {
      expect(failed(code, { status: 200 }), code).to.equal(true);
      expect(failed(code), code).to.equal(false);
    }
    expect(ended({ outcome: 'dropped', status: 200 })).to.equal(true);
    expect(ended({ outcome: 'dropped' })).to.equal(false);
  });

  it('is true for one whose head comes with the whole, unless the connection failed', () => {
    const whole = { streamed: false };
    expect(ended({ outcome: 'dropped', ...whole })).to.equal(true);
    expect(failed('timeout', whole)).to.equal(true);
    expect(failed('timeout_deadline', whole)).to.equal(true);
    expect(failed('connection', whole)).to.equal(false);
  });

  it('is false where the provider answered with an error', () => {
    for (const code of [
      'rate_limited',
      'quota_exhausted',
      'bad_request',
      'auth',
      'overloaded',
      'server_error',
    ] as const) {
      expect(failed(code, {}, 429), code).to.equal(false);
      expect(failed(code, { status: 200 }), code).to.equal(false);
      expect(failed(code, { streamed: false }, 500), code).to.equal(false);
    }
    expect(failed('timeout', { streamed: false }, 408)).to.equal(false);
    expect(ended({ outcome: 'dropped', status: 500 })).to.equal(false);
  });
});
