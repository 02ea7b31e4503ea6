import { expect } from 'chai';
import type { RateLimitHints } from '../../lib/core/hints.ts';
import { headerReader } from '../../lib/wire/headers.ts';
import { readHints } from '../../lib/wire/hints.ts';

const NOW = Date.UTC(2026, 0, 1);

function hints(headers: Record<string, string>, body?: unknown, status = 429): RateLimitHints | undefined {
  return readHints({ status, headers: headerReader(headers), body, wallNowMs: NOW });
}

const waitOf = (headers: Record<string, string>, body?: unknown): number | undefined =>
  hints(headers, body)?.retryAfterMs;

describe('readHints, of a body', () => {
  const retryInfo = (retryDelay: unknown): unknown => ({
    error: {
      code: 429,
      status: 'RESOURCE_EXHAUSTED',
      message: 'q',
      details: [
        { '@type': 'type.googleapis.com/google.rpc.QuotaFailure' },
        { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay },
      ],
    },
  });
  const waits: readonly (readonly [string, unknown, number | undefined])[] = [
    ["Gemini's RetryInfo", retryInfo('34s'), 34_000],
    ['RetryInfo with fractions', retryInfo('45.837906927s'), 45_838],
    ['RetryInfo as an object', retryInfo({ seconds: '12', nanos: 1 }), 12_001],
    ['RetryInfo in an array', [retryInfo('12s')], 12_000],
    ['a body that is JSON text', JSON.stringify(retryInfo('5s')), 5_000],
    ['a body that is plain text', 'Rate limited. Please try again in 1.2s', 1_200],
    ['resets_in_seconds', { error: { type: 'usage_limit_reached', resets_in_seconds: 7_139 } }, 7_139_000],
    ['retry_after beside the message', { message: 'slow', retry_after: 3 }, 3_000],
    ['retry_after_ms as text', { error: { message: 'slow', retry_after_ms: '250' } }, 250],
    ['retry_after with a unit', { error: { message: 'slow', retry_after: '2s' } }, 2_000],
    ['retryAfterMs in metadata', { error: { message: 'slow', metadata: { retryAfterMs: 9 } } }, 9],
    [
      'quotaResetDelay',
      { error: { message: 'q', details: [{ metadata: { quotaResetDelay: '1h16m0.6s' } }] } },
      4_560_600,
    ],
    ['resets_at as an epoch', { error: { message: 'q', resets_at: NOW / 1_000 + 60 } }, 60_000],
    [
      "the words of a wrapped provider's error",
      { error: { message: 'Provider returned error', metadata: { raw: 'try again in 7s' } } },
      7_000,
    ],
    ['an Azure gateway', { statusCode: 429, message: 'Rate limit is exceeded. Try again in 26 seconds.' }, 26_000],
    ['retry_after of 0', { error: { message: 'slow', retry_after: 0 } }, 0],
    ['retry_after as text', { error: { message: 'slow', retry_after: '3' } }, 3_000],
    ['retry_after as an epoch in text', { error: { message: 'slow', retry_after: '1767225607' } }, 7_000],
    ['retry_after_ms with a unit', { error: { message: 'slow', retry_after_ms: '2s' } }, 2_000],
    ['nothing from fields that are null', { error: { message: 'slow', retry_after: null, metadata: null } }, undefined],
    ['nothing from a number beyond all time', { error: { message: 'slow', retry_after: 1e308 } }, undefined],
    [
      'numbers that are no wait',
      { error: { message: 'Limit 3, Used 2, Requested 5.', retry_after: -5, retryDelay: 'x' } },
      undefined,
    ],
  ];
  for (const [name, body, ms] of waits) it(`reads ${name}`, () => expect(waitOf({}, body)).to.equal(ms));

  it('tells a request for a lower rate from a request for a pause', () => {
    expect(hints({}, { error: { type: 'rate_limit_error', code: 'slow_down', message: 'x' } })?.slowDown).to.equal(
      true,
    );
    expect(hints({}, { error: { message: 'Please ramp up your traffic gradually' } })?.slowDown).to.equal(true);
    expect(hints({ 'retry-after': '1' }, { error: { code: 'rate_limit_exceeded', message: 'x' } })?.slowDown).to.equal(
      false,
    );
    for (const code of ['slowdown', 'Slow-Down', 'SLOW_DOWN']) {
      expect(hints({}, { error: { code, message: 'x' } })?.slowDown, code).to.equal(true);
    }
    for (const code of ['no_slow_down', 'slow_down_ended']) {
      expect(hints({ 'retry-after': '1' }, { error: { code, message: 'x' } })?.slowDown, code).to.equal(false);
    }
    expect(hints({}, { error: { message: 'Please slow down.' } })?.slowDown).to.equal(true);
  });

  it('hears a request for a lower rate in the first 2,000 characters of a message, and no other', () => {
    const said = (length: number): boolean | undefined =>
      hints({ 'retry-after': '1' }, { error: { message: `${'x'.repeat(length)} slow down` } })?.slowDown;
    expect([said(1_990), said(1_991)]).to.deep.equal([true, false]);
  });

  it('reads an instant where milliseconds are meant', () => {
    expect(waitOf({}, { error: { message: 'slow', retry_after_ms: '2026-01-01T00:00:05+00:00' } })).to.equal(5_000);
  });
});
