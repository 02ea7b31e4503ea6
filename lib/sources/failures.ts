import type { WireEvent } from '../core/attempt.ts';
import { isSluiceError, SluiceError } from '../core/errors.ts';
import type { CallStage } from '../core/errors.ts';
import { answerBehind, classifyResponse, classifyThrown } from '../wire/classify.ts';
import { headerOf, NO_HEADERS } from '../wire/headers.ts';
import type { HeaderReader } from '../wire/headers.ts';
import { readHints } from '../wire/hints.ts';
import type { CapturedFailure } from './captureFailures.ts';
import { rememberAnswer } from './classifyFailure.ts';
import type { StageCut } from './StageTimers.ts';

/** What is known of the attempt that failed. */
export interface AboutAttempt {
  readonly model: string | undefined;
  readonly status: number | undefined;
  readonly requestId: string | undefined;
}

const WAITED_FOR: Readonly<Record<CallStage, string>> = {
  entry: 'to be sent',
  lane: 'for its turn',
  queue: 'in the queue',
  backoff: 'to try again',
  headers: 'for the head of the answer',
  first_content: 'for the first content',
  streaming: 'for more content',
  tail: 'for the end',
  response: 'for the answer',
};

export function deadlinePassed(stage: CallStage): SluiceError {
  return new SluiceError('timeout_deadline', `the deadline passed while waiting ${WAITED_FOR[stage]}`, {
    while: stage,
  });
}

/** A limit was reached, or the deadline. */
export function cutError(cut: Exclude<StageCut, { kind: 'tail' }>, { status, requestId }: AboutAttempt): SluiceError {
  if (cut.kind === 'deadline') return deadlinePassed(cut.stage).with({ status, requestId });
  const { stage, limitMs } = cut;
  const code = stage === 'streaming' ? 'stream_idle' : 'timeout';
  const message = `waited ${Math.round(limitMs)} ms ${WAITED_FOR[stage]}`;
  return new SluiceError(code, message, { while: stage, limit: limitMs, status, requestId });
}

/** The body came to a clean end before the answer was whole. */
export function endedEarly(stream: boolean, about: AboutAttempt, wallNowMs: number): SluiceError {
  const { model, status, requestId } = about;
  if (status !== undefined && status >= 400) {
    return classifyResponse({ status, headers: NO_HEADERS, body: undefined, wallNowMs, requestId, model });
  }
  return stream
    ? new SluiceError('stream_truncated', 'the stream ended before the answer was whole', { status, requestId })
    : new SluiceError('upstream_body_invalid', 'the answer is empty', { status, requestId });
}

/** A body with a good status that is not what was asked for. */
export function invalidBody(
  text: string,
  response: { readonly status: number; readonly headers: HeaderReader },
  about: AboutAttempt,
  wallNowMs: number,
): SluiceError {
  const { status, headers } = response;
  const { model, requestId } = about;
  const error = classifyResponse({ status, headers, body: text, wallNowMs, requestId, model });
  return rememberAnswer(error, { headers, body: text });
}

export function thrownError(thrown: unknown, about: AboutAttempt, wallNowMs: number): SluiceError {
  const { model, status, requestId } = about;
  return classifyThrown(thrown, { model, status, requestId, wallNowMs });
}

/** An answer that is a failure, as it came. */
export interface FailedResponse {
  readonly status: number;
  readonly headers: HeaderReader;
  readonly body: string;
}

/** The head of a failed attempt, if there was one, and what it failed of. */
export interface FailedSend {
  readonly head: WireEvent | undefined;
  readonly error: SluiceError;
}

/** A request that got no answer, or one with an error status: its head, if there was one, and its class. */
export function sendFailure(
  thrown: unknown,
  captured: CapturedFailure | undefined,
  model: string | undefined,
  wallNowMs: number,
): FailedSend {
  const behind = isSluiceError(thrown) ? undefined : answerBehind(thrown);
  if (behind === undefined) {
    return {
      head: undefined,
      error: thrownError(thrown, { model, status: undefined, requestId: undefined }, wallNowMs),
    };
  }
  // The SDK may have sent twice, to renew a token; only the answer that it failed with counts.
  if (captured?.shownStatus === behind.status) return failedResponse(captured, model, wallNowMs);
  const { status, headers } = behind;
  const requestId = requestIdOf(headers);
  const error = classifyThrown(thrown, { model, status, requestId, wallNowMs });
  const hints = readHints({ status, headers, body: undefined, wallNowMs });
  return {
    head: { kind: 'head', status, requestId, hints },
    error: rememberAnswer(error, { headers, body: undefined }),
  };
}

/** An answer with an error status. */
export function failedResponse(answer: FailedResponse, model: string | undefined, wallNowMs: number): FailedSend {
  const { status, headers, body } = answer;
  const requestId = requestIdOf(headers);
  const error = classifyResponse({ status, headers, body, wallNowMs, requestId, model });
  const hints = readHints({ status, headers, body, wallNowMs });
  return { head: { kind: 'head', status, requestId, hints }, error: rememberAnswer(error, { headers, body }) };
}

export function requestIdOf(headers: HeaderReader): string | undefined {
  return headerOf(headers, 'x-request-id') ?? headerOf(headers, 'request-id') ?? headerOf(headers, 'apim-request-id');
}
