import { SluiceError } from '../core/errors.ts';
import type { ErrorCause, SluiceErrorFields } from '../core/errors.ts';
import { causeOf } from '../wire/redact.ts';

const LONGEST_REASON = 200;

/** The caller's own cancel, with what the caller said of it as its cause. */
export function abortError({ reason }: AbortSignal, message: string, fields: SluiceErrorFields = {}): SluiceError {
  return new SluiceError('aborted', message, { ...fields, cause: causeOfReason(reason) });
}

/** Text is the caller's own and stays; an error may have come from anywhere, and is redacted like any other. */
function causeOfReason(reason: unknown): ErrorCause {
  if (typeof reason !== 'string') return causeOf(reason);
  return { name: 'AbortError', code: undefined, message: reason.slice(0, LONGEST_REASON) };
}
