import { Observable } from 'rxjs';
import type { AttemptSource } from '../core/attempt.ts';
import { attemptSettings } from './AttemptOptions.ts';
import type { AttemptOptions, AttemptSettings } from './AttemptOptions.ts';
import { AttemptRun } from './AttemptRun.ts';
import type { AttemptCall } from './chunkReader.ts';

/**
 * An attempt over any transport, with what every attempt gets: chunks are held back until the first content, the answer
 * must be whole, no stage may take too long, and the scope, the listeners and the attempt's record hear of it once.
 *
 * ```text
 * source: head -- role -- comment -- "Hel" -------- "lo" -- finish -- usage -- [DONE]
 * result: ---------------------------(role "Hel") - "lo" -- finish ----------- |
 * ```
 *
 * A streamed call emits every parsed chunk; one that is not streamed emits the whole answer. Cold: each subscription is
 * one attempt, and nothing is shared between two. Unsubscribing unsubscribes from `source` in the same tick.
 *
 * Emits as errors: `invalid_request` before anything is sent; `timeout_deadline` where the scope's deadline passes before
 * the first content; `timeout`, `stream_idle`, `stream_truncated`; what a chunk reports; what `source` fails with.
 *
 * @throws SluiceError `invalid_option` for an option out of its range.
 */
export function attemptStream<T>(
  source: AttemptSource,
  call: AttemptCall,
  options: AttemptOptions = {},
): Observable<T> {
  return attemptBy(source, call, attemptSettings(options));
}

/** {@link attemptStream} with options that have been checked. */
export function attemptBy<T>(source: AttemptSource, call: AttemptCall, settings: AttemptSettings): Observable<T> {
  // Hand-written: held chunks, limits and the end share one state, and a chunk may cost neither a timer nor a closure.
  return new Observable<T>((subscriber) => {
    const run = new AttemptRun<T>(subscriber, call, settings);
    subscriber.add(run);
    run.start(source);
  });
}
