import type { Observable } from 'rxjs';
import type { AttemptSource } from '../../core/attempt.ts';
import type { Runtime } from '../../core/runtime.ts';
import type { PolicyInput } from '../../policy/PolicyInput.ts';
import type { SimulatedCall } from '../load/CallDrawer.ts';

/** Where calls are made: one simulated process and the providers it can reach. */
export interface World {
  readonly runtime: Runtime;
  readonly sources: Readonly<Record<string, AttemptSource>>;
  readonly policy: PolicyInput;
  /** The name of the client that serves a model. */
  clientOf(model: string): string;
}

/** Makes the calls of a run. What it keeps between them is its own. */
export type Caller = (call: SimulatedCall) => Observable<unknown>;

/** A way of making calls, with what a run of it begins with. */
export type Strategy = (world: World) => Caller;
