import type { Observable } from 'rxjs';
import type { BreakerSnapshot, ConcurrencySnapshot, QuotaSnapshot } from '../core/ports.ts';
import type { BreakerPort, ConcurrencyPort } from '../core/ports.ts';
import type { Runtime } from '../core/runtime.ts';
import { circuitBreak } from '../operators/circuitBreak.ts';
import { createBreaker } from '../operators/createBreaker.ts';
import { createConcurrencyLimit } from '../operators/createConcurrencyLimit.ts';
import { createQuotas } from '../operators/createQuotas.ts';
import type { LocalQuotas } from '../operators/createQuotas.ts';
import { limitConcurrency } from '../operators/limitConcurrency.ts';
import { throttleByBucket } from '../operators/throttleByBucket.ts';
import { modelPolicy } from '../policy/modelPolicy.ts';
import type { Policy } from '../policy/Policy.ts';
import type { PlannedCost } from './costOf.ts';
import type { Target } from './CallPlan.ts';

export interface ModelSnapshot {
  readonly quota: QuotaSnapshot;
  readonly breaker: BreakerSnapshot;
  readonly concurrency: ConcurrencySnapshot;
}

interface Gates {
  readonly breaker: BreakerPort;
  readonly concurrency: ConcurrencyPort;
}

/** Lets attempts go: what stands between a retry and the source. */
export class Admissions {
  readonly #runtime: Runtime;
  readonly #gates = new Map<string, Gates>();
  #policy: Policy;
  #quotas: LocalQuotas;

  constructor(policy: Policy, runtime: Runtime) {
    this.#policy = policy;
    this.#runtime = runtime;
    this.#quotas = quotasOf(policy, runtime);
  }

  admit<T>(model: string, cost: PlannedCost, ask: (deployment: Target['deployment']) => Observable<T>): Observable<T> {
    const runtime = this.#runtime;
    const { breaker, concurrency } = this.#gatesOf(model);
    const [deployment = { client: 'main' }] = modelPolicy(this.#policy, model).deployments;
    return ask(deployment).pipe(
      throttleByBucket(this.#quotas.of(model), { cost, runtime }),
      limitConcurrency(concurrency, { runtime }),
      circuitBreak(breaker, { runtime }),
    );
  }

  reload(policy: Policy): void {
    if (
      JSON.stringify([policy.quota, policy.models, policy.tenants]) !==
      JSON.stringify([this.#policy.quota, this.#policy.models, this.#policy.tenants])
    ) {
      this.#quotas = quotasOf(policy, this.#runtime);
    }
    this.#policy = policy;
  }

  snapshot(): Readonly<Record<string, ModelSnapshot>> {
    return Object.fromEntries(
      [...this.#gates].map(([model, { breaker, concurrency }]) => [
        model,
        { quota: this.#quotas.of(model).snapshot(), breaker: breaker.snapshot(), concurrency: concurrency.snapshot() },
      ]),
    );
  }

  #gatesOf(model: string): Gates {
    const known = this.#gates.get(model);
    if (known) return known;
    const { breaker, concurrency } = modelPolicy(this.#policy, model);
    const made = {
      breaker: createBreaker({ ...breaker, name: model }, this.#runtime),
      concurrency: createConcurrencyLimit(
        concurrency.limit === undefined ? { ...concurrency, name: model } : concurrency.limit,
        this.#runtime,
      ),
    };
    this.#gates.set(model, made);
    return made;
  }
}

function quotasOf({ quota, models, tenants }: Policy, runtime: Runtime): LocalQuotas {
  return createQuotas(
    {
      ...quota.account,
      account: quota.account,
      models: Object.fromEntries(Object.entries(models).map(([model, settings]) => [model, settings.quota])),
      tenants,
    },
    runtime,
  );
}
