import { expect } from 'chai';
import type { RateLimitHints } from '../../lib/core/hints.ts';
import { headerReader } from '../../lib/wire/headers.ts';
import { readErrorBody } from '../../lib/wire/errorBody.ts';
import { MAX_HINT_MS, hintsOf, readHints } from '../../lib/wire/hints.ts';

const NOW = Date.UTC(2026, 0, 1);

function hints(headers: Record<string, string>, body?: unknown, status = 429): RateLimitHints | undefined {
  return readHints({ status, headers: headerReader(headers), body, wallNowMs: NOW });
}

const waitOf = (headers: Record<string, string>, body?: unknown): number | undefined =>
  hints(headers, body)?.retryAfterMs;

describe('readHints', () => {
  it('says nothing where nothing was said', () => {
    expect(hints({})).to.equal(undefined);
    expect(hints({ 'content-type': 'application/json' }, { error: { message: 'no' } })).to.equal(undefined);
    expect(hints({ 'retry-after': 'soon', 'x-should-retry': 'maybe' })).to.equal(undefined);
  });

  it('reads a Fetch Headers object', () => {
    const headers = new Headers({ 'Retry-After-Ms': '1500' });
    expect(readHints({ status: 429, headers, wallNowMs: NOW })?.retryAfterMs).to.equal(1_500);
  });

  describe('precedence', () => {
    const all = {
      'retry-after-ms': '1000',
      'x-ms-retry-after-ms': '2000',
      'retry-after': '3',
      'x-ratelimit-remaining-tokens': '0',
      'x-ratelimit-reset-tokens': '4s',
    };
    const body = { error: { message: 'Please try again in 5s.' } };
    const steps: readonly [keyof typeof all | undefined, number, string][] = [
      [undefined, 1_000, 'retry-after-ms'],
      ['retry-after-ms', 2_000, 'retry-after-ms'],
      ['x-ms-retry-after-ms', 3_000, 'retry-after'],
      ['retry-after', 4_000, 'reset-header'],
      ['x-ratelimit-reset-tokens', 5_000, 'body'],
    ];
    const headers: Record<string, string> = { ...all };
    for (const [dropped, ms, source] of steps) {
      if (dropped !== undefined) headers[dropped] = '';
      const given = { ...headers };
      it(`takes ${ms} ms from ${source}${dropped === undefined ? '' : ` when ${dropped} is empty`}`, () => {
        expect(hints(given, body)).to.include({ retryAfterMs: ms, retryAfterSource: source });
      });
    }
  });

  it('reads retry-after in every form', () => {
    const forms: Readonly<Record<string, number>> = {
      '7': 7_000,
      '0.25': 250,
      '0': 0,
      '1m30s': 90_000,
      '20ms': 20,
      '2026-01-01T00:00:09Z': 9_000,
      'Thu, 01 Jan 2026 00:00:20 GMT': 20_000,
      'Wed, 21 Oct 2015 07:28:00 GMT': 0,
      '1767225607': 7_000,
      '1767225607500': 7_500,
      '277403': 277_403_000,
      '3, 5': 5_000,
    };
    for (const [value, ms] of Object.entries(forms)) expect(waitOf({ 'retry-after': value }), value).to.equal(ms);
    for (const value of ['-1', 'abc', '', 'NaN', '1e9', '7, x'])
      expect(waitOf({ 'retry-after': value }), value).to.equal(undefined);
  });

  it('rounds a wait up to a millisecond and not beyond', () => {
    expect(waitOf({ 'retry-after': '1.1' })).to.equal(1_100);
    expect(waitOf({ 'retry-after': '1.1001' })).to.equal(1_101);
    expect(waitOf({ 'retry-after-ms': '0.4' })).to.equal(1);
  });

  it('cuts a wait to what a timer can hold', () => {
    for (const value of ['2592000', '99999999999999999999', '999999999']) {
      expect(waitOf({ 'retry-after': value })).to.equal(MAX_HINT_MS);
    }
  });

  it("measures an instant from the answer's Date header, and from the wall clock without one", () => {
    const instant = 'Thu, 01 Jan 2026 00:00:20 GMT';
    expect(waitOf({ 'retry-after': instant, date: 'Thu, 01 Jan 2026 00:00:15 GMT' })).to.equal(5_000);
    expect(waitOf({ 'retry-after': instant, date: 'rubbish' })).to.equal(20_000);
    const headers = headerReader({ 'retry-after': instant });
    expect(readHints({ status: 429, headers, wallNowMs: NaN })).to.equal(undefined);
  });

  it('reads x-should-retry in any letter case', () => {
    expect(hints({ 'x-should-retry': 'False' })).to.include({ shouldRetry: false, retryAfterMs: undefined });
    expect(hints({ 'x-should-retry': 'true' })).to.include({ shouldRetry: true });
  });

  it('waits for everything that is exhausted, and for nothing that has room', () => {
    const reset = { 'x-ratelimit-reset-requests': '10s', 'x-ratelimit-reset-tokens': '30s' };
    expect(waitOf({ ...reset, 'x-ratelimit-remaining-requests': '0', 'x-ratelimit-remaining-tokens': '5' })).to.equal(
      10_000,
    );
    expect(waitOf({ ...reset, 'x-ratelimit-remaining-requests': '0', 'x-ratelimit-remaining-tokens': '0' })).to.equal(
      30_000,
    );
    expect(waitOf({ ...reset, 'x-ratelimit-remaining-requests': '1', 'x-ratelimit-remaining-tokens': '5' })).to.equal(
      undefined,
    );
    expect(waitOf({ 'x-ratelimit-reset-tokens': '30s' })).to.equal(30_000);
    expect(waitOf({ ...reset, 'x-ratelimit-remaining-requests': '0' })).to.equal(10_000);
  });

  it('reads the body of every answer that did not succeed, and of no other', () => {
    const body = { error: { code: 'slow_down', message: 'try again in 5s' } };
    for (const status of [199, 300, 400, 599])
      expect(hints({}, body, status)?.retryAfterMs, `${status}`).to.equal(5_000);
    for (const status of [200, 204, 299]) {
      expect(hints({}, body, status), `${status}`).to.equal(undefined);
      expect(
        hintsOf({ status, headers: headerReader({}), wallNowMs: NOW }, readErrorBody(body))?.retryAfterMs,
      ).to.equal(undefined);
    }
  });

  it('takes no wait from the limits of an answer that succeeded', () => {
    const headers = { 'x-ratelimit-remaining-requests': '0', 'x-ratelimit-reset-requests': '10s' };
    const read = hints(headers, { error: { message: 'try again in 5s' } }, 200);
    expect(read?.retryAfterMs).to.equal(undefined);
    expect(read?.requests).to.include({ remaining: 0, resetMs: 10_000 });
  });

  it('takes no wait from the limits of a server error, but from what it says itself', () => {
    const headers = { 'x-ratelimit-remaining-requests': '0', 'x-ratelimit-reset-requests': '10s' };
    expect(hints(headers, undefined, 500)).to.deep.include({ retryAfterMs: undefined, retryAfterSource: undefined });
    expect(hints(headers, undefined, 500)?.requests).to.include({ remaining: 0 });
    expect(hints({ ...headers, 'retry-after': '2' }, undefined, 503)?.retryAfterMs).to.equal(2_000);
    expect(hints(headers, { error: { message: 'try again in 5s' } }, 503)?.retryAfterMs).to.equal(5_000);
  });

  describe('limits', () => {
    it('reads OpenAI', () => {
      const read = hints(
        {
          'x-ratelimit-limit-requests': '60',
          'x-ratelimit-remaining-requests': '59',
          'x-ratelimit-reset-requests': '1s',
          'x-ratelimit-limit-tokens': '150000',
          'x-ratelimit-remaining-tokens': '149984',
          'x-ratelimit-reset-tokens': '6m0s',
        },
        undefined,
        200,
      );
      expect(read?.requests).to.deep.equal({ limit: 60, remaining: 59, resetMs: 1_000, windowMs: 60_000 });
      expect(read?.tokens).to.deep.equal({ limit: 150_000, remaining: 149_984, resetMs: 360_000, windowMs: 60_000 });
    });

    it('takes the tighter of the account and the project', () => {
      const read = hints({
        'x-ratelimit-limit-tokens': '1000',
        'x-ratelimit-remaining-tokens': '900',
        'x-ratelimit-limit-project-tokens': '100',
        'x-ratelimit-remaining-project-tokens': '10',
      });
      expect(read?.tokens).to.include({ limit: 100, remaining: 10 });
    });

    it('reads Azure: whole seconds, and limits of 0 or -1 that mean none', () => {
      const read = hints({
        'x-ratelimit-remaining-requests': '9',
        'x-ratelimit-remaining-tokens': '0',
        'x-ratelimit-reset-tokens': '17',
      });
      expect(read?.tokens).to.include({ remaining: 0, resetMs: 17_000 });
      expect(read?.retryAfterMs).to.equal(17_000);
      for (const limit of ['-1', '0']) {
        expect(hints({ 'x-ratelimit-limit-requests': limit, 'x-ratelimit-remaining-requests': '0' })).to.equal(
          undefined,
        );
      }
      expect(hints({ 'x-ratelimit-remaining-requests': '-1' })).to.equal(undefined);
    });

    it('reads Anthropic, input and output apart', () => {
      const read = hints({
        'anthropic-ratelimit-requests-limit': '50',
        'anthropic-ratelimit-requests-remaining': '49',
        'anthropic-ratelimit-requests-reset': '2026-01-01T00:00:01Z',
        'anthropic-ratelimit-input-tokens-limit': '40000',
        'anthropic-ratelimit-input-tokens-remaining': '39000',
        'anthropic-ratelimit-input-tokens-reset': '2026-01-01T00:00:02Z',
        'anthropic-ratelimit-output-tokens-limit': '8000',
        'anthropic-ratelimit-output-tokens-remaining': '0',
        'anthropic-ratelimit-output-tokens-reset': '2025-12-31T23:59:59Z',
      });
      expect(read?.requests).to.deep.equal({ limit: 50, remaining: 49, resetMs: 1_000, windowMs: 60_000 });
      expect(read?.tokens).to.deep.equal({ limit: 8_000, remaining: 0, resetMs: 0, windowMs: 60_000 });
      expect(read).to.include({ retryAfterMs: 0, retryAfterSource: 'reset-header' });
    });

    it("reads Groq's request limits as daily, by its headers or by how fast they refill", () => {
      const groq = {
        'x-ratelimit-limit-requests': '14400',
        'x-ratelimit-remaining-requests': '14370',
        'x-ratelimit-reset-requests': '2m59.56s',
        'x-ratelimit-limit-tokens': '18000',
        'x-ratelimit-remaining-tokens': '17997',
        'x-ratelimit-reset-tokens': '7.66s',
      };
      const read = hints(groq, undefined, 200);
      expect(read?.requests).to.deep.equal({
        limit: 14_400,
        remaining: 14_370,
        resetMs: 179_560,
        windowMs: 86_400_000,
      });
      expect(read?.tokens?.windowMs).to.equal(60_000);
      const early = { ...groq, 'x-ratelimit-remaining-requests': '14399', 'x-ratelimit-reset-requests': '6s' };
      expect(hints(early)?.requests?.windowMs).to.equal(60_000);
      expect(hints({ ...early, 'x-groq-region': 'us-west-1' })?.requests?.windowMs).to.equal(86_400_000);
    });

    it('reads Mistral by size, minute and month side by side', () => {
      const read = hints({
        'ratelimitbysize-limit': '500000',
        'ratelimitbysize-remaining': '499985',
        'ratelimitbysize-reset': '48',
        'x-ratelimitbysize-limit-month': '1000000000',
        'x-ratelimitbysize-remaining-month': '1000',
      });
      expect(read?.tokens).to.deep.equal({ limit: 1e9, remaining: 1_000, resetMs: undefined, windowMs: 2_592_000_000 });
      const minute = hints({
        'ratelimitbysize-limit': '500000',
        'ratelimitbysize-remaining': '0',
        'ratelimitbysize-reset': '48',
      });
      expect(minute).to.include({ retryAfterMs: 48_000 });
      expect(minute?.tokens?.windowMs).to.equal(60_000);
    });

    it('reads Cerebras: windows in the names', () => {
      const read = hints({
        'x-ratelimit-limit-requests-day': '14400',
        'x-ratelimit-remaining-requests-day': '1',
        'x-ratelimit-reset-requests-day': '33011.382',
        'x-ratelimit-limit-tokens-minute': '60000',
        'x-ratelimit-remaining-tokens-minute': '0',
        'x-ratelimit-reset-tokens-minute': '11.382',
      });
      expect(read?.requests).to.deep.equal({ limit: 14_400, remaining: 1, resetMs: 33_011_382, windowMs: 86_400_000 });
      expect(read).to.include({ retryAfterMs: 11_382 });
    });

    it('reads OpenRouter: headers inside the body, reset as an epoch in milliseconds', () => {
      const body = {
        error: {
          code: 429,
          message: 'Rate limit exceeded',
          metadata: {
            headers: {
              'X-RateLimit-Limit': '20',
              'X-RateLimit-Remaining': '0',
              'X-RateLimit-Reset': String(NOW + 42_000),
            },
          },
        },
      };
      expect(hints({}, body)).to.include({ retryAfterMs: 42_000, retryAfterSource: 'reset-header' });
    });

    it('reads the RateLimit headers of the IETF draft, old and new', () => {
      expect(hints({ ratelimit: 'limit=10, remaining=0, reset=5' })).to.include({ retryAfterMs: 5_000 });
      expect(hints({ ratelimit: '"default";r=0;t=7' })).to.include({ retryAfterMs: 7_000 });
      expect(hints({ 'ratelimit-limit': '10', 'ratelimit-remaining': '0', 'ratelimit-reset': '9' })).to.include({
        retryAfterMs: 9_000,
      });
      expect(hints({ ratelimit: 'nonsense' })).to.equal(undefined);
    });

    it('tells a window by how long its limit takes to be full, where the names do not', () => {
      const windowOf = (limit: string, remaining: string, reset: string): number | undefined =>
        hints({ 'x-ratelimit-limit': limit, 'x-ratelimit-remaining': remaining, 'x-ratelimit-reset': reset })?.requests
          ?.windowMs;
      expect(windowOf('200', '199', '432')).to.equal(86_400_000);
      expect(windowOf('100', '50', '1800')).to.equal(3_600_000);
      expect(windowOf('60', '0', '360')).to.equal(360_000);
      expect(windowOf('60', '59', '59')).to.equal(60_000);
    });
  });

  it('reads name by name where a reader fails at listing them all', () => {
    const headers = {
      get: (name: string): string | null => (name === 'retry-after' ? '3' : null),
      forEach(): void {
        throw new Error('mine');
      },
    };
    expect(readHints({ status: 429, headers, wallNowMs: NOW })?.retryAfterMs).to.equal(3000);
  });

  it('survives a reader that throws', () => {
    const headers = {
      get(): string {
        throw new Error('mine');
      },
    };
    expect(readHints({ status: 429, headers, wallNowMs: NOW })).to.equal(undefined);
  });
});
