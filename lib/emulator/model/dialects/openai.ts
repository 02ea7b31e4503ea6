import type { Dialect, ErrorReply, HeaderFacts, ProviderErrorFacts, ProviderErrorKind } from './Dialect.ts';
import { goDuration, wholeSeconds } from './formats.ts';

interface Words {
  readonly status: number;
  readonly type: string;
  readonly code: string | null;
  readonly message: string;
}

/** OpenAI's statuses, types and codes; other dialects differ from them in part. */
export const OPENAI_WORDS: Readonly<Record<ProviderErrorKind, Words>> = {
  requests: { status: 429, type: 'requests', code: 'rate_limit_exceeded', message: '' },
  tokens: { status: 429, type: 'tokens', code: 'rate_limit_exceeded', message: '' },
  too_large: { status: 429, type: 'tokens', code: 'rate_limit_exceeded', message: '' },
  concurrency: {
    status: 429,
    type: 'requests',
    code: 'rate_limit_exceeded',
    message: 'Too many concurrent requests. Please try again later.',
  },
  slow_down: {
    status: 429,
    type: 'rate_limit_error',
    code: 'slow_down',
    message: 'Please slow down your requests to help us scale. Reduce your request rate, then increase it gradually.',
  },
  quota_exhausted: {
    status: 429,
    type: 'insufficient_quota',
    code: 'insufficient_quota',
    message: 'You exceeded your current quota, please check your plan and billing details.',
  },
  daily: { status: 429, type: 'requests', code: 'rate_limit_exceeded', message: '' },
  overloaded: {
    status: 503,
    type: 'service_unavailable_error',
    code: 'server_is_overloaded',
    message: 'The server is currently overloaded. Please try again later.',
  },
  server_error: {
    status: 500,
    type: 'server_error',
    code: null,
    message: 'The server had an error while processing your request.',
  },
  bad_request: { status: 400, type: 'invalid_request_error', code: null, message: 'Invalid request.' },
  context_too_long: { status: 400, type: 'invalid_request_error', code: 'context_length_exceeded', message: '' },
  content_filtered: {
    status: 400,
    type: 'invalid_request_error',
    code: 'content_policy_violation',
    message: 'Your request was rejected as a result of our safety system.',
  },
  prefix_refused: {
    status: 400,
    type: 'invalid_request_error',
    code: null,
    message: 'This model does not support assistant message prefill. The conversation must end with a user message.',
  },
  model_not_found: { status: 404, type: 'invalid_request_error', code: 'model_not_found', message: '' },
  auth: { status: 401, type: 'invalid_request_error', code: 'invalid_api_key', message: 'Incorrect API key provided.' },
};

/** The sentence that goes with an error. */
export function openaiMessage(facts: ProviderErrorFacts): string {
  const { kind, model, limit, used, requested, retryAfterMs } = facts;
  if (facts.message !== undefined) return facts.message;
  // A limit of nothing would mean a quota that waiting does not help.
  const most = limit ?? 1;
  const amounts = `Limit ${most}, Used ${used ?? most}, Requested ${requested ?? 1}.`;
  const again = retryAfterMs === undefined ? '' : ` Please try again in ${goDuration(retryAfterMs)}.`;
  switch (kind) {
    case 'requests':
      return `Rate limit reached for ${model} on requests per min (RPM): ${amounts}${again}`;
    case 'tokens':
      return `Rate limit reached for ${model} on tokens per min (TPM): ${amounts}${again}`;
    case 'daily':
      return `Rate limit reached for ${model} on requests per day (RPD): ${amounts}${again}`;
    case 'too_large':
      return `Request too large for ${model} on tokens per min (TPM): Limit ${limit ?? 0}, Requested ${requested ?? 0}. The input or output tokens must be reduced in order to run successfully.`;
    case 'context_too_long':
      return `This model's maximum context length is ${limit ?? 0} tokens. However, you requested ${requested ?? 0} tokens. Please reduce the length of the messages.`;
    case 'model_not_found':
      return `The model \`${model}\` does not exist or you do not have access to it.`;
    default:
      return OPENAI_WORDS[kind].message;
  }
}

export function openaiBody(facts: ProviderErrorFacts): unknown {
  const { type, code } = OPENAI_WORDS[facts.kind];
  return { error: { message: openaiMessage(facts), type, param: facts.param ?? null, code } };
}

export function openaiRetryHeaders(retryAfterMs: number | undefined): Record<string, string> {
  if (retryAfterMs === undefined || !Number.isFinite(retryAfterMs)) return {};
  return { 'retry-after-ms': String(Math.ceil(retryAfterMs)), 'retry-after': wholeSeconds(retryAfterMs) };
}

function headers({ requestId, requests, tokens }: HeaderFacts): Record<string, string> {
  const out: Record<string, string> = { 'x-request-id': requestId };
  if (requests) {
    out['x-ratelimit-limit-requests'] = String(requests.perMinute);
    out['x-ratelimit-remaining-requests'] = String(requests.remaining);
    out['x-ratelimit-reset-requests'] = goDuration(requests.msUntilFull);
  }
  if (tokens) {
    out['x-ratelimit-limit-tokens'] = String(tokens.perMinute);
    out['x-ratelimit-remaining-tokens'] = String(tokens.remaining);
    out['x-ratelimit-reset-tokens'] = goDuration(tokens.msUntilFull);
  }
  return out;
}

function error(facts: ProviderErrorFacts): ErrorReply {
  return {
    status: OPENAI_WORDS[facts.kind].status,
    headers: openaiRetryHeaders(facts.retryAfterMs),
    body: openaiBody(facts),
  };
}

/** `x-ratelimit-*` with Go durations, `retry-after`, `retry-after-ms`. */
export const openaiDialect: Dialect = { name: 'openai', settle: 'reserved', headers, error };
