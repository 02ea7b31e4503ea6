import type { Observable } from 'rxjs';
import type { Answer } from '../core/answer.ts';
import { currentScope } from '../core/currentScope.ts';
import type { MidStreamMode } from '../core/midStream.ts';
import type { RetryBudgetPort } from '../core/ports.ts';
import type { Runtime } from '../core/runtime.ts';
import { adaptParams } from '../operators/adaptParams.ts';
import type { RetrySettings } from '../operators/RetryWithJitterOptions.ts';
import { scoped } from '../operators/scoped.ts';
import { withAssistantPrefix } from '../operators/withAssistantPrefix.ts';
import { modelPolicy } from '../policy/modelPolicy.ts';
import type { ModelPolicy, Policy } from '../policy/Policy.ts';
import { acrossDeployments } from './acrossDeployments.ts';
import type { CallPlan, Fields, Target } from './CallPlan.ts';
import { costOf } from './costOf.ts';
import type { PlannedCost } from './costOf.ts';
import type { Engine } from './Engine.ts';

/** What one model is asked in a call, and how often. Most of it is of interest only once an attempt has failed. */
export class ModelAsk<T> implements RetrySettings<T> {
  readonly model: string;
  readonly shouldRetry: undefined;
  readonly onEvent: undefined;
  readonly #engine: Engine;
  readonly #policy: Policy;
  readonly #plan: CallPlan<T>;
  readonly #settings: ModelPolicy;
  readonly #request: Fields | undefined;
  readonly #cost: PlannedCost;

  constructor(engine: Engine, policy: Policy, plan: CallPlan<T>, model: string) {
    const settings = modelPolicy(policy, model);
    this.model = model;
    this.#engine = engine;
    this.#policy = policy;
    this.#plan = plan;
    this.#settings = settings;
    this.#request = plan.request && adaptParams({ ...plan.request, model }, settings.params);
    this.#cost = costOf(engine, plan, this.#request, model);
  }

  get attempts(): number {
    return this.#plan.options.attempts ?? this.#settings.retry.attempts;
  }

  get maxAttempts(): number {
    return this.#policy.maxAttempts;
  }

  get maxHintMs(): number {
    return this.#settings.retry.maxHintMs;
  }

  get backoff(): RetrySettings<T>['backoff'] {
    return this.#settings.retry;
  }

  get tokens(): number {
    return Math.max(1, this.#cost.tokens);
  }

  get midStream(): MidStreamMode {
    return this.#plan.stream ? (this.#plan.options.midStream ?? this.#settings.midStream) : 'fail';
  }

  get budget(): RetryBudgetPort | undefined {
    return this.#engine.budgetOf(this.model);
  }

  get restarts(): boolean {
    return this.#plan.options.restarts ?? false;
  }

  get continueWith(): ((partial: Answer) => Observable<T>) | undefined {
    const request = this.#request;
    if (!this.#settings.canContinue || request === undefined) return undefined;
    return (partial) => {
      const longer = withAssistantPrefix(request, partial);
      return this.#attempt(longer, costOf(this.#engine, this.#plan, longer, this.model));
    };
  }

  get runtime(): Runtime {
    return this.#engine.runtime;
  }

  leastMs(): number {
    return this.#engine.leastTimesOf(this.#plan).of(this.model);
  }

  /** An attempt, which is admitted first. */
  attempt(): Observable<T> {
    return this.#attempt(this.#request, this.#cost);
  }

  #attempt(body: Fields | undefined, cost: PlannedCost): Observable<T> {
    const attempt$ = this.#engine.admissions.admit(cost, (deployment) => this.#sent(deployment, body));
    const { length } = this.#settings.deployments;
    return length < 2 ? attempt$ : acrossDeployments(attempt$, length, this.#policy.maxAttempts);
  }

  /** The attempt inside what observes it. Called while it is being subscribed to. */
  #sent(deployment: Target['deployment'], body: Fields | undefined): Observable<T> {
    const target = { model: this.model, settings: this.#settings, deployment, headers: this.#headers };
    const attempt$ = this.#plan.attempt(target, body);
    const scope = currentScope();
    const around = scope && this.#engine.hub.aroundOf(scope.callId, scope.attempt);
    return around ? scoped(attempt$, scope.with({ around }), scope) : attempt$;
  }

  get #headers(): Readonly<Record<string, string>> {
    const { header } = this.#policy.conversations;
    const { conversation } = this.#plan.options;
    return header === null || conversation === undefined ? NO_HEADERS : { [header]: conversation };
  }
}

const NO_HEADERS = Object.freeze({});
