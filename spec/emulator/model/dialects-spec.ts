import { expect } from 'chai';
import { PROVIDER_ERRORS } from '../../../lib/emulator/model/dialects/Dialect.ts';
import type { ProviderErrorFacts } from '../../../lib/emulator/model/dialects/Dialect.ts';
import { DIALECTS } from '../../../lib/emulator/model/dialects/dialects.ts';
import { goDuration, rfc3339 } from '../../../lib/emulator/model/dialects/formats.ts';

const facts: ProviderErrorFacts = {
  kind: 'requests',
  model: 'm',
  retryAfterMs: 1_234,
  limit: 60,
  used: 60,
  requested: 1,
};
const view = {
  requestId: 'req_1',
  requests: { perMinute: 60, remaining: 7, msUntilFull: 362_000 },
  tokens: { perMinute: 100_000, remaining: 41_700, msUntilFull: 20 },
  served: 3,
  wallMs: Date.UTC(2026, 1, 28, 23, 59, 59),
};

function dialect(name: string) {
  const found = DIALECTS[name];
  if (found === undefined) throw new Error(`no dialect ${name}`);
  return found;
}

describe('dialects', () => {
  it('have a status and a body with a message for every error', () => {
    for (const { error } of Object.values(DIALECTS)) {
      for (const kind of PROVIDER_ERRORS) {
        const reply = error({ ...facts, kind });
        expect(reply.status).to.be.within(400, 599);
        expect((reply.body as { error: { message: string } }).error.message).to.match(/\w/);
      }
    }
  });

  it('of OpenAI: Go durations, and the wait in milliseconds and seconds', () => {
    expect(dialect('openai').headers(view)).to.deep.equal({
      'x-request-id': 'req_1',
      'x-ratelimit-limit-requests': '60',
      'x-ratelimit-remaining-requests': '7',
      'x-ratelimit-reset-requests': '6m2s',
      'x-ratelimit-limit-tokens': '100000',
      'x-ratelimit-remaining-tokens': '41700',
      'x-ratelimit-reset-tokens': '20ms',
    });
    const { status, headers, body } = dialect('openai').error(facts);
    expect(status).to.equal(429);
    expect(headers).to.deep.equal({ 'retry-after-ms': '1234', 'retry-after': '2' });
    expect(body).to.deep.equal({
      error: {
        message:
          'Rate limit reached for m on requests per min (RPM): Limit 60, Used 60, Requested 1. Please try again in 1.234s.',
        type: 'requests',
        param: null,
        code: 'rate_limit_exceeded',
      },
    });
  });

  it('of OpenAI: no limit of nothing where none is known, which would be a quota that waiting does not help', () => {
    const unknown = { ...facts, limit: undefined, used: undefined, requested: undefined };
    expect(JSON.stringify(dialect('openai').error(unknown).body)).to.contain('Limit 1, Used 1, Requested 1.');
  });

  it('of Azure: resets in whole seconds, the status as code', () => {
    expect(dialect('azure').headers(view)).to.include({
      'x-ratelimit-reset-requests': '362',
      'x-ratelimit-reset-tokens': '1',
    });
    const { headers, body } = dialect('azure').error(facts);
    expect(headers).to.include({ 'x-ms-retry-after-ms': '1234', 'retry-after-ms': '1234', 'retry-after': '2' });
    expect(body).to.have.nested.property('error.code', '429');
  });

  it('of Anthropic: RFC 3339 resets, tokens in thousands, 529', () => {
    expect(dialect('anthropic').headers(view)).to.deep.equal({
      'request-id': 'req_1',
      'anthropic-ratelimit-requests-limit': '60',
      'anthropic-ratelimit-requests-remaining': '7',
      'anthropic-ratelimit-requests-reset': '2026-03-01T00:06:01Z',
      'anthropic-ratelimit-tokens-limit': '100000',
      'anthropic-ratelimit-tokens-remaining': '42000',
      'anthropic-ratelimit-tokens-reset': '2026-03-01T00:00:00Z',
    });
    expect(dialect('anthropic').error(facts).headers).to.deep.equal({ 'retry-after': '2' });
    expect(dialect('anthropic').error({ ...facts, kind: 'overloaded' }).status).to.equal(529);
  });

  it('of Gemini: no headers, the wait and the quota in the body', () => {
    expect(dialect('gemini').headers(view)).to.deep.equal({});
    const { headers, body } = dialect('gemini').error({ ...facts, kind: 'daily' });
    expect(headers).to.deep.equal({});
    expect(JSON.stringify(body)).to.include('"retryDelay":"1.234s"').and.to.include('PerDay');
    expect(body).to.have.nested.property('error.status', 'RESOURCE_EXHAUSTED');
  });

  it('of Groq: requests of a day, the wait with a 429 only', () => {
    expect(dialect('groq').headers(view)).to.include({
      'x-ratelimit-limit-requests': '86400',
      'x-ratelimit-remaining-requests': '86397',
      'x-ratelimit-reset-requests': '3s',
      'x-ratelimit-limit-tokens': '100000',
    });
    expect(dialect('groq').error(facts).headers).to.deep.equal({ 'retry-after': '2' });
    expect(dialect('groq').error({ ...facts, kind: 'server_error' }).headers).to.deep.equal({});
    expect(dialect('groq').error({ ...facts, kind: 'overloaded' }).status).to.equal(498);
  });

  it('of nobody: neither headers nor a wait', () => {
    expect(dialect('none').headers(view)).to.deep.equal({});
    const { headers, body } = dialect('none').error(facts);
    expect(headers).to.deep.equal({});
    expect(JSON.stringify(body)).not.to.include('try again in');
  });
});

describe('goDuration', () => {
  for (const [ms, text] of [
    [0, '0ms'],
    [20, '20ms'],
    [999.2, '1s'],
    [1_000, '1s'],
    [9_816, '9.816s'],
    [360_000, '6m0s'],
    [179_560, '2m59.56s'],
    [3_600_000, '1h0m0s'],
    [Infinity, '24h0m0s'],
  ] as const) {
    it(`prints ${ms} ms as ${text}`, () => expect(goDuration(ms)).to.equal(text));
  }
});

describe('rfc3339', () => {
  it('agrees with the platform on every day of a leap cycle', () => {
    for (let day = 0; day < 366 * 5; day++) {
      const ms = Date.UTC(2023, 0, 1, 12, 34, 56) + day * 86_400_000;
      expect(rfc3339(ms)).to.equal(new Date(ms).toISOString().replace('.000', ''));
    }
    expect(rfc3339(0)).to.equal('1970-01-01T00:00:00Z');
  });
});
