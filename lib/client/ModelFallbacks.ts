import type { Observable } from 'rxjs';
import type { Answer } from '../core/answer.ts';
import type { MidStreamMode } from '../core/midStream.ts';
import type { Restart } from '../core/restart.ts';
import type { Runtime } from '../core/runtime.ts';
import type { FallbackSettings } from '../operators/FallbackModelOptions.ts';
import { withAssistantPrefix } from '../operators/withAssistantPrefix.ts';
import { modelPolicy } from '../policy/modelPolicy.ts';
import type { Policy } from '../policy/Policy.ts';
import { askModel } from './askModel.ts';
import type { CallPlan } from './CallPlan.ts';
import { costOf } from './costOf.ts';
import type { Engine } from './Engine.ts';

/** How other models are asked in a call. Most of it is of interest only once one has failed. */
export class ModelFallbacks<T> implements FallbackSettings<T | Restart> {
  readonly onlyOn: undefined;
  readonly except: undefined;
  readonly onEvent: undefined;
  readonly #engine: Engine;
  readonly #policy: Policy;
  readonly #plan: CallPlan<T>;
  #promptTokens: number | undefined;

  constructor(engine: Engine, policy: Policy, plan: CallPlan<T>) {
    this.#engine = engine;
    this.#policy = policy;
    this.#plan = plan;
  }

  get maxAttempts(): number {
    return this.#policy.maxAttempts;
  }

  get midStream(): MidStreamMode {
    const { stream, options, model } = this.#plan;
    return stream ? (options.midStream ?? modelPolicy(this.#policy, model).midStream) : 'fail';
  }

  get restarts(): boolean {
    return this.#plan.options.restarts ?? false;
  }

  get runtime(): Runtime {
    return this.#engine.runtime;
  }

  ask(model: string): Observable<T | Restart> {
    return askModel(this.#engine, this.#policy, this.#plan, model);
  }

  fits(model: string): boolean {
    const { maxPromptTokens } = modelPolicy(this.#policy, model);
    if (maxPromptTokens === Infinity) return true;
    const plan = this.#plan;
    this.#promptTokens ??= costOf(this.#engine, plan, plan.request, plan.model).inputTokens;
    return this.#promptTokens <= maxPromptTokens;
  }

  continueWith(model: string): ((partial: Answer) => Observable<T | Restart>) | undefined {
    if (!modelPolicy(this.#policy, model).canContinue) return undefined;
    const plan = this.#plan;
    return (partial) => {
      const request = plan.request && withAssistantPrefix(plan.request, partial);
      return askModel(this.#engine, this.#policy, { ...plan, request }, model);
    };
  }
}
