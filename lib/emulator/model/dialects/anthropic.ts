import type { LimitState } from '../ProviderQuota.ts';
import type { Dialect, ErrorReply, HeaderFacts, ProviderErrorFacts, ProviderErrorKind } from './Dialect.ts';
import { rfc3339, wholeSeconds } from './formats.ts';
import { openaiMessage } from './openai.ts';

const TYPES: Readonly<Record<ProviderErrorKind, readonly [status: number, type: string]>> = {
  requests: [429, 'rate_limit_error'],
  tokens: [429, 'rate_limit_error'],
  too_large: [413, 'request_too_large'],
  concurrency: [429, 'rate_limit_error'],
  slow_down: [429, 'rate_limit_error'],
  quota_exhausted: [400, 'billing_error'],
  daily: [429, 'rate_limit_error'],
  overloaded: [529, 'overloaded_error'],
  server_error: [500, 'api_error'],
  bad_request: [400, 'invalid_request_error'],
  context_too_long: [400, 'invalid_request_error'],
  content_filtered: [400, 'invalid_request_error'],
  prefix_refused: [400, 'invalid_request_error'],
  model_not_found: [404, 'not_found_error'],
  auth: [401, 'authentication_error'],
};

export function anthropicBody(facts: ProviderErrorFacts): unknown {
  return { type: 'error', error: { type: TYPES[facts.kind][1], message: messageOf(facts) } };
}

function messageOf(facts: ProviderErrorFacts): string {
  switch (facts.kind) {
    case 'overloaded':
      return 'Overloaded';
    case 'context_too_long':
      return `prompt is too long: ${facts.requested ?? 0} tokens > ${facts.limit ?? 0} maximum`;
    case 'quota_exhausted':
      return 'Your credit balance is too low to access the API. Please go to Plans & Billing to upgrade or purchase credits.';
    default:
      return openaiMessage(facts);
  }
}

function headers({ requestId, requests, tokens, wallMs }: HeaderFacts): Record<string, string> {
  const out: Record<string, string> = { 'request-id': requestId };
  const report = (name: string, state: LimitState, step: number): void => {
    out[`anthropic-ratelimit-${name}-limit`] = String(state.perMinute);
    out[`anthropic-ratelimit-${name}-remaining`] = String(Math.round(state.remaining / step) * step);
    out[`anthropic-ratelimit-${name}-reset`] = rfc3339(wallMs + Math.min(state.msUntilFull, 86_400_000));
  };
  if (requests) report('requests', requests, 1);
  // Remaining tokens are rounded to thousands.
  if (tokens) report('tokens', tokens, 1000);
  return out;
}

function error(facts: ProviderErrorFacts): ErrorReply {
  const { retryAfterMs } = facts;
  const waits = retryAfterMs !== undefined && Number.isFinite(retryAfterMs);
  const wait: Record<string, string> = waits ? { 'retry-after': wholeSeconds(retryAfterMs) } : {};
  return { status: TYPES[facts.kind][0], headers: wait, body: anthropicBody(facts) };
}

/** `anthropic-ratelimit-*` with RFC 3339 resets, 529 for overload. Reserved tokens are corrected to those used. */
export const anthropicDialect: Dialect = { name: 'anthropic', settle: 'usage', headers, error };
