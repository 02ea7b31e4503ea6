import type { SluiceEvent } from '../core/events.ts';
import type { Usage } from '../core/hints.ts';
import { modelPolicy } from '../policy/modelPolicy.ts';
import type { Policy } from '../policy/Policy.ts';
import { spendCap } from '../policy/spendCap.ts';
import type { Engine } from './Engine.ts';

/** What `call.ended` tells of it. */
export interface CallAccount {
  readonly usage: Usage | undefined;
  readonly wastedTokens: number;
  readonly cost: number | undefined;
  readonly usageEstimated: boolean;
}

/** Accounts for the attempts of one call, as they end, at the prices of the policy that it began under. */
export class CallSpend {
  readonly #engine: Engine;
  readonly #policy: Policy;
  readonly #tenant: string | undefined;
  /** Of the last attempt that gave a whole answer. */
  #answer: Usage | undefined;
  #tokens = 0;
  #cost: number | undefined;
  #estimated = false;

  constructor(engine: Engine, policy: Policy, tenant: string | undefined) {
    this.#engine = engine;
    this.#policy = policy;
    this.#tenant = tenant;
  }

  hear(event: SluiceEvent & { readonly type: 'attempt.ended' }): void {
    const { model, outcome } = event;
    const usage = event.usage ?? event.estimatedUsage;
    if (outcome === 'success') this.#answer = usage;
    if (usage === undefined) return;
    this.#tokens += usage.totalTokens;
    if (event.usage === undefined) this.#estimated = true;
    if (model === undefined) return;
    const { price } = modelPolicy(this.#policy, model);
    if (price === undefined) return;
    const tenant = this.#tenant;
    const cap = spendCap(this.#policy, tenant);
    const wasted = outcome !== 'success';
    const cost = this.#engine.spend.spend({ tenant, model, usage, price, wasted, cap });
    this.#cost = (this.#cost ?? 0) + cost;
  }

  /** `delivered`: the call was answered. */
  account(delivered: boolean): CallAccount {
    const usage = delivered ? this.#answer : undefined;
    return {
      usage,
      wastedTokens: this.#tokens - (usage?.totalTokens ?? 0),
      cost: this.#cost,
      usageEstimated: this.#estimated,
    };
  }
}
