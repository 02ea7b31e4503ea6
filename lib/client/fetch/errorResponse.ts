import type { ErrorCode, SluiceError } from '../../core/errors.ts';
import { isFields } from '../../wire/errorBody.ts';
import type { OwnAnswer } from './ResendingClient.ts';

/** Statuses of failures that no provider gave one. */
const STATUS: Readonly<Partial<Record<ErrorCode, number>>> = {
  rate_limited: 429,
  quota_exhausted: 429,
  queue_full: 429,
  queue_timeout: 429,
  spend_capped: 429,
  request_too_large: 413,
  context_too_long: 400,
  content_filtered: 400,
  bad_request: 400,
  invalid_request: 400,
  cost_too_large: 400,
  auth: 401,
  not_found: 404,
  conflict: 409,
  superseded: 409,
  lane_lost: 409,
  overloaded: 503,
  circuit_open: 503,
  retry_budget_exhausted: 503,
  limiter_unavailable: 503,
  closed: 503,
  connection: 502,
  stream_truncated: 502,
  stream_idle: 504,
  timeout: 504,
  timeout_deadline: 504,
  upstream_body_invalid: 502,
};

/** About the bytes on the way from the provider, which are not those that the caller reads. */
const OF_THE_WIRE = ['content-encoding', 'content-length', 'transfer-encoding', 'connection', 'keep-alive'];

/** What `error` says, as providers say it. */
export function errorBody(error: SluiceError): { readonly error: Readonly<Record<string, unknown>> } {
  const { message, providerType, providerCode, code } = error;
  return { error: { message, type: providerType ?? code, param: null, code: providerCode ?? code } };
}

/**
 * A failed call as an answer that the SDK does not retry. Where `answer` is what the provider said, its headers and body
 * are kept.
 */
export function errorResponse(error: SluiceError, answer: OwnAnswer | undefined): Response {
  const upstream = error.status !== undefined && error.status >= 400 ? error.status : undefined;
  const headers = passedOn(answer?.headers);
  headers.set('content-type', 'application/json');
  headers.set('x-should-retry', 'false');
  headers.delete('retry-after');
  headers.delete('retry-after-ms');
  const { retryAfterMs, requestId } = error;
  if (retryAfterMs !== undefined && Number.isFinite(retryAfterMs)) {
    headers.set('retry-after-ms', String(Math.ceil(retryAfterMs)));
    headers.set('retry-after', String(Math.ceil(retryAfterMs / 1000)));
  }
  if (requestId !== undefined && !headers.has('x-request-id')) setIfValid(headers, 'x-request-id', requestId);
  const body = isErrorBody(answer?.body) ? answer?.body : JSON.stringify(errorBody(error));
  return new Response(body ?? null, { status: upstream ?? STATUS[error.code] ?? 500, headers });
}

/** A copy of a provider's headers for the caller. */
export function passedOn(headers: Headers | undefined): Headers {
  const copy = new Headers(headers);
  for (const name of OF_THE_WIRE) copy.delete(name);
  return copy;
}

export function setIfValid(headers: Headers, name: string, value: string): void {
  try {
    headers.set(name, value);
  } catch {
    // Not every text may stand in a header.
  }
}

function isErrorBody(body: string | undefined): boolean {
  if (body === undefined) return false;
  try {
    const value: unknown = JSON.parse(body);
    return isFields(value) && isFields(value['error']);
  } catch {
    return false;
  }
}
