import type { Answer } from './answer.ts';

/** What a provider, or the way to it, did wrong. */
export type UpstreamErrorCode =
  | 'rate_limited'
  | 'quota_exhausted'
  | 'request_too_large'
  | 'context_too_long'
  | 'content_filtered'
  | 'overloaded'
  | 'server_error'
  | 'bad_request'
  | 'auth'
  | 'not_found'
  | 'conflict'
  | 'connection'
  | 'stream_truncated'
  | 'stream_idle'
  | 'timeout'
  | 'upstream_body_invalid';

/** All of them. */
export const UPSTREAM_CODES: readonly UpstreamErrorCode[] = [
  'rate_limited',
  'quota_exhausted',
  'request_too_large',
  'context_too_long',
  'content_filtered',
  'overloaded',
  'server_error',
  'bad_request',
  'auth',
  'not_found',
  'conflict',
  'connection',
  'stream_truncated',
  'stream_idle',
  'timeout',
  'upstream_body_invalid',
];

/** What this process decided by itself: nothing was sent, or the caller ended it. */
export type LocalErrorCode =
  | 'timeout_deadline'
  | 'aborted'
  | 'superseded'
  | 'circuit_open'
  | 'queue_full'
  | 'queue_timeout'
  | 'cost_too_large'
  | 'retry_budget_exhausted'
  | 'spend_capped'
  | 'lane_lost'
  | 'limiter_unavailable'
  | 'invalid_request'
  | 'invalid_option'
  | 'invalid_policy'
  | 'closed';

export type ErrorCode = UpstreamErrorCode | LocalErrorCode;

/** Codes that a new attempt at the same model can mend, unless the provider said otherwise. */
const MENDED_BY_RETRY: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'rate_limited',
  'overloaded',
  'server_error',
  'conflict',
  'connection',
  'stream_truncated',
  'stream_idle',
  'timeout',
  'upstream_body_invalid',
]);

const LOCAL_CODES: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'timeout_deadline',
  'aborted',
  'superseded',
  'circuit_open',
  'queue_full',
  'queue_timeout',
  'cost_too_large',
  'retry_budget_exhausted',
  'spend_capped',
  'lane_lost',
  'limiter_unavailable',
  'invalid_request',
  'invalid_option',
  'invalid_policy',
  'closed',
]);

/** Whether we declined, or the caller ended it, rather than a provider failed. */
export function isLocalCode(code: ErrorCode): code is LocalErrorCode {
  return LOCAL_CODES.has(code);
}

/** Where a call stood when it was refused or cut. */
export type CallStage =
  'lane' | 'queue' | 'backoff' | 'headers' | 'first_content' | 'streaming' | 'tail' | 'response' | 'entry';

/** One failed attempt of a call, as kept in {@link SluiceError.attempts}. Holds no content. */
export interface AttemptRecord {
  readonly attempt: number;
  readonly model: string | undefined;
  readonly code: ErrorCode;
  readonly status: number | undefined;
  readonly requestId: string | undefined;
  readonly retryAfterMs: number | undefined;
  readonly durationMs: number | undefined;
}

/** A redacted copy of what was caught: never the raw error, which may hold prompts, keys and headers. */
export interface ErrorCause {
  readonly name: string;
  readonly code: string | undefined;
  readonly message: string;
}

export interface SluiceErrorFields {
  readonly retryable?: boolean | undefined;
  readonly retryAfterMs?: number | undefined;
  readonly status?: number | undefined;
  readonly requestId?: string | undefined;
  readonly model?: string | undefined;
  readonly attempt?: number | undefined;
  readonly attempts?: readonly AttemptRecord[] | undefined;
  readonly while?: CallStage | undefined;
  readonly limit?: number | undefined;
  readonly requested?: number | undefined;
  readonly partial?: Answer | undefined;
  readonly cause?: ErrorCause | undefined;
  readonly providerCode?: string | undefined;
  readonly providerType?: string | undefined;
  readonly contentType?: string | undefined;
}

const BRAND: unique symbol = Symbol.for('sluice.error') as never;

/**
 * The only error that this library emits. Tell errors apart by `code`; `source` says whether a provider failed or we
 * declined. No field holds a prompt, a completion, a key or a raw header, but for `partial`, which is non-enumerable
 * and absent from `toJSON`.
 */
export class SluiceError extends Error {
  readonly code: ErrorCode;
  /** `'upstream'`: it was tried and went wrong. `'local'`: we declined, or the caller ended it. */
  readonly source: 'upstream' | 'local';
  /** Whether a new attempt at the same model may mend it. */
  readonly retryable: boolean;
  /** The wait that the provider, or the limiter that refused, asked for. Milliseconds from when the error was made. */
  readonly retryAfterMs: number | undefined;
  /** HTTP status of the answer, if there was one. */
  readonly status: number | undefined;
  readonly requestId: string | undefined;
  readonly model: string | undefined;
  /** Number of the attempt within its call, from 1. */
  readonly attempt: number | undefined;
  /** Every failed attempt of the call so far, oldest first. */
  readonly attempts: readonly AttemptRecord[];
  readonly while: CallStage | undefined;
  /** The limit that was exceeded, in the unit that the message names. */
  readonly limit: number | undefined;
  readonly requested: number | undefined;
  /** The provider's own code and type, such as `insufficient_quota`. */
  readonly providerCode: string | undefined;
  readonly providerType: string | undefined;
  readonly contentType: string | undefined;
  /** What had been received when the stream failed. */
  declare readonly partial: Answer | undefined;
  declare readonly cause: ErrorCause | undefined;

  constructor(code: ErrorCode, message: string, fields: SluiceErrorFields = {}) {
    super(message);
    this.code = code;
    this.source = isLocalCode(code) ? 'local' : 'upstream';
    this.retryable = fields.retryable ?? MENDED_BY_RETRY.has(code);
    this.retryAfterMs = fields.retryAfterMs;
    this.status = fields.status;
    this.requestId = fields.requestId;
    this.model = fields.model;
    this.attempt = fields.attempt;
    this.attempts = fields.attempts ?? [];
    this.while = fields.while;
    this.limit = fields.limit;
    this.requested = fields.requested;
    this.providerCode = fields.providerCode;
    this.providerType = fields.providerType;
    this.contentType = fields.contentType;
    hide(this, 'name', 'SluiceError');
    hide(this, 'partial', fields.partial);
    hide(this, 'cause', fields.cause);
    hide(this, BRAND, true);
  }

  /** The same error with some fields changed; the stack stays that of the first. */
  with(fields: SluiceErrorFields): SluiceError {
    const copy = new SluiceError(this.code, this.message, {
      ...(this as SluiceErrorFields),
      partial: this.partial,
      cause: this.cause,
      ...fields,
    });
    if (this.stack !== undefined) hide(copy, 'stack', this.stack);
    return copy;
  }

  toJSON(): Record<string, unknown> {
    const fields: Record<string, unknown> = { name: this.name, message: this.message };
    for (const [key, value] of Object.entries(this)) fields[key] = value;
    fields['cause'] = this.cause;
    return fields;
  }
}

/** Whether `value` is a {@link SluiceError}, also one made by another copy of this library. */
export function isSluiceError(value: unknown): value is SluiceError {
  return typeof value === 'object' && value !== null && (value as Record<PropertyKey, unknown>)[BRAND] === true;
}

/** For a wrong argument of a factory or operator: names the option, what is accepted and what came. */
export function invalidOption(option: string, accepted: string, value: unknown): SluiceError {
  return new SluiceError('invalid_option', `${option} must be ${accepted}, got ${shown(value)}`);
}

/** For a wrong request: names the field, what is accepted and what came. */
export function invalidRequest(field: string, accepted: string, value: unknown): SluiceError {
  return new SluiceError('invalid_request', `${field} must be ${accepted}, got ${shown(value)}`);
}

/** Never prints the content of a string or object: it might be a prompt or a key. */
function shown(value: unknown): string {
  if (typeof value === 'string') return value === '' ? 'an empty string' : `a string of ${value.length} characters`;
  if (typeof value === 'number' || typeof value === 'boolean' || value === undefined || value === null) {
    return String(value);
  }
  if (Array.isArray(value)) return `an array of ${value.length}`;
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

function hide(target: object, key: PropertyKey, value: unknown): void {
  Object.defineProperty(target, key, { value, enumerable: false, configurable: true, writable: true });
}
