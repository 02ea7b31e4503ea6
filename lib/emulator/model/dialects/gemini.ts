import type { Dialect, ErrorReply, ProviderErrorFacts, ProviderErrorKind } from './Dialect.ts';
import { OPENAI_WORDS, openaiMessage } from './openai.ts';

const QUOTA_IDS: Readonly<Partial<Record<ProviderErrorKind, string>>> = {
  requests: 'GenerateRequestsPerMinutePerProjectPerModel',
  tokens: 'GenerateContentInputTokensPerModelPerMinute',
  too_large: 'GenerateContentInputTokensPerModelPerMinute',
  daily: 'GenerateRequestsPerDayPerProjectPerModel-FreeTier',
};

function statusName(status: number): string {
  if (status === 429) return 'RESOURCE_EXHAUSTED';
  if (status === 401) return 'UNAUTHENTICATED';
  if (status === 404) return 'NOT_FOUND';
  if (status === 503) return 'UNAVAILABLE';
  return status >= 500 ? 'INTERNAL' : 'INVALID_ARGUMENT';
}

function error(facts: ProviderErrorFacts): ErrorReply {
  const { status } = OPENAI_WORDS[facts.kind];
  const details: unknown[] = [];
  const quotaId = QUOTA_IDS[facts.kind];
  if (quotaId !== undefined) {
    const violation = { quotaMetric: 'generativelanguage.googleapis.com/generate_requests', quotaId };
    details.push({ '@type': 'type.googleapis.com/google.rpc.QuotaFailure', violations: [violation] });
  }
  if (facts.retryAfterMs !== undefined && Number.isFinite(facts.retryAfterMs)) {
    const retryDelay = `${Math.ceil(facts.retryAfterMs) / 1000}s`;
    details.push({ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay });
  }
  const body = { error: { code: status, message: openaiMessage(facts), status: statusName(status), details } };
  return { status, headers: {}, body };
}

/** No headers; the wait and the quota stand in the details of the body. */
export const geminiDialect: Dialect = { name: 'gemini', settle: 'reserved', headers: () => ({}), error };
