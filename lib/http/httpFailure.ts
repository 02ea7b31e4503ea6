import { isSluiceError } from '../core/errors.ts';
import type { ErrorCode } from '../core/errors.ts';
import { statusOf } from '../client/wire/errorBody.ts';
import type { FailureBody } from './AnswerEvent.ts';

/** What the client hears of a failure. It is given every error; by default only a SluiceError's message is told. */
export type MessageOf = (error: unknown) => string | undefined;

/**
 * What a client gets instead of a stream. Has the fields of the package `http-errors`, by which the error handlers of
 * Express, Fastify and Nest answer with its status.
 */
export class HttpFailure extends Error {
  readonly statusCode: number;
  readonly status: number;
  /** The message is for the client. */
  readonly expose: boolean = true;
  readonly headers: Readonly<Record<string, string>>;
  /** `undefined` where nothing is sent: with 204. */
  readonly body: FailureBody | undefined;

  constructor(statusCode: number, message: string, body: FailureBody | undefined) {
    super(message);
    this.name = 'HttpFailure';
    this.statusCode = statusCode;
    this.status = statusCode;
    this.headers = { 'cache-control': 'no-store', ...(body && ofBody(body)) };
    this.body = body;
  }
}

/** Answers of ours where the browser is not at fault: its request is fine, and that of this server was refused. */
const BEHIND_A_SERVER: Readonly<Partial<Record<ErrorCode, number>>> = {
  auth: 502,
  not_found: 502,
  quota_exhausted: 503,
  aborted: 503,
};

/**
 * The status, headers and JSON body for an error, with `retry-after` where a wait is known. Not what the provider
 * answered: a 401 there says that this server's key is wrong, and nothing of the one who asks here.
 */
export function httpFailure(error: unknown, messageOf?: MessageOf): HttpFailure {
  if (error instanceof HttpFailure) return error;
  const body = failureBody(error, messageOf);
  // Not the provider's own status, see above.
  const ours = isSluiceError(error) ? error.with({ status: undefined }) : undefined;
  const status = ours ? (BEHIND_A_SERVER[ours.code] ?? statusOf(ours)) : 500;
  return new HttpFailure(status, body.error.message, body);
}

/** Why a stream ended, for one who reads it. */
export function failureBody(error: unknown, messageOf?: MessageOf): FailureBody {
  const told = toldBy(messageOf, error);
  if (error instanceof HttpFailure && error.body) return error.body;
  if (!isSluiceError(error)) {
    return { error: { message: told ?? 'internal error', type: 'internal', code: 'internal_error', param: null } };
  }
  const { message, source, code, retryAfterMs } = error;
  const body = { error: { message: told ?? message, type: source, code, param: null } };
  return isWait(retryAfterMs) ? { ...body, retryAfterMs: Math.ceil(retryAfterMs) } : body;
}

/** What a user's function throws must not keep the client waiting. */
function toldBy(messageOf: MessageOf | undefined, error: unknown): string | undefined {
  try {
    return messageOf?.(error);
  } catch {
    return undefined;
  }
}

function ofBody({ retryAfterMs }: FailureBody): Record<string, string> {
  return {
    'content-type': 'application/json; charset=utf-8',
    ...(isWait(retryAfterMs) && { 'retry-after': String(Math.ceil(retryAfterMs / 1000)) }),
  };
}

function isWait(retryAfterMs: number | undefined): retryAfterMs is number {
  return retryAfterMs !== undefined && Number.isFinite(retryAfterMs) && retryAfterMs >= 0;
}
