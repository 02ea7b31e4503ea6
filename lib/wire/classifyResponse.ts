import { SluiceError } from '../core/errors.ts';
import type { ErrorCause } from '../core/errors.ts';
import type { RateLimitHints } from '../core/hints.ts';
import { holdsError, isFields, readErrorBody, unwrapBody } from './errorBody.ts';
import type { ErrorFacts } from './errorBody.ts';
import { headerOf, NO_HEADERS } from './headers.ts';
import { hintsOf } from './hints.ts';
import type { AnswerHead } from './hints.ts';
import { judge } from './judge.ts';
import type { Verdict } from './judge.ts';
import { redact, redactContentType, redactHtml, redactName } from './redact.ts';

/** An answer that is a failure: its head, and its body in so far as it was read. */
export interface HttpFailure extends AnswerHead {
  readonly requestId?: string | undefined;
  readonly model?: string | undefined;
  /** What was thrown, where the failure reached us as an exception. */
  readonly cause?: ErrorCause | undefined;
}

/**
 * Tells what a failed answer is: one that is not 2xx, or a 2xx whose body is an error or no JSON at all. By the names in
 * the body first, then its words, then the status; `x-should-retry` decides on `retryable` whatever the rest says.
 *
 * The error carries the hint, the status, the request id and the provider's own names. Of the provider's message it
 * keeps what {@link redact} lets through.
 */
export function classifyResponse(failure: HttpFailure): SluiceError {
  const { status, headers, body } = failure;
  const facts = readErrorBody(body);
  const hints = hintsOf(failure, facts);
  const contentType = redactContentType(headerOf(headers, 'content-type'));
  const unwrapped = unwrapBody(body);
  const page = pageOf(unwrapped, contentType);
  const succeeded = status >= 200 && status < 300;
  if (succeeded && !(isFields(unwrapped) && holdsError(unwrapped))) {
    return build({ code: 'upstream_body_invalid' }, failure, undefined, hints, contentType, page);
  }
  const named = facts?.status;
  const known = succeeded ? named : status;
  const verdict = judge(page === undefined ? facts : undefined, known);
  // A 503 that asks to be tried later is an overload; without a word it may be anything.
  const waits = verdict.code === 'server_error' && status === 503 && hints?.retryAfterMs !== undefined;
  return build(
    waits ? { code: 'overloaded' } : verdict,
    { ...failure, status: known ?? 0 },
    facts,
    hints,
    contentType,
    page,
  );
}

/** What is known of the answer that an error stands in. */
export interface StreamContext {
  readonly status: number;
  readonly requestId: string | undefined;
  readonly model: string | undefined;
}

/**
 * Tells whether a parsed chunk, or the body of a 200, is an error: `{ error }` with text, object, numeric or no code,
 * `{ type: 'error' }` flat or nested, `{ object: 'error' }`, `response.failed`, an error beside empty choices or inside
 * a choice, any of them wrapped in an array. `undefined` where it is none.
 *
 * The status of the error is the one its body names: a 200 that held an error is no success.
 */
export function classifyInStream(value: unknown, context: StreamContext): SluiceError | undefined {
  const body = unwrapBody(value);
  if (!isFields(body) || !(holdsError(body) || hasFailedChoice(body))) return undefined;
  return classifyErrorObject(body, context);
}

/** {@link classifyInStream} for what is known to be an error, such as the data of an `event: error`. */
export function classifyErrorObject(value: unknown, context: StreamContext): SluiceError {
  const facts = readErrorBody(value);
  const head: HttpFailure = {
    status: facts?.status ?? 0,
    headers: NO_HEADERS,
    body: value,
    wallNowMs: NaN,
    requestId: context.requestId,
    model: context.model,
  };
  return build(judge(facts, facts?.status), head, facts, hintsOf(head, facts));
}

function hasFailedChoice(body: Record<string, unknown>): boolean {
  const choices = body['choices'];
  return Array.isArray(choices) && isFields(choices[0]) && isFields(choices[0]['error']);
}

function build(
  { code, limit, requested }: Verdict,
  failure: HttpFailure,
  facts: ErrorFacts | undefined,
  hints: RateLimitHints | undefined,
  contentType?: string,
  page?: string,
): SluiceError {
  const status = failure.status > 0 ? failure.status : undefined;
  const providerCode = redactName(facts?.code);
  const providerType = redactName(facts?.type);
  const said = page === undefined ? redact(facts?.message ?? '') : redactHtml(page);
  const name = [providerCode, providerType].find((each) => each !== undefined && each !== String(status));
  const what = name ?? (facts && page === undefined ? undefined : contentType);
  return new SluiceError(code, messageOf(status, what, said), {
    retryable: hints?.shouldRetry,
    retryAfterMs: hints?.retryAfterMs,
    status,
    requestId: [failure.requestId, facts?.requestId].find(isRequestId),
    model: failure.model,
    limit,
    requested,
    providerCode,
    providerType,
    contentType: page !== undefined || code === 'upstream_body_invalid' ? contentType : undefined,
    cause: failure.cause,
  });
}

function messageOf(status: number | undefined, what: string | undefined, said: string): string {
  const whose = status ?? 'error in the answer';
  const head = what === undefined ? String(whose) : `${whose} ${what}`;
  if (said !== '' && said !== '…') return `${head}: ${said}`;
  return status !== undefined && what === undefined ? `answered with status ${status}` : head;
}

/** A page of a proxy, as it says or as it begins. JSON is none, whatever it is called. */
function pageOf(body: unknown, contentType: string | undefined): string | undefined {
  if (typeof body !== 'string') return undefined;
  const begins = /^\s*<(?:!doctype|html|head|body|\?xml)/i.test(body.slice(0, 500));
  return contentType === 'text/html' || begins ? body : undefined;
}

function isRequestId(id: string | undefined): boolean {
  return id !== undefined && /^[\w.:\-/]{1,128}$/.test(id) && !/^(?:sk|bearer)[-_ ]/i.test(id);
}
