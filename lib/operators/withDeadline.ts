import { defer, identity, map, race, takeUntil, tap } from 'rxjs';
import type { MonoTypeOperatorFunction, Observable } from 'rxjs';
import { CallScope } from '../core/CallScope.ts';
import { currentScope } from '../core/currentScope.ts';
import { positiveOrInfinity } from '../core/checks.ts';
import { SluiceError } from '../core/errors.ts';
import type { CallStage } from '../core/errors.ts';
import { systemRuntime } from '../core/runtime.ts';
import type { Runtime } from '../core/runtime.ts';
import { after } from './after.ts';
import { Progress } from './Progress.ts';
import { scoped } from './scoped.ts';

export interface WithDeadlineOptions {
  /** Cuts the answer too, this long after the start. Milliseconds above 0, or `Infinity`. Default: `Infinity`. */
  readonly totalMs?: number | undefined;
  /** Default: real time. */
  readonly runtime?: Runtime | undefined;
}

export const DEADLINE_DEFAULTS: Readonly<{ totalMs: number }> = Object.freeze({ totalMs: Infinity });

/**
 * Ends the call with `timeout_deadline` unless its first value comes within `deadlineMs`. Time in lanes and queues, all
 * attempts and the waits between them count.
 *
 * ```text
 * source, deadline 5 ms: -------a-|
 * result:                -----#
 *
 * source, deadline 5 ms: ---a-------b-|
 * result:                ---a-------b-|
 * ```
 *
 * Everything above sees the deadline and does not start what cannot end in time: a queue, a hint or a backoff that does
 * not fit ends the call early, or sends it to the next model. Where the call has a deadline already, the earlier one
 * holds. After the first value nothing is cut but by `totalMs`. `Infinity` turns the deadline off.
 *
 * Nothing is shared between subscriptions, each of which has its own deadline. Unsubscribe stops the timers in the same
 * tick.
 *
 * Emits as errors: what the source fails with; `timeout_deadline`, with the stage that the call was in (`while`), the
 * attempts that had failed, and what the last of them said of waiting (`retryAfterMs`).
 *
 * @param deadlineMs - Milliseconds above 0, or `Infinity`, from the subscription on.
 * @throws SluiceError `invalid_option` if a limit is out of range.
 *
 * @example
 * ```ts
 * import OpenAI from 'openai';
 * import { chat, retryWithJitter, withDeadline } from 'sluice';
 *
 * chat(new OpenAI(), { model: 'gpt-5.5', messages: [{ role: 'user', content: 'Hello' }] })
 *   .pipe(retryWithJitter(), withDeadline(20_000))
 *   .subscribe({ error: (error: unknown) => console.error(error) });
 * ```
 */
export function withDeadline<T>(deadlineMs: number, options: WithDeadlineOptions = {}): MonoTypeOperatorFunction<T> {
  const { runtime = systemRuntime } = options;
  const totalMs = positiveOrInfinity('totalMs', options.totalMs ?? DEADLINE_DEFAULTS.totalMs);
  positiveOrInfinity('deadlineMs', deadlineMs);

  if (deadlineMs === Infinity && totalMs === Infinity) return identity;

  return (source) =>
    defer(() => {
      const downward = currentScope();
      const outer = downward ?? CallScope.start(runtime);
      const startedAtMs = runtime.clock.now();
      const progress = new Progress();
      const scope = outer.with({ deadlineAtMs: startedAtMs + Math.min(deadlineMs, totalMs), sink: progress });
      const leftMs = scope.deadlineAtMs - startedAtMs;
      if (leftMs <= 0) throw deadlinePassed(scope, 'entry');

      const failAfter = (limitMs: number): Observable<never> =>
        scoped(
          after(runtime, limitMs).pipe(
            map(() => {
              throw deadlinePassed(scope, progress.stage);
            }),
          ),
          scope,
          downward,
        );
      // Until its first value the source races the deadline; a value, an error or an empty end of it stops the timer.
      const committed = race(scoped(source, scope, downward), failAfter(leftMs));
      if (totalMs === Infinity) return committed;
      return committed.pipe(
        tap(() => progress.value()),
        takeUntil(failAfter(totalMs)),
      );
    });
}

function deadlinePassed({ call, model }: CallScope, stage: CallStage | undefined): SluiceError {
  return new SluiceError('timeout_deadline', 'the deadline passed before the answer came', {
    while: stage,
    model,
    attempts: [...call.failed],
    retryAfterMs: call.failed.at(-1)?.retryAfterMs,
  });
}
