import { Observable } from 'rxjs';
import { invalidOption } from '../core/errors.ts';
import { attemptSettings } from './AttemptOptions.ts';
import type { AttemptOptions } from './AttemptOptions.ts';
import { CallRun } from './CallRun.ts';

/** Options of {@link fromCall}: those of every source that do not concern the wire. */
export interface FromCallOptions extends Omit<
  AttemptOptions,
  'headers' | 'includeUsage' | 'maxEventBytes' | 'maxHeldChunks' | 'maxHeldBytes'
> {
  /** For events, errors and limits per model. Default: the scope's. */
  readonly model?: string | undefined;
}

/**
 * Any other SDK call: embeddings, images, another vendor's client. A promise gives one value; a promise of an async
 * iterable gives each of its values, pulled one by one at the consumer's pace.
 *
 * ```text
 * call:   ---- value           result: ---- (value |)
 * call:   ---- iterable a b    result: ---- a - b |
 * ```
 *
 * Cold: each subscription calls `call` once, with a signal of its own. Switch the SDK's own retries off in it
 * (`maxRetries: 0`), or limits are counted wrongly.
 *
 * - **Limits:** `timeouts.responseMs` from dispatch until the promise settles (default: the deadline, or 600,000 ms); for an
 *   iterable also `firstContentMs` from dispatch to its first value and `idleMs` between values.
 * - **Not checked:** whether a stream is whole. Use {@link chat} or {@link respond} for those.
 * - **Shared:** nothing. **Unsubscribe:** aborts the signal in the same tick and calls the iterator's `return`; what the
 *   call still does then is observed, so that nothing is left unhandled.
 *
 * Emits as errors ({@link SluiceError}): `timeout`, `stream_idle`, `timeout_deadline`, and what `call` throws or rejects
 * with, by its class.
 *
 * @throws SluiceError `invalid_option` for an option out of its range.
 *
 * @example
 * ```ts
 * import OpenAI from 'openai';
 * import { fromCall } from 'sluice';
 *
 * const openai = new OpenAI();
 * const body = { model: 'text-embedding-3-small', input: ['one', 'two'] };
 * fromCall((signal) => openai.embeddings.create(body, { signal, maxRetries: 0 }), { model: body.model }).subscribe(
 *   ({ data }) => console.log(data.length),
 * );
 * ```
 */
export function fromCall<T>(
  call: (signal: AbortSignal) => PromiseLike<AsyncIterable<T>>,
  options?: FromCallOptions,
): Observable<T>;
export function fromCall<T>(call: (signal: AbortSignal) => PromiseLike<T>, options?: FromCallOptions): Observable<T>;
export function fromCall<T>(
  call: (signal: AbortSignal) => PromiseLike<T | AsyncIterable<T>>,
  options: FromCallOptions = {},
): Observable<T> {
  if (typeof call !== 'function') throw invalidOption('call', 'a function', call);
  const settings = attemptSettings(options);
  // Hand-written: RxJS's `from` does not end an async iterable whose next value is awaited, and takes no pace.
  return new Observable<T>((subscriber) => {
    const run = new CallRun<T>(call, subscriber, settings, options.model);
    subscriber.add(run);
    run.start();
  });
}
