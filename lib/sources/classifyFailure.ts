import { SluiceError, UPSTREAM_CODES } from '../core/errors.ts';
import type { SluiceErrorFields, UpstreamErrorCode } from '../core/errors.ts';
import type { ClassifyFailure, FailureVerdict } from './AttemptOptions.ts';

/** What of a failed answer is private, and so not on the error. */
export interface FailedAnswer {
  readonly headers: { get(name: string): string | null };
  readonly body: string | undefined;
}

/** Off the error itself, so that it reaches the user's `classify` and nothing that prints or stores the error. */
const answers = new WeakMap<SluiceError, FailedAnswer>();

export function rememberAnswer(error: SluiceError, answer: FailedAnswer): SluiceError {
  answers.set(error, answer);
  return error;
}

export function answerOf(error: SluiceError): FailedAnswer | undefined {
  return answers.get(error);
}

const CODES: ReadonlySet<string> = new Set(UPSTREAM_CODES);

/** The error as the user's `classify` sees it. A verdict that makes no sense is not heard. */
export function classifyFailure(classify: ClassifyFailure | undefined, error: SluiceError): SluiceError {
  if (classify === undefined || error.source !== 'upstream') return error;
  const answer = answers.get(error);
  let said: UpstreamErrorCode | FailureVerdict | undefined;
  try {
    said = classify({
      code: error.code as UpstreamErrorCode,
      status: error.status,
      providerCode: error.providerCode,
      providerType: error.providerType,
      message: error.message,
      header: (name) => answer?.headers.get(name) ?? undefined,
      body: answer?.body,
    });
  } catch {
    return error;
  }
  const verdict: FailureVerdict = typeof said === 'string' ? { code: said } : (said ?? {});
  const { retryAfterMs, retryable } = verdict;
  const code = verdict.code !== undefined && CODES.has(verdict.code) ? verdict.code : error.code;
  const waits = typeof retryAfterMs === 'number' && Number.isFinite(retryAfterMs) && retryAfterMs >= 0;
  return new SluiceError(code, error.message, {
    ...(error as SluiceErrorFields),
    // A new code brings its own default.
    retryable: typeof retryable === 'boolean' ? retryable : code === error.code ? error.retryable : undefined,
    retryAfterMs: waits ? retryAfterMs : error.retryAfterMs,
    partial: error.partial,
    cause: error.cause,
  });
}
