import { Observable } from 'rxjs';
import type { Subscriber, Unsubscribable } from 'rxjs';
import { CallScope } from '../core/CallScope.ts';
import type { CallScopeChanges, Ear } from '../core/CallScopeChanges.ts';
import type { CallStart, Home, ObservedCall } from '../core/CallObserver.ts';
import { currentScope, runInScope } from '../core/currentScope.ts';
import { isSluiceError } from '../core/errors.ts';
import type { ErrorCode } from '../core/errors.ts';
import type { SluiceEvent } from '../core/events.ts';
import { subscribeScoped } from '../operators/scoped.ts';
import type { End, ScopedHooks } from '../operators/scoped.ts';
import type { CallPlan } from './CallPlan.ts';
import { CallSpend } from './CallSpend.ts';
import type { Engine } from './Engine.ts';
import { modelPolicy } from '../policy/modelPolicy.ts';
import type { Policy } from '../policy/Policy.ts';
import { parametersOf } from './parametersOf.ts';
import { closedError } from './RunningCalls.ts';

/** One subscription to a call: its frame, its place among those that run, and its events from first to last. */
export function runCall<T, V>(
  engine: Engine,
  plan: CallPlan<T>,
  pipeline: (engine: Engine, plan: CallPlan<T>) => Observable<V>,
): Observable<V> {
  // Hand-written: one subscriber does what four operators would do, at a quarter of what they cost each value.
  return new Observable((subscriber) => new CallRun(engine, plan, subscriber).start(pipeline));
}

/** What a call needs to know of itself, whoever else does. */
const OWN_FACTS: ReadonlySet<SluiceEvent['type']> = new Set<SluiceEvent['type']>(['committed', 'attempt.ended']);

class CallRun<T, V> implements ScopedHooks<V>, Ear, Unsubscribable {
  readonly home: Home | undefined;
  readonly #engine: Engine;
  readonly #plan: CallPlan<T>;
  readonly #subscriber: Subscriber<V>;
  readonly #below: CallScope | undefined = currentScope();
  readonly #startedAtMs: number;
  readonly #policy: Policy;
  readonly #scope: CallScope;
  #outcome = DROPPED;
  #spent: CallSpend | undefined;

  constructor(engine: Engine, plan: CallPlan<T>, subscriber: Subscriber<V>) {
    const { hub, calls, runtime } = engine;
    const { tenant, conversation, priority } = plan.options;
    const below = this.#below;
    const startedAtMs = runtime.clock.now();
    const changes = { model: plan.model, tenant, conversation, priority, ear: this };
    // A call within a call of this client, such as in a degrade function, is one of its own, but not beyond its deadline.
    const joins = below !== undefined && !calls.has(below.call);
    const started = joins
      ? below.with(changes)
      : CallScope.start(runtime, {
          ...changes,
          id: plan.id,
          deadlineAtMs: below?.deadlineAtMs,
          deadlineMs: below?.deadlineMs,
          demand: below?.demand,
        });
    this.#engine = engine;
    this.#plan = plan;
    this.#subscriber = subscriber;
    this.#startedAtMs = startedAtMs;
    this.#policy = engine.policy;
    const observed = hub.watchesCalls
      ? runInScope(started, () => hub.onCall(startOf(engine, plan, started.callId, startedAtMs)))
      : undefined;
    this.#scope = observed === undefined ? started : started.with(ownOf(observed));
    this.home = observed?.home;
  }

  start(pipeline: (engine: Engine, plan: CallPlan<T>) => Observable<V>): void {
    if (this.#engine.calls.closed) {
      const refusal = closedError();
      this.#outcome = failedWith(refusal);
      this.#ended();
      this.#subscriber.error(refusal);
      return;
    }
    const call = (): Observable<V> => pipeline(this.#engine, this.#plan);
    subscribeScoped(call, this.#subscriber, this.#scope, this.#below, this);
    // Here everything above has been unsubscribed from, so that this comes last.
    this.#subscriber.add(this);
  }

  unsubscribe(): void {
    this.#engine.calls.remove(this.#scope.call, this.#plan.options.tenant);
    this.#ended();
  }

  before(end: End): void {
    this.#engine.calls.add(this.#scope.call, this.#plan.options.tenant, end);
    this.#plan.onBegin?.((error) => {
      // One that has completed, and is not accepted, can only be told to have failed.
      this.failed(error);
      end.error(error);
    });
  }

  completed(): void {
    this.#outcome = { outcome: 'success', code: undefined, message: undefined };
  }

  failed(error: unknown): void {
    this.#outcome = failedWith(error);
  }

  hear(event: SluiceEvent): void {
    if (event.type === 'committed' && event.model !== undefined) {
      this.#engine.leastTimesOf(this.#plan).note(event.model, event.firstContentMs);
    }
    if (event.type === 'attempt.ended') this.#spend.hear(event);
    this.#engine.hub.onEvent(event);
  }

  hears(type: SluiceEvent['type']): boolean {
    return OWN_FACTS.has(type) || this.#engine.hub.observed;
  }

  get #spend(): CallSpend {
    return (this.#spent ??= new CallSpend(this.#engine, this.#policy, this.#plan.options.tenant));
  }

  #ended(): void {
    const nowMs = this.#engine.runtime.clock.now();
    this.#scope.report(nowMs, {
      type: 'call.ended',
      ...this.#outcome,
      attempts: this.#scope.call.dispatched,
      durationMs: nowMs - this.#startedAtMs,
      ...this.#spend.account(this.#outcome.outcome === 'success'),
    });
  }
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

const DROPPED: CallOutcome = { outcome: 'dropped', code: undefined, message: undefined };

/** What others throw may hold anything, and is not repeated. */
function failedWith(error: unknown): CallOutcome {
  const known = isSluiceError(error) ? error : undefined;
  return { outcome: 'failure', code: known?.code, message: known?.message };
}
