import { invalidOption, SluiceError } from '../core/errors.ts';
import type { RetryBudgetPort } from '../core/ports.ts';
import { systemRuntime } from '../core/runtime.ts';
import type { Runtime } from '../core/runtime.ts';
import { RetryBudget } from '../limits/RetryBudget.ts';
import { LeastTimes } from '../limits/LeastTimes.ts';
import type { LimitStore, SharedLanes } from '../limits/LimitStore.ts';
import { createLanes } from '../operators/createLanes.ts';
import { parsePolicy } from '../policy/parsePolicy.ts';
import type { ModelPolicy, Policy } from '../policy/Policy.ts';
import type { PolicyInput } from '../policy/PolicyInput.ts';
import { spendCap } from '../policy/spendCap.ts';
import type { AttemptSettings } from '../sources/AttemptOptions.ts';
import { Admissions } from './Admissions.ts';
import type { CallPlan } from './CallPlan.ts';
import { ClientSet } from './ClientSet.ts';
import { EventHub } from './EventHub.ts';
import { RunningCalls } from './RunningCalls.ts';
import type { Clients, SluiceOptions } from './SluiceOptions.ts';
import { Spend } from './Spend.ts';

/** Models that a retry budget is kept of. What is forgotten starts over with an empty window. */
const MAX_BUDGETS = 1_000;

/** What all calls of one client share. */
export class Engine {
  readonly options: SluiceOptions;
  readonly runtime: Runtime;
  readonly clients: ClientSet;
  readonly hub: EventHub;
  readonly calls: RunningCalls;
  readonly lanes: SharedLanes;
  readonly admissions: Admissions;
  readonly spend: Spend;
  /** What has been checked of the attempts at a model. */
  readonly attemptSettings: WeakMap<ModelPolicy, AttemptSettings> = new WeakMap();
  readonly #leastTimes = {
    streamed: new Map<CallPlan<unknown>['api'], LeastTimes>(),
    whole: new Map<CallPlan<unknown>['api'], LeastTimes>(),
  };
  readonly #budgets = new Map<string, RetryBudget>();
  readonly #warned = new Set<string>();
  readonly #store: LimitStore | undefined;
  readonly #deaf: (() => void) | undefined;
  #policy: Policy;

  /** @throws SluiceError `invalid_option`, `invalid_policy` */
  constructor(clients: Clients, policy: Policy | PolicyInput, options: SluiceOptions) {
    for (const name of ['classify', 'estimate', 'degrade', 'fetch', 'warn'] as const) {
      const value: unknown = options[name];
      if (value !== undefined && typeof value !== 'function') throw invalidOption(name, 'a function', value);
    }
    const { store } = options;
    if (store !== undefined && typeof store?.quotas !== 'function') {
      throw invalidOption('store', 'a store, such as redisStore of sluice/redis makes', store);
    }
    this.options = options;
    this.#store = store;
    this.runtime = options.runtime ?? systemRuntime;
    this.clients = new ClientSet(clients, this.runtime);
    this.#policy = this.#parsed(policy);
    this.spend = new Spend(this.runtime.clock, store?.spend('spend'));
    this.hub = new EventHub(options.telemetry);
    this.calls = new RunningCalls(this.runtime);
    const { maxWaiting, maxWaitMs } = this.#policy.conversations;
    const lanes = { maxWaiting, maxWaitMs };
    this.lanes = store?.lanes('conversations', lanes) ?? createLanes(lanes, this.runtime);
    this.admissions = new Admissions(this.#policy, store, this.runtime);
    this.#setLoss();
    this.#deaf = store?.onChange((change) => this.hub.onStoreChange(change));
  }

  get policy(): Policy {
    return this.#policy;
  }

  /** @throws SluiceError `invalid_policy`; then the policy stays as it was. */
  reload(policy: Policy | PolicyInput): void {
    const next = this.#parsed(policy);
    // Before those that wait may go by it.
    this.#policy = next;
    this.#setLoss();
    this.lanes.reload(next.conversations);
    for (const budget of this.#budgets.values()) budget.reload(next.retryBudget);
    this.admissions.reload(next);
  }

  /** From the sending of an attempt to its first value, by model: those of calls of one kind can be compared. */
  leastTimesOf({ api, stream }: Pick<CallPlan<unknown>, 'api' | 'stream'>): LeastTimes {
    const kinds = this.#leastTimes[stream ? 'streamed' : 'whole'];
    let times = kinds.get(api);
    if (times === undefined) kinds.set(api, (times = new LeastTimes({}, this.runtime.clock)));
    return times;
  }

  budgetOf(model: string): RetryBudgetPort {
    let budget = this.#budgets.get(model);
    if (budget !== undefined) return budget;
    if (this.#budgets.size >= MAX_BUDGETS) {
      const [oldest = ''] = this.#budgets.keys();
      this.#budgets.delete(oldest);
    }
    budget = new RetryBudget(this.#policy.retryBudget, this.runtime.clock);
    this.#budgets.set(model, budget);
    return budget;
  }

  /** @throws SluiceError `spend_capped` where the tenant has spent what it may today. */
  checkSpend(tenant: string | undefined): void {
    const refusal = this.spend.refusal(tenant, spendCap(this.#policy, tenant));
    if (refusal === undefined) return;
    const { cap, spent, retryAfterMs } = refusal;
    const message = `${cap} may be spent a day, and that much has been; the next day begins in ${Math.ceil(retryAfterMs / 1000)} s`;
    throw new SluiceError('spend_capped', message, { while: 'entry', limit: cap, requested: spent, retryAfterMs });
  }

  /** Gives back what a store has lent, and hears nothing of it any more. */
  close(): void {
    this.admissions.close();
    this.spend.close();
    this.#deaf?.();
    this.hub.close();
  }

  warnOnce(message: string): void {
    if (this.#warned.has(message)) return;
    this.#warned.add(message);
    try {
      this.options.warn?.(message);
    } catch {
      // A warning must not end a call.
    }
  }

  /** What the policy says goes before the store's own rule. */
  #setLoss(): void {
    const { onLoss } = this.#policy.store;
    if (onLoss !== undefined) this.#store?.setLoss(onLoss);
  }

  #parsed(policy: Policy | PolicyInput): Policy {
    return parsePolicy(policy, { clients: this.clients.names });
  }
}
