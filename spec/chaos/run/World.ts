import type { AttemptSource } from '../../../lib/core/attempt.ts';
import type { LimitStore } from '../../../lib/limits/LimitStore.ts';
import type { Shock } from '../plan/ChaosPlan.ts';
import type { StallingRuntime } from './StallingRuntime.ts';

/** Where a plan is played: time, providers, and what stands between. */
export interface World {
  readonly runtime: StallingRuntime;
  /** Transports by the name of a client. */
  readonly sources: Readonly<Record<string, AttemptSource>>;
  /** What its processes share; one for each of them. Without any there is one process. */
  readonly stores: readonly (LimitStore & { close(): void })[];
  /** Does what only a world can do. */
  shock(shock: Exclude<Shock, { kind: 'reload' | 'stall' }>): void;
  /** Lets time pass until `done`, or until nothing can happen any more. */
  pass(done: () => boolean): Promise<void>;
  /** What providers and connections still have to do with the calls. */
  leftovers(): Promise<Readonly<Record<string, number>>>;
  close(): Promise<void>;
}

export interface ProviderWitness {
  judged(client: string, model: string | undefined, refusal: string | undefined): void;
}
