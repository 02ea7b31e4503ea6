import { failure, knowsEach } from '../helpers/classified.ts';
import type { FailedAnswer } from '../helpers/classified.ts';

const ANSWERS: readonly FailedAnswer[] = [
  [
    'OpenAI: requests per minute',
    429,
    failure(
      'Rate limit reached for m on requests per min (RPM): Limit 3, Used 3, Requested 1. Please try again in 20s.',
      'requests',
      'rate_limit_exceeded',
    ),
    'rate_limited',
    true,
  ],
  ['OpenAI: slow down', 429, failure('Slow down', 'rate_limit_error', 'slow_down'), 'rate_limited', true],
  [
    'OpenAI: slow down under its old status',
    503,
    failure('Slow down', 'service_unavailable_error', 'slow_down'),
    'overloaded',
    true,
  ],
  [
    'OpenAI: one request above the limit',
    429,
    failure(
      'Request too large for m on tokens per min (TPM): Limit 30000, Requested 60000.',
      'tokens',
      'rate_limit_exceeded',
    ),
    'request_too_large',
    false,
  ],
  [
    'OpenAI: too large without numbers',
    429,
    failure('Request too large for m.', 'tokens', 'rate_limit_exceeded'),
    'request_too_large',
    false,
  ],
  [
    'OpenAI: insufficient quota',
    429,
    failure(
      'You exceeded your current quota, please check your plan and billing details.',
      'insufficient_quota',
      'insufficient_quota',
    ),
    'quota_exhausted',
    false,
  ],
  [
    'OpenAI: insufficient quota as the type only',
    429,
    failure('x', 'insufficient_quota', 'project_spend_limit_exceeded'),
    'quota_exhausted',
    false,
  ],
  [
    'OpenAI: requests per day',
    429,
    failure(
      'Rate limit reached for m on requests per day (RPD): Limit 200, Used 200, Requested 1. Please try again in 7m12s.',
      'requests',
      'rate_limit_exceeded',
    ),
    'quota_exhausted',
    false,
  ],
  [
    'OpenAI: overloaded',
    503,
    failure('The server is overloaded', 'service_unavailable_error', 'server_is_overloaded'),
    'overloaded',
    true,
  ],
  ['OpenAI: server error', 500, failure('The server had an error', 'server_error'), 'server_error', true],
  [
    'OpenAI: context length',
    400,
    failure(
      "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
      'invalid_request_error',
      'context_length_exceeded',
    ),
    'context_too_long',
    false,
  ],
  [
    'OpenAI: content policy',
    400,
    failure('Your request was rejected', 'invalid_request_error', 'content_policy_violation'),
    'content_filtered',
    false,
  ],
  [
    'OpenAI: key',
    401,
    failure('Incorrect API key provided: sk-abcd.', 'invalid_request_error', 'invalid_api_key'),
    'auth',
    false,
  ],
  [
    'OpenAI: no such model',
    404,
    failure('The model `m` does not exist', 'invalid_request_error', 'model_not_found'),
    'not_found',
    false,
  ],
  [
    'OpenAI: wrong parameter',
    400,
    failure('Unknown parameter', 'invalid_request_error', 'unknown_parameter'),
    'bad_request',
    false,
  ],
  [
    'Azure: rate limit',
    429,
    {
      error: {
        code: '429',
        message:
          'Requests have exceeded token rate limit of your current OpenAI S0 pricing tier. Please retry after 26 seconds.',
      },
    },
    'rate_limited',
    true,
  ],
  [
    'Azure: content filter',
    400,
    {
      error: {
        code: 'content_filter',
        status: 400,
        message: 'The response was filtered',
        innererror: { code: 'ResponsibleAIPolicyViolation' },
      },
    },
    'content_filtered',
    false,
  ],
  [
    'Azure: content filter in the inner error only',
    400,
    { error: { code: null, message: 'x', innererror: { code: 'ResponsibleAIPolicyViolation' } } },
    'content_filtered',
    false,
  ],
  ['Azure: deployment', 404, { error: { code: 'DeploymentNotFound', message: 'x' } }, 'not_found', false],
  [
    'Azure: gateway',
    429,
    { statusCode: 429, message: 'Rate limit is exceeded. Try again in 26 seconds.' },
    'rate_limited',
    true,
  ],
  [
    'Anthropic: rate limit',
    429,
    { type: 'error', error: { type: 'rate_limit_error', message: 'x' }, request_id: 'req_011' },
    'rate_limited',
    true,
  ],
  [
    'Anthropic: spend limit',
    429,
    {
      type: 'error',
      error: { type: 'rate_limit_error', message: 'x', details: { error_code: 'enforced_spend_limit_reached' } },
    },
    'quota_exhausted',
    false,
  ],
  [
    'Anthropic: overloaded',
    529,
    { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } },
    'overloaded',
    true,
  ],
  [
    'Anthropic: credit',
    400,
    {
      type: 'error',
      error: { type: 'invalid_request_error', message: 'Your credit balance is too low to access the API.' },
    },
    'quota_exhausted',
    false,
  ],
  [
    'Anthropic: billing',
    402,
    { type: 'error', error: { type: 'billing_error', message: 'x' } },
    'quota_exhausted',
    false,
  ],
  [
    'Anthropic: prompt too long',
    400,
    {
      type: 'error',
      error: { type: 'invalid_request_error', message: 'prompt is too long: 210000 tokens > 200000 maximum' },
    },
    'context_too_long',
    false,
  ],
  [
    'Anthropic: too large',
    413,
    { type: 'error', error: { type: 'request_too_large', message: 'x' } },
    'request_too_large',
    false,
  ],
  [
    'Anthropic: api error',
    500,
    { type: 'error', error: { type: 'api_error', message: 'Internal server error' } },
    'server_error',
    true,
  ],
];

describe('classifyResponse, of OpenAI, Azure and Anthropic', () => {
  knowsEach(ANSWERS);
});
