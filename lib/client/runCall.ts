import { defer, finalize, takeUntil, tap, throwError } from 'rxjs';
import type { Observable } from 'rxjs';
import { CallScope } from '../core/CallScope.ts';
import type { CallScopeChanges } from '../core/CallScope.ts';
import type { CallStart, ObservedCall } from '../core/CallObserver.ts';
import { currentScope, runInScope } from '../core/currentScope.ts';
import { isSluiceError } from '../core/errors.ts';
import type { ErrorCode } from '../core/errors.ts';
import type { SluiceEvent } from '../core/events.ts';
import { scoped } from '../operators/scoped.ts';
import type { CallPlan } from './CallPlan.ts';
import { CallSpend } from './CallSpend.ts';
import type { Engine } from './Engine.ts';
import { modelPolicy } from '../policy/modelPolicy.ts';
import { parametersOf } from './parametersOf.ts';
import { closedError } from './RunningCalls.ts';

/** One subscription to a call: its frame, its place among those that run, and its events from first to last. */
export function runCall<T, V>(engine: Engine, plan: CallPlan<T>, call$: Observable<V>): Observable<V> {
  return defer(() => {
    const { hub, calls, runtime } = engine;
    const { tenant, conversation, priority } = plan.options;
    const below = currentScope();
    const startedAtMs = runtime.clock.now();
    const spend = new CallSpend(engine, tenant);
    const onEvent = (event: SluiceEvent): void => {
      spend.hear(event);
      hub.onEvent(event);
    };
    const changes = { model: plan.model, tenant, conversation, priority, onEvent };
    // A call within a call of this client, such as in a degrade function, is one of its own, but not beyond its deadline.
    const joins = below !== undefined && !calls.has(below.call);
    const started = joins
      ? below.with(changes)
      : CallScope.start(runtime, { ...changes, id: plan.id, deadlineAtMs: below?.deadlineAtMs, demand: below?.demand });
    const observed = runInScope(started, () => hub.onCall(() => startOf(engine, plan, started.callId, startedAtMs)));
    const scope = observed === undefined ? started : started.with(ownOf(observed));

    let outcome: CallOutcome = { outcome: 'dropped', code: undefined, message: undefined };
    const ended = (): void =>
      scope.report(runtime.clock.now(), {
        type: 'call.ended',
        ...outcome,
        attempts: scope.call.dispatched,
        durationMs: runtime.clock.now() - startedAtMs,
        ...spend.account(outcome.outcome === 'success'),
      });
    if (calls.closed) {
      const refusal = closedError();
      outcome = failedWith(refusal);
      ended();
      return throwError(() => refusal);
    }
    calls.add(scope.call, tenant);
    return scoped(call$.pipe(takeUntil(calls.cut$)), scope, below, { home: observed?.home }).pipe(
      tap({
        complete: () => (outcome = { outcome: 'success', code: undefined, message: undefined }),
        error: (error: unknown) => (outcome = failedWith(error)),
      }),
      // Here everything above has been unsubscribed from, so that this comes last.
      finalize(() => {
        calls.remove(scope.call, tenant);
        ended();
      }),
    );
  });
}

function ownOf({ onEvent, around, home, onContent }: ObservedCall): CallScopeChanges {
  return { onEvent, around, home, onContent };
}

function startOf<T>(engine: Engine, plan: CallPlan<T>, callId: string, atMs: number): CallStart {
  const { policy, clients, runtime } = engine;
  const { tenant, conversation, priority, attributes = {} } = plan.options;
  return {
    callId,
    api: plan.api,
    model: plan.model,
    stream: plan.stream,
    server: clients.server(modelPolicy(policy, plan.model).client),
    tenant,
    conversation,
    priority,
    parameters: parametersOf(plan.api, plan.request),
    attributes,
    captureContent: policy.telemetry.captureContent,
    atMs,
    wallAtMs: runtime.clock.wallNow(),
  };
}

interface CallOutcome {
  readonly outcome: 'success' | 'failure' | 'dropped';
  readonly code: ErrorCode | undefined;
  readonly message: string | undefined;
}

/** What others throw may hold anything, and is not repeated. */
function failedWith(error: unknown): CallOutcome {
  const known = isSluiceError(error) ? error : undefined;
  return { outcome: 'failure', code: known?.code, message: known?.message };
}
