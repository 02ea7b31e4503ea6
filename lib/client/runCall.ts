import { defer, finalize, takeUntil, tap, throwError } from 'rxjs';
import type { Observable } from 'rxjs';
import { CallScope } from '../core/CallScope.ts';
import { currentScope } from '../core/currentScope.ts';
import { isSluiceError } from '../core/errors.ts';
import type { ErrorCode } from '../core/errors.ts';
import { scoped } from '../operators/scoped.ts';
import type { CallPlan } from './CallPlan.ts';
import type { Engine } from './Engine.ts';
import { parametersOf } from './parametersOf.ts';
import { closedError } from './RunningCalls.ts';

/** One subscription to a call: its frame, its place among those that run, and its events from first to last. */
export function runCall<T, V>(engine: Engine, plan: CallPlan<T>, call$: Observable<V>): Observable<V> {
  return defer(() => {
    const { hub, calls, runtime } = engine;
    const { tenant, conversation, priority } = plan.options;
    const below = currentScope();
    const startedAtMs = runtime.clock.now();
    const changes = { model: plan.model, tenant, conversation, priority, onEvent: hub.onEvent };
    // A call within a call of this client, such as in a degrade function, is one of its own, but not beyond its deadline.
    const joins = below !== undefined && !calls.has(below.call);
    const scope = joins
      ? below.with(changes)
      : CallScope.start(runtime, { ...changes, deadlineAtMs: below?.deadlineAtMs, demand: below?.demand });

    let outcome: CallOutcome = { outcome: 'dropped', code: undefined };
    const ended = (): void =>
      scope.report(runtime.clock.now(), {
        type: 'call.ended',
        ...outcome,
        attempts: scope.call.dispatched,
        durationMs: runtime.clock.now() - startedAtMs,
      });
    hub.onCall(() => ({
      callId: scope.callId,
      api: plan.api,
      model: plan.model,
      stream: plan.stream,
      tenant,
      conversation,
      priority,
      parameters: parametersOf(plan.request),
      attributes: plan.options.attributes ?? {},
      atMs: startedAtMs,
    }));
    if (calls.closed) {
      outcome = { outcome: 'failure', code: 'closed' };
      ended();
      return throwError(() => closedError());
    }
    calls.add(scope.call, tenant);
    return scoped(call$.pipe(takeUntil(calls.cut$)), scope, below).pipe(
      tap({
        complete: () => (outcome = { outcome: 'success', code: undefined }),
        error: (error: unknown) =>
          (outcome = { outcome: 'failure', code: isSluiceError(error) ? error.code : undefined }),
      }),
      // Here everything above has been unsubscribed from, so that this comes last.
      finalize(() => {
        calls.remove(scope.call, tenant);
        ended();
      }),
    );
  });
}

interface CallOutcome {
  readonly outcome: 'success' | 'failure' | 'dropped';
  readonly code: ErrorCode | undefined;
}
