import { invalidOption, SluiceError } from '../core/errors.ts';
import type { RetryBudgetPort } from '../core/ports.ts';
import { systemRuntime } from '../core/runtime.ts';
import type { Runtime } from '../core/runtime.ts';
import { RetryBudget } from '../limits/RetryBudget.ts';
import { LeastTimes } from '../limits/LeastTimes.ts';
import { SpendLedger } from '../limits/SpendLedger.ts';
import { createLanes } from '../operators/createLanes.ts';
import type { LocalLanes } from '../operators/createLanes.ts';
import { parsePolicy } from '../policy/parsePolicy.ts';
import type { Policy } from '../policy/Policy.ts';
import type { PolicyInput } from '../policy/PolicyInput.ts';
import { spendCap } from '../policy/spendCap.ts';
import { Admissions } from './Admissions.ts';
import { ClientSet } from './ClientSet.ts';
import { EventHub } from './EventHub.ts';
import { RunningCalls } from './RunningCalls.ts';
import type { Clients, SluiceOptions } from './SluiceOptions.ts';

/** Models that a retry budget is kept of. What is forgotten starts over with an empty window. */
const MAX_BUDGETS = 1_000;

/** What all calls of one client share. */
export class Engine {
  readonly options: SluiceOptions;
  readonly runtime: Runtime;
  readonly clients: ClientSet;
  readonly hub: EventHub;
  readonly calls: RunningCalls;
  readonly lanes: LocalLanes;
  readonly admissions: Admissions;
  readonly spend: SpendLedger;
  /** From the sending of an attempt to its first value, by model and kind of call. */
  readonly leastTimes: LeastTimes;
  readonly #budgets = new Map<string, RetryBudget>();
  readonly #warned = new Set<string>();
  #policy: Policy;

  /** @throws SluiceError `invalid_option`, `invalid_policy` */
  constructor(clients: Clients, policy: Policy | PolicyInput, options: SluiceOptions) {
    for (const name of ['classify', 'estimate', 'degrade', 'fetch', 'warn'] as const) {
      const value: unknown = options[name];
      if (value !== undefined && typeof value !== 'function') throw invalidOption(name, 'a function', value);
    }
    this.options = options;
    this.runtime = options.runtime ?? systemRuntime;
    this.clients = new ClientSet(clients, this.runtime);
    this.#policy = this.#parsed(policy);
    this.spend = new SpendLedger(this.runtime.clock);
    this.leastTimes = new LeastTimes({}, this.runtime.clock);
    this.hub = new EventHub(options.telemetry);
    this.calls = new RunningCalls(this.runtime);
    const { maxWaiting, maxWaitMs } = this.#policy.conversations;
    this.lanes = createLanes({ maxWaiting, maxWaitMs }, this.runtime);
    this.admissions = new Admissions(this.#policy, this.runtime);
  }

  get policy(): Policy {
    return this.#policy;
  }

  /** @throws SluiceError `invalid_policy`; then the policy stays as it was. */
  reload(policy: Policy | PolicyInput): void {
    const next = this.#parsed(policy);
    // Before those that wait may go by it.
    this.#policy = next;
    this.lanes.reload(next.conversations);
    for (const budget of this.#budgets.values()) budget.reload(next.retryBudget);
    this.admissions.reload(next);
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

  warnOnce(message: string): void {
    if (this.#warned.has(message)) return;
    this.#warned.add(message);
    try {
      this.options.warn?.(message);
    } catch {
      // A warning must not end a call.
    }
  }

  #parsed(policy: Policy | PolicyInput): Policy {
    return parsePolicy(policy, { clients: this.clients.names });
  }
}
