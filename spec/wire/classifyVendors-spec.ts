import { failure, knowsEach } from '../helpers/classified.ts';
import type { FailedAnswer } from '../helpers/classified.ts';

const ANSWERS: readonly FailedAnswer[] = [
  [
    'Gemini: per minute',
    429,
    {
      error: {
        code: 429,
        status: 'RESOURCE_EXHAUSTED',
        message: 'You exceeded your current quota, please check your plan and billing details.',
        details: [
          { violations: [{ quotaId: 'GenerateRequestsPerMinutePerProjectPerModel-FreeTier' }] },
          { retryDelay: '20s' },
        ],
      },
    },
    'rate_limited',
    true,
  ],
  [
    'Gemini: per day',
    429,
    {
      error: {
        code: 429,
        status: 'RESOURCE_EXHAUSTED',
        message: 'quota',
        details: [
          { violations: [{ quotaId: 'GenerateRequestsPerDayPerProjectPerModel-FreeTier' }] },
          { retryDelay: '20s' },
        ],
      },
    },
    'quota_exhausted',
    false,
  ],
  [
    'Gemini: a quota of nothing',
    429,
    {
      error: {
        code: 429,
        status: 'RESOURCE_EXHAUSTED',
        message: 'quota',
        details: [{ violations: [{ quotaId: 'PerMinute', quotaValue: '0' }] }],
      },
    },
    'quota_exhausted',
    false,
  ],
  [
    'Vertex: no details, in an array',
    429,
    [{ error: { code: 429, status: 'RESOURCE_EXHAUSTED', message: 'Resource exhausted. Please try again later.' } }],
    'rate_limited',
    true,
  ],
  [
    'Gemini: overloaded',
    503,
    { error: { code: 503, status: 'UNAVAILABLE', message: 'The model is overloaded.' } },
    'overloaded',
    true,
  ],
  [
    'Gemini: key',
    400,
    {
      error: {
        code: 400,
        status: 'INVALID_ARGUMENT',
        message: 'API key not valid.',
        details: [{ reason: 'API_KEY_INVALID' }],
      },
    },
    'auth',
    false,
  ],
  [
    'Gemini: token count',
    400,
    {
      error: {
        code: 400,
        status: 'INVALID_ARGUMENT',
        message: 'The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).',
      },
    },
    'context_too_long',
    false,
  ],
  ['Gemini: deadline', 504, { error: { code: 504, status: 'DEADLINE_EXCEEDED', message: 'x' } }, 'timeout', true],
  ['Groq: flex capacity', 498, failure('capacity', 'capacity_exceeded', 'capacity_exceeded'), 'overloaded', true],
  [
    'Groq: tokens per day',
    429,
    failure(
      'Rate limit reached for model `m` on tokens per day (TPD): Limit 100000, Used 99980, Requested 500. Please try again in 6m54s.',
      'tokens',
      'rate_limit_exceeded',
    ),
    'quota_exhausted',
    false,
  ],
  [
    'Groq: too large',
    413,
    failure(
      'Request too large for model `m` on tokens per minute (TPM): Limit 6000, Requested 8013',
      'tokens',
      'rate_limit_exceeded',
    ),
    'request_too_large',
    false,
  ],
  [
    'Groq: retired model',
    400,
    failure('The model has been decommissioned', 'invalid_request_error', 'model_decommissioned'),
    'not_found',
    false,
  ],
  [
    'Mistral: rate limit',
    429,
    { object: 'error', message: 'Requests rate limit exceeded', type: 'rate_limited', code: '1300' },
    'rate_limited',
    true,
  ],
  [
    'Mistral: capacity',
    429,
    {
      object: 'error',
      message: 'Service tier capacity exceeded for this model.',
      type: 'service_tier_capacity_exceeded',
      code: '3505',
    },
    'overloaded',
    true,
  ],
  [
    'Mistral: validation',
    422,
    { detail: [{ type: 'missing', loc: ['body'], msg: 'Field required' }] },
    'bad_request',
    false,
  ],
  ['Mistral: key', 401, { message: 'Unauthorized', request_id: 'abc' }, 'auth', false],
  ['OpenRouter: numeric code', 429, failure('Rate limited', undefined, 429), 'rate_limited', true],
  [
    'OpenRouter: free models per day',
    429,
    failure('Rate limit exceeded: free-models-per-day. Add credits.', undefined, 429),
    'quota_exhausted',
    false,
  ],
  [
    'OpenRouter: credits',
    402,
    failure('This request requires more credits, or fewer max_tokens.', undefined, 402),
    'quota_exhausted',
    false,
  ],
  ['OpenRouter: requests in flight', 402, failure('x', undefined, 'in_flight_budget_exhausted'), 'rate_limited', true],
  [
    'OpenRouter: moderation',
    403,
    { error: { code: 403, message: 'Your input was flagged', metadata: { reasons: ['x'], flagged_input: 'y' } } },
    'content_filtered',
    false,
  ],
  ['OpenRouter: bad gateway', 502, failure('Provider returned error', undefined, 502), 'server_error', true],
  [
    'OpenRouter: no provider',
    503,
    failure('No available model provider meets your routing requirements', undefined, 503),
    'overloaded',
    true,
  ],
  ['OpenRouter: model id', 400, failure('foo is not a valid model ID', undefined, 400), 'not_found', false],
  [
    'DeepSeek: balance',
    402,
    failure('Insufficient Balance', 'unknown_error', 'invalid_request_error'),
    'quota_exhausted',
    false,
  ],
  ['DeepSeek: busy', 503, failure('Server is busy, please try again later'), 'overloaded', true],
  [
    'Cerebras: context',
    400,
    {
      message: 'Please reduce the length of the messages or completion.',
      type: 'invalid_request_error',
      param: 'messages',
      code: 'context_length_exceeded',
    },
    'context_too_long',
    false,
  ],
  [
    'Cerebras: too many',
    429,
    { message: 'Requests per minute limit exceeded', type: 'too_many_requests_error', code: 'request_quota_exceeded' },
    'rate_limited',
    true,
  ],
  [
    'llama.cpp: context',
    400,
    failure('the request exceeds the available context size', 'exceed_context_size_error', 400),
    'context_too_long',
    false,
  ],
  [
    'vLLM: old shape',
    400,
    {
      object: 'error',
      message: "This model's maximum context length is 4096 tokens.",
      type: 'BadRequestError',
      code: 400,
    },
    'context_too_long',
    false,
  ],
  ['Ollama: text', 404, { error: "model 'x' not found" }, 'not_found', false],
  [
    'Cloudflare: errors',
    429,
    { success: false, errors: [{ code: 10_000, message: 'rate limited' }] },
    'rate_limited',
    true,
  ],
  ['AWS: throttling', 400, { __type: 'ThrottlingException', message: 'Too many requests' }, 'rate_limited', true],
  [
    'a plan limit that resets in hours',
    429,
    { error: { type: 'usage_limit_reached', message: 'limit reached', resets_in_seconds: 7_139 } },
    'quota_exhausted',
    false,
  ],
  [
    'a wrapped error',
    500,
    {
      error: {
        message: 'Provider returned error',
        metadata: { raw: '{"error":{"type":"overloaded_error","message":"Overloaded"}}' },
      },
    },
    'overloaded',
    true,
  ],
  ['plain text', 429, 'Too Many Requests', 'rate_limited', true],
  ['no JSON in a 400', 400, 'Bad Request', 'bad_request', false],
  ['generic names under a status that says more', 429, failure('x', 'invalid_request_error'), 'rate_limited', true],
];

describe('classifyResponse, of other vendors and of gateways', () => {
  knowsEach(ANSWERS);
});
