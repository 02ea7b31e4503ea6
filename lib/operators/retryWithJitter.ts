import { Observable } from 'rxjs';
import type { MonoTypeOperatorFunction, OperatorFunction } from 'rxjs';
import { CallScope } from '../core/CallScope.ts';
import { currentScope } from '../core/currentScope.ts';
import type { Restart } from '../core/restart.ts';
import { RetryRun } from './RetryRun.ts';
import { retrySettings } from './RetryWithJitterOptions.ts';
import type { RetrySettings, RetryWithJitterOptions } from './RetryWithJitterOptions.ts';

/**
 * Subscribes again after a failure that another attempt may mend, as long as nothing has been emitted.
 *
 * ```text
 * source, 1st: --#
 * source, 2nd:         --a-b-|
 * wait:          ------
 * result:      ----------a-b-|
 * ```
 *
 * The wait is exponential with jitter, capped ({@link backoff}). What the provider asked for is a floor to it, never
 * shortened and only added to. Nothing is slept that cannot help: a hint above `maxHintMs` or past the deadline of the
 * call ends it at once with the provider's failure, and so does a wait that does not fit before the deadline.
 *
 * Only failures of a provider are retried. A local refusal (`circuit_open`, `queue_full` and the like) and a cancel
 * pass through. After the first value the stream fails with what it has, unless `midStream` says otherwise; a `Restart`
 * marker is emitted only with `restarts: true`, together with the first value of the new answer. Attempts count on
 * through all of this.
 *
 * Every subscription counts its own attempts; only `budget` is shared, with everyone who was given it. An attempt has
 * been torn down before the wait for the next one starts. Unsubscribe stops the wait, or the attempt, in the same tick.
 *
 * Emits as errors:
 * - the last failure, with `attempts` naming each and, after the first value, the `partial` answer;
 * - `retry_budget_exhausted`: the budget refused the retry; `cause` names the failure it would have mended;
 * - `timeout_deadline`: the next attempt could not start before the deadline; `while` is `'backoff'`;
 * - whatever `shouldRetry` or `continueWith` throw.
 *
 * @throws SluiceError `invalid_option` if an option is out of range.
 *
 * @example Up to 6 attempts, and a fresh start where a stream breaks off
 * ```ts
 * import OpenAI from 'openai';
 * import { chat, isRestart, retryWithJitter } from 'sluice';
 *
 * chat(new OpenAI(), { model: 'gpt-5.5', messages: [{ role: 'user', content: 'Hello' }] })
 *   .pipe(retryWithJitter({ attempts: 6, midStream: 'restart', restarts: true }))
 *   .subscribe((chunk) => {
 *     if (isRestart(chunk)) console.log('\nstarting over');
 *     else process.stdout.write(chunk.choices[0]?.delta.content ?? '');
 *   });
 * ```
 */
export function retryWithJitter<T>(
  options: RetryWithJitterOptions<T> & { readonly restarts: true },
): OperatorFunction<T, T | Restart>;
export function retryWithJitter<T>(
  options?: RetryWithJitterOptions<T> & { readonly restarts?: false | undefined },
): MonoTypeOperatorFunction<T>;
export function retryWithJitter<T>(options: RetryWithJitterOptions<T> = {}): OperatorFunction<T, T | Restart> {
  return retrying(retrySettings(options));
}

/** {@link retryWithJitter} with what has been checked before. */
export function retrying<T>(settings: RetrySettings<T>): OperatorFunction<T, T | Restart> {
  const { runtime, model } = settings;
  return (source) =>
    // Hand-written: the run subscribes for its consumer itself, attempt after attempt.
    new Observable((subscriber) => {
      const downward = currentScope();
      const outer = downward ?? CallScope.start(runtime);
      // Stryker disable next-line ConditionalExpression,LogicalOperator: a copy would say the same
      const scope = model === undefined || model === outer.model ? outer : outer.with({ model });
      new RetryRun(settings, source, scope, downward).attempt(subscriber);
    });
}
