import { catchError, defer } from 'rxjs';
import type { MonoTypeOperatorFunction, Observable } from 'rxjs';
import { CallScope } from '../core/CallScope.ts';
import { currentScope, runInScope } from '../core/currentScope.ts';
import type { ErrorCode, SluiceError } from '../core/errors.ts';
import { systemRuntime } from '../core/runtime.ts';
import type { Runtime } from '../core/runtime.ts';
import { scoped } from './scoped.ts';
import { CALL_IS_OVER, Turn } from './Turn.ts';

export interface DegradeToOptions {
  /** The only codes that are answered. Default: all that may be. */
  readonly onlyOn?: readonly ErrorCode[] | undefined;
  /** Codes that are not answered. Default: none. */
  readonly except?: readonly ErrorCode[] | undefined;
  /** Default: real time. */
  readonly runtime?: Runtime | undefined;
}

/**
 * Answers with something lesser, such as a cached or canned reply, when all else has failed and nothing has been
 * emitted.
 *
 * ```text
 * source: --#            (overloaded)
 * reply:    (r|)
 * result: --(r|)
 * ```
 *
 * Put it below retries and fallbacks: it acts on every failure and refusal, but not on `aborted`, `superseded`,
 * `closed` and `lane_lost`, since nobody waits for that answer. A deadline that is set further down ends the reply too;
 * to answer a missed deadline, set it further up. After the first value errors are passed on.
 *
 * Nothing is shared between subscriptions. Unsubscribe ends the source or the reply, in the same tick.
 *
 * Emits as errors: what the source fails with where it is not answered; what `reply` throws, or its answer fails with.
 *
 * @param reply - Makes the lesser answer; called when it is needed.
 *
 * @example
 * ```ts
 * import OpenAI from 'openai';
 * import { of } from 'rxjs';
 * import { chat, degradeTo, text } from 'sluice';
 *
 * chat(new OpenAI(), { model: 'gpt-5.5', messages: [{ role: 'user', content: 'Hello' }] })
 *   .pipe(
 *     text(),
 *     degradeTo((failure) => of(`We are busy (${failure.code}), please come back in a minute.`)),
 *   )
 *   .subscribe((part) => process.stdout.write(part));
 * ```
 */
export function degradeTo<T>(
  reply: (failure: SluiceError) => Observable<T>,
  options: DegradeToOptions = {},
): MonoTypeOperatorFunction<T> {
  const { onlyOn, except, runtime = systemRuntime } = options;
  const isAnswered = (code: ErrorCode): boolean =>
    !CALL_IS_OVER.has(code) && onlyOn?.includes(code) !== false && except?.includes(code) !== true;

  return (source) =>
    defer(() => {
      const downward = currentScope();
      const scope = downward ?? CallScope.start(runtime);
      const turn = new Turn(scope, runtime);
      let emitted = false;
      return scoped(source, scope, downward, { first: () => void (emitted = true) }).pipe(
        catchError((error: unknown) => {
          const failure = turn.failure(error);
          if (emitted || !isAnswered(failure.code)) throw failure;
          return scoped(
            runInScope(scope, () => reply(failure)),
            scope,
            downward,
          );
        }),
      );
    });
}
