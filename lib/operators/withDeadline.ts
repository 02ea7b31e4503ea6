import { identity, Observable, tap } from 'rxjs';
import type { MonoTypeOperatorFunction, Subscriber } from 'rxjs';
import { CallScope } from '../core/CallScope.ts';
import { currentScope } from '../core/currentScope.ts';
import { positiveOrInfinity } from '../core/checks.ts';
import { SluiceError } from '../core/errors.ts';
import type { CallStage } from '../core/errors.ts';
import { startTimer, systemRuntime } from '../core/runtime.ts';
import type { Cancel, Runtime } from '../core/runtime.ts';
import { Progress } from './Progress.ts';
import { subscribeScoped } from './scoped.ts';
import type { End, ScopedHooks } from './scoped.ts';

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
    // Hand-written: RxJS's `race` makes of a timer three subscriptions more, and passes each value once more.
    new Observable<T>((subscriber) => new DeadlineRun(subscriber, deadlineMs, totalMs, runtime).start(source));
}

/** One subscription, until its first value, and to its end where `totalMs` says so. */
class DeadlineRun<T> implements ScopedHooks<T> {
  readonly #subscriber: Subscriber<T>;
  readonly #totalMs: number;
  readonly #runtime: Runtime;
  readonly #downward: CallScope | undefined = currentScope();
  readonly #progress = new Progress();
  readonly #scope: CallScope;
  readonly #leftMs: number;
  #end: End | undefined;
  #committed = false;
  #stop: Cancel | undefined;

  constructor(subscriber: Subscriber<T>, deadlineMs: number, totalMs: number, runtime: Runtime) {
    const outer = this.#downward ?? CallScope.start(runtime);
    const startedAtMs = runtime.clock.now();
    const wholeMs = Math.min(deadlineMs, totalMs);
    this.#subscriber = subscriber;
    this.#totalMs = totalMs;
    this.#runtime = runtime;
    this.#scope = outer.with({ deadlineAtMs: startedAtMs + wholeMs, deadlineMs: wholeMs, sink: this.#progress });
    this.#leftMs = this.#scope.deadlineAtMs - startedAtMs;
  }

  start(source: Observable<T>): void {
    if (this.#leftMs <= 0) {
      this.#subscriber.error(deadlinePassed(this.#scope, 'entry'));
      return;
    }
    // Stryker disable next-line ConditionalExpression,EqualityOperator: without a limit the rest would only cost
    const total = this.#totalMs < Infinity;
    // Stryker disable next-line ConditionalExpression: as above
    if (total) this.#subscriber.add(this.#failAfter(this.#totalMs));
    // Stryker disable next-line ConditionalExpression: as above
    const source$ = total ? source.pipe(tap(() => this.#progress.value())) : source;
    subscribeScoped(source$, this.#subscriber, this.#scope, this.#downward, this);
  }

  before(end: End): void {
    this.#end = end;
  }

  subscribed(ended: boolean): void {
    if (ended || this.#committed) return;
    const stop = this.#failAfter(this.#leftMs);
    this.#stop = stop;
    this.#subscriber.add(stop);
  }

  first(): void {
    this.#committed = true;
    if (this.#stop === undefined) return;
    this.#stop();
    // Stryker disable next-line CallExpression: it only gives memory back
    this.#subscriber.remove(this.#stop);
    this.#stop = undefined;
  }

  #failAfter(limitMs: number): Cancel {
    const passed = (): SluiceError => deadlinePassed(this.#scope, this.#progress.stage);
    // Stryker disable next-line OptionalChaining: `before` comes first
    return startTimer(this.#runtime, limitMs, () => this.#end?.error(passed()));
  }
}

function deadlinePassed({ call, model }: CallScope, stage: CallStage | undefined): SluiceError {
  return new SluiceError('timeout_deadline', 'the deadline passed before the answer came', {
    while: stage,
    model,
    attempts: [...call.failed],
    retryAfterMs: call.failed.at(-1)?.retryAfterMs,
  });
}
