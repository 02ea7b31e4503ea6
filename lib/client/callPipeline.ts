import { concat, defer, of, throwError } from 'rxjs';
import type { MonoTypeOperatorFunction, Observable } from 'rxjs';
import { currentScope } from '../core/currentScope.ts';
import { invalidRequest } from '../core/errors.ts';
import type { Restart } from '../core/restart.ts';
import { degradeTo } from '../operators/degradeTo.ts';
import { inTurn } from '../operators/inConversation.ts';
import { withDeadline } from '../operators/withDeadline.ts';
import { withSignal } from '../operators/withSignal.ts';
import { scoped } from '../operators/scoped.ts';
import type { Policy } from '../policy/Policy.ts';
import { spendCap } from '../policy/spendCap.ts';
import { askModel } from './askModel.ts';
import type { CallPlan } from './CallPlan.ts';
import { cannedReply } from './cannedReply.ts';
import type { Engine } from './Engine.ts';
import { fallbacksOf } from './fallbacksOf.ts';
import { runCall } from './runCall.ts';
import type { SluiceOptions } from './SluiceOptions.ts';

/**
 * A call with all that the policy puts around it. Outside in: the call's events and signal, its deadline, conversation
 * lane, degrade, fallback, and per model retry, admission and the attempt.
 */
export function callPipeline<T>(engine: Engine, plan: CallPlan<T>): Observable<T | Restart> {
  return runCall(engine, plan, bounded);
}

/** Called as the call is being subscribed to. */
function bounded<T>(engine: Engine, plan: CallPlan<T>): Observable<T | Restart> {
  const { policy, runtime } = engine;
  const { tenant, priority, signal, deadlineMs = policy.deadlineMs } = plan.options;
  checkPriority(policy, priority);
  const unheard$ = engine.spend.unheard(tenant, spendCap(policy, tenant));
  const answer$ =
    unheard$ === undefined ? affordable(engine, policy, plan) : heard(unheard$, () => affordable(engine, policy, plan));
  const inTime$ = withDeadline<T | Restart>(deadlineMs, { totalMs: policy.totalMs, runtime })(answer$);
  return signal === undefined ? inTime$ : inTime$.pipe(withSignal(signal, { runtime }));
}

/** What has to be known first is waited for within the bounds of the call. */
function heard<T>(unheard$: Observable<never>, then: () => Observable<T>): Observable<T> {
  return defer(() => {
    const scope = currentScope();
    return concat(unheard$, scoped(defer(then), scope, scope));
  });
}

function affordable<T>(engine: Engine, policy: Policy, plan: CallPlan<T>): Observable<T | Restart> {
  const { runtime } = engine;
  const { conversation, tenant } = plan.options;
  engine.checkSpend(tenant);
  if (conversation === undefined) return answered(engine, policy, plan);
  const { maxWaitMs } = policy.conversations;
  const options = { maxWaitMs, runtime };
  return inTurn<T | Restart>(engine.lanes, conversation, options, () => answered(engine, policy, plan));
}

function answered<T>(engine: Engine, policy: Policy, plan: CallPlan<T>): Observable<T | Restart> {
  const ask = (): Observable<T | Restart> =>
    fallbacksOf(engine, policy, plan)(askModel(engine, policy, plan, plan.model));
  const { degrade } = engine.options;
  return degrade === undefined ? ask() : degraded(engine, plan, degrade)(defer(ask));
}

function degraded<T>(
  engine: Engine,
  plan: CallPlan<T>,
  degrade: NonNullable<SluiceOptions['degrade']>,
): MonoTypeOperatorFunction<T | Restart> {
  const { api, stream, model, request, options } = plan;
  const { tenant, conversation } = options;
  return degradeTo<T | Restart>(
    (failure) => {
      const reply = degrade(failure, { api, stream, model, request, tenant, conversation });
      if (reply === undefined) return throwError(() => failure);
      if (typeof reply !== 'string') return reply as Observable<T>;
      if (api === undefined) throw invalidRequest('degrade', 'an Observable for a call with its own transport', reply);
      return of(...(cannedReply(api, stream, model, reply, engine.runtime) as T[]));
    },
    { runtime: engine.runtime },
  );
}

function checkPriority(policy: Policy, priority: string | undefined): void {
  const { order } = policy.priorities;
  if (priority === undefined || order.includes(priority)) return;
  throw invalidRequest('priority', `one of ${order.join(', ')}`, priority);
}
