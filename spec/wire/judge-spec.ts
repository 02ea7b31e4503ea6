import { expect } from 'chai';
import type { UpstreamErrorCode } from '../../lib/core/errors.ts';
import { readErrorBody } from '../../lib/wire/errorBody.ts';
import { judge } from '../../lib/wire/judge.ts';
import type { Verdict } from '../../lib/wire/judge.ts';

interface Names {
  readonly code?: string;
  readonly type?: string;
}

const verdictOf = (message: string, status?: number, names: Names = {}): Verdict =>
  judge(readErrorBody({ error: { message, ...names } }), status);
const codeOf = (...said: Parameters<typeof verdictOf>): UpstreamErrorCode => verdictOf(...said).code;

const BAD_REQUEST = { type: 'invalid_request_error' };
const RATE_LIMITED = { code: 'rate_limit_exceeded' };

/** Gemini's error, which names the quotas that were exceeded. */
const geminiOf = (violations: unknown, message = 'x'): unknown => ({
  error: { code: 429, status: 'RESOURCE_EXHAUSTED', message, details: [{ violations }] },
});

describe('judge', () => {
  it('is a server error where nothing is known, and what the status says where no body is', () => {
    expect(judge(undefined, undefined)).to.deep.equal({ code: 'server_error' });
    expect(judge(readErrorBody({}), undefined)).to.deep.equal({ code: 'server_error' });
    expect(judge(undefined, 404)).to.deep.equal({ code: 'not_found' });
  });

  it('lets a name decide that says more than the words', () => {
    const words = 'Limit 5, Requested 9: 5 per day, out of credits, overloaded, rate limit, content filter';
    const rows: readonly (readonly [name: string, code: UpstreamErrorCode, sizes?: object])[] = [
      ['context_length_exceeded', 'context_too_long'],
      ['content_policy_violation', 'content_filtered'],
      ['overloaded_error', 'overloaded'],
      ['model_not_found', 'not_found'],
      ['request_timeout', 'timeout'],
    ];
    for (const [code, expected] of rows) {
      expect(verdictOf(words, 400, { code, ...BAD_REQUEST }).code, code).to.equal(expected);
      expect(verdictOf(words, undefined, { code }).code, code).to.equal(expected);
    }
  });

  it('takes of several names the most particular one', () => {
    const names: readonly (readonly [name: string, code: UpstreamErrorCode])[] = [
      ['insufficient_quota', 'quota_exhausted'],
      ['context_length_exceeded', 'context_too_long'],
      ['content_filter', 'content_filtered'],
      ['request_too_large', 'request_too_large'],
      ['overloaded_error', 'overloaded'],
      ['rate_limit_error', 'rate_limited'],
      ['authentication_error', 'auth'],
      ['not_found_error', 'not_found'],
      ['conflict_error', 'conflict'],
      ['timeout_error', 'timeout'],
      ['connection_error', 'connection'],
      ['invalid_response_body', 'upstream_body_invalid'],
      ['api_error', 'server_error'],
      ['invalid_request_error', 'bad_request'],
      ['a_name_of_their_own', 'server_error'],
    ];
    for (const [at, [type, code]] of names.entries()) {
      expect(codeOf('x', undefined, { type }), type).to.equal(code);
      for (const [other] of names.slice(at))
        expect(codeOf('x', undefined, { code: other, type }), other).to.equal(code);
    }
    for (const type of ['api_error', 'invalid_request_error']) {
      expect(codeOf('rate limit, unknown model', undefined, { type }), type).to.not.equal('rate_limited');
      expect(codeOf('x', 429, { type }), type).to.equal('rate_limited');
      expect(codeOf('x', 404, { type }), type).to.equal('not_found');
    }
    expect(codeOf('x', 404, { type: 'overloaded_error' })).to.equal('overloaded');
  });

  it('finds in the words what a general name or an unfitting one does not say', () => {
    expect(codeOf('You are out of credits', 429, RATE_LIMITED)).to.equal('quota_exhausted');
    expect(codeOf('You are out of credits', 403)).to.equal('quota_exhausted');
    expect(codeOf('prompt is too long', 500)).to.equal('context_too_long');
    expect(codeOf('prompt is too long', 413)).to.equal('context_too_long');
    expect(codeOf('The prompt was flagged as unsafe', 403)).to.equal('content_filtered');
    expect(codeOf('invalid api key', 400, BAD_REQUEST)).to.equal('auth');
    for (const word of ['per day', 'rate limit', 'Request too large', 'overloaded']) {
      expect(codeOf(`Unknown unit: ${word}`, 400, BAD_REQUEST), word).to.equal('bad_request');
      expect(codeOf(`Unknown unit: ${word}`, undefined, BAD_REQUEST), word).to.equal('bad_request');
    }
  });

  it('tells errors without names and status by their words alone', () => {
    const rows: readonly (readonly [message: string, code: UpstreamErrorCode])[] = [
      ['Rate limit exceeded: free-models-per-day', 'quota_exhausted'],
      ['Rate limit exceeded', 'rate_limited'],
      ['5 per day', 'server_error'],
      ['out of credits', 'quota_exhausted'],
      ['prompt is too long', 'context_too_long'],
      ['flagged as unsafe', 'content_filtered'],
      ['no capacity', 'overloaded'],
      ['invalid api key', 'auth'],
      ['unknown model', 'not_found'],
      ['Limit 5, Requested 9', 'request_too_large'],
      ['payload too large', 'server_error'],
    ];
    for (const [message, code] of rows) expect(codeOf(message), message).to.equal(code);
  });

  describe('of a request that is larger than a limit', () => {
    const TOO_LARGE = { code: 'request_too_large', limit: 6_000, requested: 8_013 };

    it('reads both sizes, however they are written', () => {
      for (const message of [
        'Limit 6000, Requested 8013',
        'limit: 6,000, used: 0, requested: 8,013.',
        'Limit:6000 Requested:8013',
        'Limit6000, Requested8013',
        `Limit 6000${' '.repeat(120)}Requested 8013`,
      ]) {
        expect(verdictOf(message, 429, RATE_LIMITED), message).to.deep.equal(TOO_LARGE);
      }
    });

    it('takes both, or none', () => {
      const rows: readonly (readonly [message: string, code: UpstreamErrorCode])[] = [
        ['Limit 6000, Requested 6001', 'request_too_large'],
        ['Limit 6000, Requested 6000', 'rate_limited'],
        ['Limit 6000, Used 5999, Requested 10', 'rate_limited'],
        ['Limit 6000', 'rate_limited'],
        ['Requested 8013', 'rate_limited'],
        ['Limit 0, Requested 8013', 'rate_limited'],
        ['Limit ,, Requested 8013', 'rate_limited'],
        [`Limit 6000${' '.repeat(121)}Requested 8013`, 'rate_limited'],
      ];
      for (const [message, code] of rows) expect(codeOf(message, 429, RATE_LIMITED), message).to.equal(code);
      const zeros = ['Request too large: Limit 0, Requested 5', 'Request too large: Limit 5, Requested 0'];
      for (const message of zeros) {
        expect(verdictOf(message, 429), message).to.deep.equal({ code: 'request_too_large' });
      }
    });

    it('says them under a 413 and a 400 too, and in a stream', () => {
      const message = 'Request: Limit 6000, Requested 8013';
      for (const status of [413, 400, 429, undefined]) {
        expect(verdictOf(message, status), String(status)).to.deep.equal(TOO_LARGE);
      }
      expect(codeOf(message, 500)).to.equal('server_error');
    });
  });

  describe('of a context that is too long', () => {
    const TOO_LONG = { code: 'context_too_long', limit: 200_000, requested: 210_000 };
    const NAMED = { code: 'context_length_exceeded' };

    it('reads both sizes, however they are written', () => {
      for (const message of [
        'prompt is too long: 210000 tokens > 200000 maximum',
        'longer than the maximum (210,000 > 200,000)',
        'exceed context limit: 190000 + 20000 > 200000, decrease input length or `max_tokens`',
        'the input token count (210000) exceeds 200000',
        'token count is 210,000 of 200,000',
        'maximum context length is 200000 tokens. However, you requested 210000 tokens (of 200000 tokens)',
        'Max length: 200,000 tokens, and the messages resulted in 210,000 tokens',
        'at most the maximum of 200000 tokens: the messages contain 210000 input tokens',
        'maximum 200000 tokens; the prompt contains about 210000 tokens',
        'maximum 200000 tokens; it has at least 210000 tokens',
        'maximum 200000 tokens; you have 210000 tokens',
        'maximum 200000 tokens; the input is 210000 tokens',
        'maximum 200000 tokens; provided 210000 tokens',
        'Requested tokens exceed the maximum of 200000 tokens. You requested a total of 210000 tokens: 190000 tokens ...',
      ]) {
        expect(verdictOf(message, 400, NAMED), message).to.deep.equal(TOO_LONG);
      }
    });

    it('takes both, or none', () => {
      for (const message of [
        'prompt is too long',
        'prompt is too long: 0 tokens > 200000',
        'prompt is too long: 210000 tokens > 0',
        'the maximum is 200000 tokens',
        'you requested 210000 tokens, the maximum is 200000 tokens',
        'the token count is 210000',
        'the maximum is 200000 tokens, you requested 0 tokens',
      ]) {
        expect(verdictOf(message, 400, NAMED), message).to.deep.equal({ code: 'context_too_long' });
      }
    });

    it('reads them where only the words tell what it is', () => {
      expect(verdictOf('prompt is too long: 210000 tokens > 200000 maximum', 413)).to.deep.equal(TOO_LONG);
    });
  });

  describe('of a quota, whether waiting helps', () => {
    const codeOfQuota = (violations: unknown, message?: string): UpstreamErrorCode =>
      judge(readErrorBody(geminiOf(violations, message)), 429).code;

    it('by the quotas that are named, whatever the words say', () => {
      const minute = { quotaId: 'GenerateRequestsPerMinutePerProjectPerModel-FreeTier' };
      const rows: readonly (readonly [violations: unknown, code: UpstreamErrorCode])[] = [
        [[minute], 'rate_limited'],
        [[minute, { quotaId: 'GenerateRequestsPerDayPerProjectPerModel-FreeTier' }], 'quota_exhausted'],
        [[{ quotaId: 'TokensPerMonth' }, minute], 'quota_exhausted'],
        [[{ quotaId: 'TokensPerWeek' }], 'quota_exhausted'],
        [[{ quotaMetric: 'generativelanguage.googleapis.com/requests_per_day' }], 'quota_exhausted'],
        [[{ quotaMetric: 'generativelanguage.googleapis.com/requests' }], 'rate_limited'],
        [[{ ...minute, quotaValue: '0' }], 'quota_exhausted'],
        [[{ ...minute, quotaValue: 0 }], 'quota_exhausted'],
        [[{ ...minute, quotaValue: '10' }], 'rate_limited'],
        [[{}, null, 'x', { quotaId: { toString: 1, valueOf: 1 } }], 'rate_limited'],
      ];
      for (const [violations, code] of rows) {
        expect(codeOfQuota(violations, 'per day'), JSON.stringify(violations)).to.equal(code);
      }
    });

    it('by the words, where no quota is named', () => {
      for (const violations of [undefined, null, 'x', []]) {
        expect(codeOfQuota(violations, 'Quota exceeded: 5 per day')).to.equal('quota_exhausted');
        expect(codeOfQuota(violations, 'Quota exceeded: 5 per minute')).to.equal('rate_limited');
      }
    });

    it('by a limit of nothing, though a wait is named too', () => {
      const metric = 'generativelanguage.googleapis.com/generate_content_free_tier_requests';
      const minute = { quotaId: 'GenerateRequestsPerMinutePerProjectPerModel-FreeTier', quotaMetric: metric };
      const gemini = (limit: string): string =>
        `You exceeded your current quota.\n* Quota exceeded for metric: ${metric}, limit: 15, model: m\n` +
        `* Quota exceeded for metric: ${metric}, limit: ${limit}\nPlease retry in 25.4s.`;
      expect(codeOfQuota([minute], gemini('0, model: m'))).to.equal('quota_exhausted');
      for (const limit of ['10', '0.5', '05']) expect(codeOfQuota([minute], gemini(limit))).to.equal('rate_limited');
      expect(codeOf('on tokens per min (TPM): Limit 0, Used 0, Requested 5', 429)).to.equal('quota_exhausted');
      expect(codeOf('rate limit: 0 requests remaining', 429)).to.equal('rate_limited');
    });

    it("not by Gemini's words for every quota, which it has for one per minute too", () => {
      const message = 'You exceeded your current quota, please check your plan and billing details.';
      const reason = { reason: 'RATE_LIMIT_EXCEEDED' };
      const body = { error: { code: 429, status: 'RESOURCE_EXHAUSTED', message, details: [reason] } };
      expect(judge(readErrorBody(body), 429).code).to.equal('rate_limited');
      expect(judge(readErrorBody({ error: { message, details: [reason] } }), 429).code).to.equal('quota_exhausted');
    });
  });

  it('takes what a filter says of the request for a filtered one', () => {
    for (const inside of [{ innererror: { content_filter_result: {} } }, { metadata: { flagged_input: 'x' } }]) {
      expect(judge(readErrorBody({ error: { message: 'x', ...inside } }), 400).code).to.equal('content_filtered');
      expect(judge(readErrorBody({ error: { message: 'x', ...inside } }), 500).code).to.equal('server_error');
    }
  });
});
