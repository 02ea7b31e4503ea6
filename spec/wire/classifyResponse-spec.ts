import { expect } from 'chai';
import type { ErrorCode } from '../../lib/core/errors.ts';
import type { SluiceError } from '../../lib/core/errors.ts';
import { classifyResponse } from '../../lib/wire/classify.ts';
import { headerReader } from '../../lib/wire/headers.ts';

function classified(status: number, body?: unknown, headers: Record<string, string> = {}): SluiceError {
  return classifyResponse({
    status,
    headers: headerReader(headers),
    body,
    wallNowMs: 0,
    requestId: 'req_1',
    model: 'm1',
  });
}

const failure = (message: string, type?: string, code?: string | number): unknown => ({
  error: { message, type, code, param: null },
});

type Row = readonly [name: string, status: number, body: unknown, code: ErrorCode, retryable: boolean];

const ROWS: readonly Row[] = [
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

describe('classifyResponse', () => {
  describe('tells by the body', () => {
    for (const [name, status, body, code, retryable] of ROWS) {
      it(`${name}: ${code}`, () => {
        const error = classified(status, body);
        expect(error).to.include({ code, retryable, status, source: 'upstream', model: 'm1', requestId: 'req_1' });
        expect(error.message).to.not.include('[object');
      });
    }
  });

  it('tells by the status when there is no body', () => {
    const expected: Readonly<Record<number, ErrorCode>> = {
      302: 'bad_request',
      400: 'bad_request',
      401: 'auth',
      402: 'quota_exhausted',
      403: 'auth',
      404: 'not_found',
      405: 'not_found',
      407: 'auth',
      408: 'timeout',
      409: 'conflict',
      410: 'not_found',
      413: 'request_too_large',
      415: 'bad_request',
      422: 'bad_request',
      425: 'overloaded',
      429: 'rate_limited',
      451: 'content_filtered',
      498: 'overloaded',
      500: 'server_error',
      501: 'server_error',
      502: 'server_error',
      503: 'server_error',
      504: 'server_error',
      520: 'server_error',
      522: 'server_error',
      524: 'server_error',
      529: 'overloaded',
      599: 'server_error',
    };
    const codes = Object.fromEntries(Object.keys(expected).map((status) => [status, classified(Number(status)).code]));
    expect(codes).to.deep.equal(expected);
    for (const status of [408, 409, 425, 429, 500, 502, 503, 504, 520, 522, 524, 529]) {
      expect(classified(status).retryable, String(status)).to.equal(true);
    }
  });

  it('takes a 503 that says when to come back for an overload', () => {
    expect(classified(503, undefined, { 'retry-after': '5' })).to.include({ code: 'overloaded', retryAfterMs: 5_000 });
  });

  it('obeys x-should-retry over everything else, and keeps the code', () => {
    expect(classified(503, undefined, { 'x-should-retry': 'false' })).to.include({
      code: 'server_error',
      retryable: false,
    });
    expect(classified(400, undefined, { 'x-should-retry': 'true' })).to.include({
      code: 'bad_request',
      retryable: true,
    });
  });

  it('names the sizes of what was too large', () => {
    expect(
      classified(429, failure('Request too large: Limit 30,000, Requested 60,000.', 'tokens', 'rate_limit_exceeded')),
    ).to.include({ limit: 30_000, requested: 60_000 });
    const context = [
      'prompt is too long: 210000 tokens > 200000 maximum',
      'The input token count (210000) exceeds the maximum number of tokens allowed (200000).',
      "This model's maximum context length is 200000 tokens. However, you requested 210000 tokens (200000 in the messages, 10000 in the completion).",
    ];
    for (const message of context) {
      expect(classified(400, failure(message, 'invalid_request_error')), message).to.include({
        code: 'context_too_long',
        limit: 200_000,
        requested: 210_000,
      });
    }
  });

  it('carries the hint of a failure that is not to be retried', () => {
    const error = classified(429, {
      error: { type: 'usage_limit_reached', message: 'limit reached', resets_in_seconds: 7_139 },
    });
    expect(error).to.include({ code: 'quota_exhausted', retryAfterMs: 7_139_000 });
  });

  it("keeps the provider's own names, and its request id where no header had one", () => {
    const body = { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' }, request_id: 'req_011' };
    const error = classifyResponse({ status: 529, headers: headerReader({}), body, wallNowMs: 0 });
    expect(error).to.include({
      providerType: 'overloaded_error',
      requestId: 'req_011',
      message: '529 overloaded_error: Overloaded',
    });
    expect(classified(400, failure('x', 'invalid_request_error', 'unknown_parameter'))).to.include({
      providerCode: 'unknown_parameter',
      providerType: 'invalid_request_error',
    });
  });

  describe('pages', () => {
    const page =
      '<!DOCTYPE html><html><head><title>502: Bad gateway</title><style>a{}</style></head><body>cloud&nbsp;edge <script>x("rate limit")</script></body></html>';
    const html = { 'content-type': 'text/html; charset=UTF-8' };

    it('are told by their status, and shown without markup', () => {
      const error = classified(502, page, html);
      expect(error).to.include({ code: 'server_error', retryable: true, status: 502, contentType: 'text/html' });
      expect(error.message).to.equal('502 text/html: 502: Bad gateway cloud edge');
    });

    it('are known by how they begin as well', () => {
      expect(classified(502, page).message).to.include('Bad gateway');
      expect(classified(524, '<html>timeout</html>', html)).to.include({ code: 'server_error', retryable: true });
    });

    it('in a 200 are no answer', () => {
      const error = classified(200, page, html);
      expect(error).to.include({ code: 'upstream_body_invalid', status: 200, contentType: 'text/html' });
      expect(classified(200, `<html>${'rate '.repeat(1_000)}</html>`, html).message.length).to.be.below(240);
    });
  });

  it('tells an error in the body of a 200 by the body, and does not call it a 200', () => {
    expect(classified(200, { error: { code: 502, message: 'Worker limit reached (33/32)' } })).to.include({
      code: 'overloaded',
      status: 502,
    });
    expect(classified(200, { error: { type: 'overloaded_error', message: 'Overloaded' } })).to.include({
      code: 'overloaded',
      status: undefined,
    });
    expect(classified(200, 'garbage')).to.include({ code: 'upstream_body_invalid', status: 200 });
    expect(classified(200, undefined)).to.include({ code: 'upstream_body_invalid', status: 200 });
    expect(classified(200, { foo: 1 })).to.include({ code: 'upstream_body_invalid', status: 200 });
  });

  it('says by what it goes: the status, the first name that is another, and what may be shown of the message', () => {
    const messages: readonly (readonly [string, number, unknown, Record<string, string>?])[] = [
      ['500 no_room: limit', 500, failure('limit', 'server_error', 'no_room')],
      ['500 server_error: limit', 500, failure('limit', 'server_error', '500')],
      ['500: limit', 500, failure('limit', undefined, '500')],
      ['500: limit', 500, failure('limit'), { 'content-type': 'application/json' }],
      ['500 no_room', 500, failure('bobby', 'server_error', 'no_room')],
      ['500 no_room', 500, failure('', 'server_error', 'no_room')],
      ['500 text/plain', 500, undefined, { 'content-type': 'text/plain' }],
      ['answered with status 500', 500, undefined],
      ['answered with status 500', 500, failure('bobby')],
      ['error in the answer: limit', 200, failure('limit')],
      ['error in the answer', 200, failure('bobby')],
      ['502 text/html: Bad gateway', 502, '<p>Bad gateway', { 'content-type': 'text/html' }],
      ['502: Bad gateway', 502, ' \n<!DOCTYPE html>Bad gateway'],
      ['502: see … gateway', 502, 'see <html>Bad gateway'],
      ['502: … gateway', 502, `${' '.repeat(500)}<html>Bad gateway`],
      ['502: Bad gateway', 502, 'Bad gateway', { 'content-type': 'text/plain' }],
    ];
    for (const [message, status, body, headers] of messages) {
      expect(classified(status, body, headers).message, JSON.stringify(body)).to.equal(message);
    }
  });

  it('names the content type of a page, and of what is no answer at all', () => {
    const typeOf = (status: number, body: unknown, type: string): string | undefined =>
      classified(status, body, { 'content-type': type }).contentType;
    expect(typeOf(502, 'x', 'text/html')).to.equal('text/html');
    expect(typeOf(502, '<html>x', 'text/plain')).to.equal('text/plain');
    expect(typeOf(200, 'x', 'text/plain')).to.equal('text/plain');
    expect(typeOf(502, 'x', 'text/plain')).to.equal(undefined);
    expect(typeOf(500, failure('x'), 'application/json')).to.equal(undefined);
  });

  it('takes an answer of status 2xx without an error for a broken one, and of no other status', () => {
    for (const status of [200, 299]) expect(classified(status, {}).code, `${status}`).to.equal('upstream_body_invalid');
    for (const status of [199, 300]) expect(classified(status, {}).code, `${status}`).to.equal('bad_request');
  });

  it('takes nothing but a 503 for an overload because of the time that it names', () => {
    const hint = { 'retry-after': '1' };
    expect([503, 500, 404].map((status) => classified(status, undefined, hint).code)).to.deep.equal([
      'overloaded',
      'server_error',
      'not_found',
    ]);
    expect(classified(503).code).to.equal('server_error');
    expect(classified(503, failure('x', undefined, 'invalid_api_key'), hint).code).to.equal('auth');
  });

  it('keeps the id of the request where it can be one, and no key', () => {
    const idOf = (id: unknown): string | undefined =>
      classifyResponse({
        status: 500,
        headers: headerReader({}),
        body: { error: { message: 'x', request_id: id } },
        wallNowMs: 0,
      }).requestId;
    for (const id of ['req_1', 'a.b:c/d-e', 'task-1', 'sky_1', 'x'.repeat(128)]) expect(idOf(id), id).to.equal(id);
    for (const id of ['', 'a b', 'req_1\n', ' req_1', 'x'.repeat(129), 'sk-1', 'SK_1', 'Bearer_1', undefined]) {
      expect(idOf(id), id).to.equal(undefined);
    }
  });
});
