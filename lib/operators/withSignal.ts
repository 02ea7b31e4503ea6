import { defer, identity, Observable, takeUntil } from 'rxjs';
import type { MonoTypeOperatorFunction } from 'rxjs';
import { CallScope } from '../core/CallScope.ts';
import { currentScope } from '../core/currentScope.ts';
import { invalidOption } from '../core/errors.ts';
import { systemRuntime } from '../core/runtime.ts';
import type { Runtime } from '../core/runtime.ts';
import { abortError } from './abortError.ts';
import { Progress } from './Progress.ts';
import { scoped } from './scoped.ts';

export interface WithSignalOptions {
  /** Names the call where there is no scope. Default: real time. */
  readonly runtime?: Runtime | undefined;
}

/**
 * Ends the call with `aborted` when `signal` is aborted. To end it without an error, unsubscribe instead.
 *
 * ```text
 * source: ---a---b---c-|
 * signal: ---------!
 * result: ---a---b-#
 * ```
 *
 * The source is unsubscribed from in the same tick, whether the call waits in a line or between two attempts, or has a
 * request on its way, which is aborted. Put it outside retries and fallbacks. A signal that has been aborted already
 * lets nothing start. `undefined` as the signal turns it off.
 *
 * Nothing is shared between subscriptions. Each has one listener on the signal, from its subscription to its end.
 *
 * Emits as errors: what the source fails with; `aborted`, with the stage that the call was in (`while`), the attempts
 * that had failed, and the signal's reason as its `cause`: text as it is, up to 200 characters, of an error the name and
 * the redacted message.
 *
 * @throws SluiceError `invalid_option` if `signal` is no AbortSignal.
 *
 * @example
 * ```ts
 * import OpenAI from 'openai';
 * import { chat, retryWithJitter, withSignal } from 'sluice';
 *
 * const controller = new AbortController();
 * chat(new OpenAI(), { model: 'gpt-5.5', messages: [{ role: 'user', content: 'Hello' }] })
 *   .pipe(retryWithJitter(), withSignal(controller.signal))
 *   .subscribe({ error: (error: unknown) => console.error(error) });
 * process.once('SIGINT', () => controller.abort('interrupted'));
 * ```
 */
export function withSignal<T>(
  signal: AbortSignal | undefined,
  options: WithSignalOptions = {},
): MonoTypeOperatorFunction<T> {
  if (signal === undefined) return identity;
  if (typeof signal?.addEventListener !== 'function') throw invalidOption('signal', 'an AbortSignal', signal);
  const { runtime = systemRuntime } = options;

  return (source) =>
    defer(() => {
      const downward = currentScope();
      const progress = new Progress();
      const scope = (downward ?? CallScope.start(runtime)).with({ sink: progress });
      const aborted$ = abortOf(signal, () => ({
        while: progress.stage,
        model: scope.model,
        attempts: [...scope.call.failed],
      }));
      return scoped(source, scope, downward).pipe(takeUntil(scoped(aborted$, scope, downward)));
    });
}

function abortOf(signal: AbortSignal, fields: () => Parameters<typeof abortError>[2]): Observable<never> {
  // Hand-written: RxJS's `fromEvent` does not see a signal that has been aborted already.
  return new Observable<never>((subscriber) => {
    const abort = (): void => subscriber.error(abortError(signal, 'the signal of the call was aborted', fields()));
    if (signal.aborted) {
      abort();
      return;
    }
    signal.addEventListener('abort', abort);
    subscriber.add(() => signal.removeEventListener('abort', abort));
  });
}
