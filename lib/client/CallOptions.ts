import { nonEmpty, oneOf, positiveOrInfinity, wholeNumber } from '../core/checks.ts';
import { invalidOption } from '../core/errors.ts';
import { MID_STREAM_MODES } from '../core/midStream.ts';
import type { MidStreamMode } from '../core/midStream.ts';
import type { CostOption } from '../operators/throttleByBucket.ts';

/** Options of one call. What is not given comes from the policy. */
export interface CallOptions {
  /** Calls of one conversation are answered one after the other, in the order in which they were subscribed to. */
  readonly conversation?: string | undefined;
  /** Who pays: draws on the tenant's quota, share and ceiling. */
  readonly tenant?: string | undefined;
  /** How urgent it is: one of the policy's `priorities.order`. Default: the first of them. */
  readonly priority?: string | undefined;
  /** Until the first content, or the whole answer where it is not streamed. Milliseconds above 0, or `Infinity`. */
  readonly deadlineMs?: number | undefined;
  /** Ends the call with `aborted`. */
  readonly signal?: AbortSignal | undefined;
  /** The consumer handles `Restart` markers. Default: false. */
  readonly restarts?: boolean | undefined;
  /** For telemetry. No prompts and no secrets. */
  readonly attributes?: Readonly<Record<string, string | number | boolean>> | undefined;
  /** Models to ask, in order, in place of the policy's `fallback` and `fallbackOn`. An empty list: none. */
  readonly fallback?: readonly string[] | undefined;
  /** Attempts at each model. A whole number from 1. */
  readonly attempts?: number | undefined;
  /** What to do when a stream fails after its first value. */
  readonly midStream?: MidStreamMode | undefined;
  /** What one attempt takes from quotas. Default: an estimate from the request. */
  readonly cost?: CostOption | undefined;
}

/** Checks what can be checked without a policy. @throws SluiceError `invalid_option` */
export function checkedCallOptions(options: CallOptions): CallOptions {
  const { conversation, tenant, priority, deadlineMs, signal, fallback, attempts, midStream } = options;
  if (conversation !== undefined) nonEmpty('conversation', conversation);
  if (tenant !== undefined) nonEmpty('tenant', tenant);
  if (priority !== undefined) nonEmpty('priority', priority);
  if (deadlineMs !== undefined) positiveOrInfinity('deadlineMs', deadlineMs);
  if (signal !== undefined && typeof signal?.addEventListener !== 'function') {
    throw invalidOption('signal', 'an AbortSignal', signal);
  }
  if (fallback !== undefined && !Array.isArray(fallback)) throw invalidOption('fallback', 'a list of models', fallback);
  if (attempts !== undefined) wholeNumber('attempts', attempts);
  if (midStream !== undefined) oneOf('midStream', midStream, MID_STREAM_MODES);
  return options;
}
