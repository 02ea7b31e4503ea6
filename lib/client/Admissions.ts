import type { Observable } from 'rxjs';
import type { AdmissionSnapshot, Cost } from '../core/ports.ts';
import type { Runtime } from '../core/runtime.ts';
import { admitTo } from '../operators/admit.ts';
import { createAdmission } from '../operators/createAdmission.ts';
import type { LocalAdmission } from '../operators/createAdmission.ts';
import type { Policy } from '../policy/Policy.ts';
import type { Target } from './CallPlan.ts';

/** Lets attempts go: what stands between a retry and the source. */
export class Admissions {
  readonly #runtime: Runtime;
  #admission: LocalAdmission;
  /** What of the policy the admission was made from. */
  #from: string;

  constructor(policy: Policy, runtime: Runtime) {
    this.#runtime = runtime;
    this.#admission = createAdmission(policy, runtime);
    this.#from = partsOf(policy);
  }

  /** One attempt at `model`, which `ask` sends to the deployment that was chosen. */
  admit<T>(model: string, cost: Cost, ask: (deployment: Target['deployment']) => Observable<T>): Observable<T> {
    return admitTo(this.#admission, ask, { model, cost, runtime: this.#runtime });
  }

  /** Those who wait keep their places where they are. */
  reload(policy: Policy): void {
    const from = partsOf(policy);
    if (from === this.#from) return;
    this.#admission = createAdmission(policy, this.#runtime);
    this.#from = from;
  }

  snapshot(): AdmissionSnapshot {
    return this.#admission.snapshot();
  }
}

function partsOf({ maxInFlight, quota, models, tenants, priorities }: Policy): string {
  const limits = Object.entries(models).map(([name, { client, deployments, quota: layer, breaker, concurrency }]) => {
    return [name, client, deployments, layer, breaker, concurrency];
  });
  return JSON.stringify([maxInFlight, quota, limits, tenants, priorities]);
}
