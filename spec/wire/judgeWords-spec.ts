import { expect } from 'chai';
import type { UpstreamErrorCode } from '../../lib/core/errors.ts';
import { readErrorBody } from '../../lib/wire/errorBody.ts';
import { judge } from '../../lib/wire/judge.ts';

const codeOf = (message: string, status: number | undefined): UpstreamErrorCode =>
  judge(readErrorBody({ error: { message } }), status).code;

describe('judge, by words', () => {
  type Words = readonly [code: UpstreamErrorCode, status: number | undefined, phrases: readonly string[]];
  const KNOWN: readonly Words[] = [
    [
      'quota_exhausted',
      400,
      [
        ...['Your credit balance is too low', 'insufficient credits', 'Insufficient Balance', 'insufficient_funds'],
        ...['insufficient quota', 'You exceeded your current quota', 'You are out of credits'],
        ...['This requires more credits', 'no credits left', 'no remaining credits', 'not enough credits'],
        ...['not enough remaining credits', 'spend limit reached', 'spending limit exceeded'],
        ...['billing hard limit has been reached', 'the usage limit was exceeded', 'usage limit is reached'],
        ...['Payment required', 'Access denied: arrearage.'],
      ],
    ],
    [
      'quota_exhausted',
      429,
      [
        ...[
          '200 requests per day',
          '5 per_month',
          '5 per-week',
          'free-models-per-day',
          'Limit (RPD)',
          'over TPD',
          'IPD',
        ],
        ...['daily limit', 'Your monthly quota', 'weekly token allowance', 'Quota exceeded, daily request limit'],
      ],
    ],
    [
      'context_too_long',
      400,
      [
        ...['maximum context length', 'the max context length', 'context length', 'context_window', 'context size'],
        ...['exceed context limit', 'prompt is too long', 'Prompt was too long', 'Input is too long'],
        ...['input was too long', 'The input token count', 'exceeds the maximum number of tokens'],
        ...['exceed the maximum number of input tokens', 'Please reduce the length of the messages'],
        ...['too many tokens', 'too many input tokens', '`inputs` tokens + `max_new_tokens` must be <= 4096'],
        ...['maximum sequence length', 'maximum input length', 'maximum prompt length', 'maximum allowed length'],
        ...['longer than the model allows', 'longer than the maximum'],
      ],
    ],
    [
      'content_filtered',
      400,
      [
        ...['content management policy', 'content filter', 'content policy', 'content policies', 'content moderation'],
        ...['flagged as unsafe', 'flagged by our system', 'flagged for review', 'flagged content', 'safety system'],
        ...['safety filters', 'safety settings', 'usage policy', 'usage policies', 'inappropriate content'],
        ...['requires moderation', 'blocked by content rules', 'blocked due to safety', 'blocked for policy reasons'],
        'blocked by moderation',
      ],
    ],
    [
      'overloaded',
      500,
      [
        ...['Overloaded', 'at capacity', 'over capacity', 'out of capacity', 'no capacity', 'insufficient capacity'],
        ...['limited capacity', 'server busy', 'Server is busy', 'servers are busy', 'high demand', 'heavy load'],
        ...['peak traffic', 'temporarily unavailable', 'model is loading', 'Model is currently loading'],
        ...['model is still loading', 'no available provider', 'no healthy upstream', 'no available worker'],
        ...['no healthy model instance', 'Worker limit reached (33/32)'],
      ],
    ],
    [
      'rate_limited',
      undefined,
      [
        ...['rate limit reached', 'rate-limited', 'RateLimit', 'Too many requests', 'request throttled'],
        ...['quota exceeded', '60 requests per minute', 'one request per second'],
      ],
    ],
    [
      'auth',
      400,
      [
        ...['API key not valid', 'api_key is invalid', 'access key was incorrect', 'the api-key has expired'],
        ...['API key not found', 'apikey missing', 'invalid api key', 'Incorrect API key', 'missing access key'],
        ...['expired api key', 'no api key', 'invalid apikey', 'Unauthorized', 'unauthorised', 'authentication failed'],
        'authentication required',
      ],
    ],
    [
      'not_found',
      400,
      [
        ...['model m not found', "model m doesn't exist", 'Model m does not exist', 'The model m is not exist'],
        ...['model m is not available', 'model m was decommissioned', 'model m is deprecated'],
        ...['model m is not a valid id', 'no such model', 'unknown model', 'invalid model', 'x is not a valid model'],
      ],
    ],
    [
      'request_too_large',
      429,
      [
        ...['Request too large', 'request is too large', 'Request Entity Too Large', 'payload too large'],
        ...['larger than the limit', 'larger than the token limit', 'larger than the rate limit'],
        'larger than the token rate limit',
      ],
    ],
  ];
  for (const [code, status, phrases] of KNOWN) {
    it(`knows ${code} of status ${status}`, () => {
      for (const phrase of phrases) expect(codeOf(phrase, status), phrase).to.equal(code);
    });
  }

  it('knows nothing in words that only look like them', () => {
    const rows: readonly (readonly [code: UpstreamErrorCode, status: number, phrases: readonly string[]])[] = [
      ['bad_request', 400, ['credits are shown', 'quota', 'the billing limit', 'arrearages', 'supermodel found']],
      ['rate_limited', 429, ['once per daylight', 'XRPD', 'the daily report', 'requests per minute', 'large']],
      ['server_error', 500, ['capacity', 'the server', 'worker', 'rate limit', 'unauthorized', 'unknown model']],
    ];
    for (const [code, status, phrases] of rows) {
      for (const phrase of phrases) expect(codeOf(phrase, status), phrase).to.equal(code);
    }
  });

  it('hears the first 4,000 characters, and not what is quoted after them', () => {
    const quoted = (length: number): string => `${'x'.repeat(length - 1)} overloaded`;
    expect([codeOf(quoted(3_990), 500), codeOf(quoted(4_000), 500)]).to.deep.equal(['overloaded', 'server_error']);
  });
});
