import type { SluiceError } from '../core/errors.ts';
import type { ErrorCode } from '../core/errors.ts';

/** The provider did not answer with an error: it was cut off, by us or on the way. */
const CUT: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'timeout',
  'timeout_deadline',
  'aborted',
  'superseded',
  'stream_idle',
  'stream_truncated',
  'connection',
]);

export interface EndOfAttempt {
  readonly outcome: 'success' | 'failure' | 'dropped';
  readonly error: SluiceError | undefined;
  /** Of the head of an answer, if one came. */
  readonly status: number | undefined;
  readonly streamed: boolean;
  readonly content: boolean;
}

/**
 * Whether a provider has probably billed an attempt that was sent: an answer had begun. The head of one that is not
 * streamed comes with the whole, so there it is enough that it was not the connection that failed.
 */
export function isBilled({ outcome, error, status, streamed, content }: EndOfAttempt): boolean {
  if (outcome === 'success' || content) return true;
  if (error !== undefined && (!CUT.has(error.code) || (error.status ?? 200) >= 400)) return false;
  return status === undefined ? !streamed && error?.code !== 'connection' : status < 400;
}
