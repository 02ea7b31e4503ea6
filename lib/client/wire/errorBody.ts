import type { ErrorCode, SluiceError } from '../../core/errors.ts';

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

/** What `error` says, as providers say it. */
export function errorBody(error: SluiceError): { readonly error: Readonly<Record<string, unknown>> } {
  const { message, providerType, providerCode, code } = error;
  return { error: { message, type: providerType ?? code, param: null, code: providerCode ?? code } };
}

/** The status of an answer that says so: that of the provider where it gave one. */
export function statusOf({ status, code }: SluiceError): number {
  return status !== undefined && status >= 400 ? status : (STATUS[code] ?? 500);
}

/** What tells a caller when to come back, and its SDK not to come back at once: that has been tried. */
export function waitHeaders({ retryAfterMs }: SluiceError): Readonly<Record<string, string>> {
  const told = { 'x-should-retry': 'false' };
  if (retryAfterMs === undefined || !Number.isFinite(retryAfterMs)) return told;
  return {
    ...told,
    'retry-after-ms': String(Math.ceil(retryAfterMs)),
    'retry-after': String(Math.ceil(retryAfterMs / 1000)),
  };
}
