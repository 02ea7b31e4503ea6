import type { Observable } from 'rxjs';
import type { AdmissionSnapshot, Cost } from '../core/ports.ts';
import type { Runtime } from '../core/runtime.ts';
import { admitting } from '../operators/admit.ts';
import { createAdmission } from '../operators/createAdmission.ts';
import type { LocalAdmission } from '../operators/createAdmission.ts';
import { createSharedAdmission } from '../operators/shared/createSharedAdmission.ts';
import type { SharedAdmission } from '../operators/shared/createSharedAdmission.ts';
import type { LimitStore } from '../limits/LimitStore.ts';
import type { Policy } from '../policy/Policy.ts';
import type { Target } from './CallPlan.ts';

/** Lets attempts go: what stands between a retry and the source. */
export class Admissions {
  readonly #options: { readonly runtime: Runtime };
  readonly #admission: LocalAdmission | SharedAdmission;

  /** `store`: shared with other processes. */
  constructor(policy: Policy, store: LimitStore | undefined, runtime: Runtime) {
    this.#options = { runtime };
    this.#admission = store ? createSharedAdmission(policy, store, runtime) : createAdmission(policy, runtime);
  }

  /** One attempt at the model of the frame, which `ask` sends to the deployment that was chosen. */
  admit<T>(cost: Cost, ask: (deployment: Target['deployment']) => Observable<T>): Observable<T> {
    return admitting(this.#admission, this.#options, cost, ask);
  }

  /** Those who wait keep their places, and all limits go on from where they are. */
  reload(policy: Policy): void {
    this.#admission.reload(policy);
  }

  snapshot(): AdmissionSnapshot {
    return this.#admission.snapshot();
  }

  /** Gives back what a store has lent. */
  close(): void {
    if ('close' in this.#admission) this.#admission.close();
  }
}
