import type { Observable } from 'rxjs';
import type { CallOptions } from './CallOptions.ts';
import type { DeploymentPolicy, ModelPolicy } from '../policy/Policy.ts';

export type Fields = Readonly<Record<string, unknown>>;

/** Where one attempt goes. */
export interface Target {
  /** The model that was asked for, whatever it is called there. */
  readonly model: string;
  readonly settings: ModelPolicy;
  readonly deployment: Pick<DeploymentPolicy, 'client' | 'model'>;
  /** What goes along with the request. */
  readonly headers: Readonly<Record<string, string>>;
}

/** One call before it is subscribed to. */
export interface CallPlan<T> {
  /** Default: one that is made. */
  readonly id?: string | undefined;
  readonly api: 'chat' | 'responses' | undefined;
  readonly stream: boolean;
  readonly model: string;
  /** `undefined` for a call that brings its own transport. */
  readonly request: Fields | undefined;
  readonly options: CallOptions;
  /** Whether models that only the policy names may answer. */
  readonly policyFallbacks: boolean;
  /** Gets what ends the call with a failure from outside: it counts as failed, even where it has just completed. */
  readonly onBegin?: ((fail: (error: unknown) => void) => void) | undefined;
  /** One attempt with its stage timers, over the source. `request` is adapted to the model. */
  attempt(target: Target, request: Fields | undefined): Observable<T>;
}
