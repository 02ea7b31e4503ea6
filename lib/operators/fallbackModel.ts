import { Observable } from 'rxjs';
import type { MonoTypeOperatorFunction, OperatorFunction } from 'rxjs';
import { CallScope } from '../core/CallScope.ts';
import { currentScope } from '../core/currentScope.ts';
import type { Restart } from '../core/restart.ts';
import { fallbackMap } from './FallbackChain.ts';
import type { FallbackMap } from './FallbackChain.ts';
import { fallbackSettings } from './FallbackModelOptions.ts';
import type { FallbackModelOptions, FallbackSettings } from './FallbackModelOptions.ts';
import { FallbackRun } from './FallbackRun.ts';

/**
 * Asks another model when one fails, as long as nothing has been emitted.
 *
 * ```text
 * source:    --#             (overloaded)
 * ask('b'):    --#           (connection)
 * ask('c'):      ---x-y-|
 * result:    -------x-y-|
 * ```
 *
 * `models` is a list, asked in order, or a map from the code of the failure to such a list, with `default` for codes
 * that it does not name. An empty list in a map leads nowhere. Models listed for the latest failure come before those
 * left over from an earlier one. No model is asked twice in a call, however deep fallbacks are nested, so a cycle of
 * models ends by itself.
 *
 * Every failure of a provider and every refusal of our own leads to a model, but for `bad_request`, `content_filtered`,
 * `invalid_request`, `invalid_option`, `invalid_policy` and `spend_capped`, which a map or `onlyOn` can name. A
 * `bad_request` of a fallback does lead on: the request may have been adapted badly for that one. `aborted`,
 * `superseded`, `closed` and `lane_lost` never do, and nothing is asked once the deadline of the call has passed.
 *
 * A fallback is a first attempt on its model: give it retries, a quota and a breaker of its own inside `ask`. After the
 * first value the stream fails with what it has, unless `midStream` says otherwise; a `Restart` marker is emitted only
 * with `restarts: true`, together with the first value of the next model.
 *
 * Nothing is shared between subscriptions. Unsubscribe ends the model that is being asked, in the same tick.
 *
 * Emits as errors:
 * - the first failure, or the one that broke the answer off, with `attempts` naming what each model answered and
 *   `retryAfterMs` telling when the first of them can be asked again;
 * - whatever `ask` or `continueWith` throw, where that is no SluiceError.
 *
 * @param models - Models to ask, in order, or such lists by code.
 * @param ask - Makes the request to a model; called, and subscribed to, when its turn comes.
 * @param options - See {@link FallbackModelOptions}.
 * @throws SluiceError `invalid_option` if a list names a model twice, or an option is out of range.
 *
 * @example A longer context where that was the cause, else another vendor
 * ```ts
 * import OpenAI from 'openai';
 * import { chat, fallbackModel, retryWithJitter } from 'sluice';
 *
 * const openai = new OpenAI();
 * const ask = (model: string) =>
 *   chat(openai, { model, messages: [{ role: 'user', content: 'Hello' }] }).pipe(retryWithJitter({ attempts: 3 }));
 *
 * ask('gpt-5.5')
 *   .pipe(fallbackModel({ context_too_long: ['gpt-5.5-long'], default: ['deepseek-v3.2'] }, ask))
 *   .subscribe((chunk) => process.stdout.write(chunk.choices[0]?.delta.content ?? ''));
 * ```
 */
export function fallbackModel<T>(
  models: readonly string[] | FallbackMap,
  ask: (model: string) => Observable<T>,
  options: FallbackModelOptions<T> & { readonly restarts: true },
): OperatorFunction<T, T | Restart>;
export function fallbackModel<T>(
  models: readonly string[] | FallbackMap,
  ask: (model: string) => Observable<T>,
  options?: FallbackModelOptions<T> & { readonly restarts?: false | undefined },
): MonoTypeOperatorFunction<T>;
export function fallbackModel<T>(
  models: readonly string[] | FallbackMap,
  ask: (model: string) => Observable<T>,
  options: FallbackModelOptions<T> = {},
): OperatorFunction<T, T | Restart> {
  return fallingBack(fallbackMap(models), ask, fallbackSettings(options));
}

/** {@link fallbackModel} with what has been checked before. */
export function fallingBack<T>(
  map: FallbackMap,
  ask: (model: string) => Observable<T>,
  settings: FallbackSettings<T>,
): OperatorFunction<T, T | Restart> {
  return (source) =>
    // Hand-written: the run subscribes for its consumer itself, model after model.
    new Observable((subscriber) => {
      const downward = currentScope();
      const scope = downward ?? CallScope.start(settings.runtime);
      new FallbackRun(settings, map, ask, scope, downward).start(source, subscriber);
    });
}
