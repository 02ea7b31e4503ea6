import { concat, defer, EMPTY, NEVER, Observable, of, throwError } from 'rxjs';
import type { Subscription } from 'rxjs';
import type { Answer } from '../../lib/core/answer.ts';
import { currentScope, runInScope } from '../../lib/core/currentScope.ts';
import type { CallScope } from '../../lib/core/CallScope.ts';
import { SluiceError } from '../../lib/core/errors.ts';
import type { ErrorCode, SluiceErrorFields } from '../../lib/core/errors.ts';
import type { Runtime } from '../../lib/core/runtime.ts';
import { after } from '../../lib/operators/after.ts';

/** What one subscription does: values at once or `afterMs`, then an error, an end, or silence. */
export interface Step {
  readonly afterMs?: number;
  readonly values?: readonly string[];
  readonly error?: unknown;
  readonly hangs?: boolean;
}

export interface Scripted {
  readonly source: Observable<string>;
  /** `subscribe` and `teardown`, in order. */
  readonly log: string[];
  readonly startsMs: number[];
  readonly scopes: (CallScope | undefined)[];
  readonly active: number;
}

/** A source that takes the next step with each subscription, and the last one for ever. It does not speak to the scope. */
export function scripted(runtime: Runtime, ...steps: readonly Step[]): Scripted {
  const log: string[] = [];
  const startsMs: number[] = [];
  const scopes: (CallScope | undefined)[] = [];
  let taken = 0;
  let active = 0;
  const source = new Observable<string>((subscriber) => {
    const step = steps[Math.min(taken++, steps.length - 1)] ?? {};
    log.push('subscribe');
    startsMs.push(runtime.clock.now());
    scopes.push(currentScope());
    active++;
    subscriber.add(() => {
      active--;
      log.push('teardown');
    });
    const end = step.hangs ? NEVER : step.error === undefined ? EMPTY : throwError(() => step.error);
    const body = concat(of(...(step.values ?? [])), end);
    subscriber.add(
      (step.afterMs === undefined ? body : concat(silence(runtime, step.afterMs), body)).subscribe(subscriber),
    );
  });
  return {
    source,
    log,
    startsMs,
    scopes,
    get active() {
      return active;
    },
  };
}

function silence(runtime: Runtime, afterMs: number): Observable<never> {
  return new Observable((subscriber) => after(runtime, afterMs).subscribe({ complete: () => subscriber.complete() }));
}

/** The same source, as one that tells the scope when it sends, what failed, and when it is done. */
export function speaking(runtime: Runtime, model: string | undefined, source: Observable<string>): Observable<string> {
  return defer(() => {
    const scope = currentScope();
    return new Observable<string>((subscriber) => {
      scope?.dispatched(runtime.clock.now());
      subscriber.add(() => scope?.closed());
      return source.subscribe({
        next: (value) => subscriber.next(value),
        complete: () => subscriber.complete(),
        error: (caught: unknown) => {
          const error = caught as SluiceError;
          scope?.call.failed.push({
            attempt: scope.attempt,
            model,
            code: error.code,
            status: error.status,
            requestId: undefined,
            retryAfterMs: error.retryAfterMs,
            durationMs: 0,
          });
          subscriber.error(
            error.with({ model, attempt: scope?.attempt, attempts: scope ? [...scope.call.failed] : undefined }),
          );
        },
      });
    });
  });
}

export function failed(code: ErrorCode, fields: SluiceErrorFields = {}): SluiceError {
  return new SluiceError(code, `it was ${code}`, fields);
}

export function partial(text: string, more: Partial<Answer> = {}): Answer {
  const choice = { text, reasoning: '', refusal: '', toolCalls: [], finishReason: null };
  return {
    ...choice,
    choices: [{ index: 0, ...choice }],
    usage: undefined,
    model: undefined,
    restarts: 0,
    empty: text === '',
    ...more,
  };
}

export interface Recording<T> {
  readonly values: T[];
  error: SluiceError | undefined;
  done: boolean;
  readonly subscription: Subscription;
}

/** Subscribes, in `scope` where one is given, and keeps what comes. */
export function recording<T>(observable: Observable<T>, scope?: CallScope): Recording<T> {
  const seen: { values: T[]; error: SluiceError | undefined; done: boolean } = {
    values: [],
    error: undefined,
    done: false,
  };
  const subscribe = (): Subscription =>
    observable.subscribe({
      next: (value) => seen.values.push(value),
      error: (error: unknown) => (seen.error = error as SluiceError),
      complete: () => (seen.done = true),
    });
  const subscription = scope ? runInScope(scope, subscribe) : subscribe();
  return Object.assign(seen, { subscription });
}

/** The error that `work` throws. */
export function thrown(work: () => unknown): SluiceError {
  try {
    work();
  } catch (error) {
    return error as SluiceError;
  }
  throw new Error('nothing was thrown');
}
