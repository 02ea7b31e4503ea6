import type { Client, SluiceOptions } from '../../../lib/index.ts';
import type { LimitStore } from '../../../lib/limits/LimitStore.ts';
import type { Shock } from '../plan/ChaosPlan.ts';
import type { Sabotage } from '../sabotage/Sabotage.ts';
import type { StallingRuntime } from './StallingRuntime.ts';
import type { SourceWitness } from './watchedSource.ts';

export interface Network extends Pick<SluiceOptions, 'fetch'> {
  readonly clients: Readonly<Record<string, Client>>;
}

/** Where a plan is played: time, providers, and what stands between. */
export interface World {
  readonly runtime: StallingRuntime;
  /** What the client of one process sends by. Everything that passes is told to `witness`. */
  connect(process: number, witness: SourceWitness, sabotage: Sabotage): Network;
  /** Of providers that an SDK can be pointed at, by the names of their clients. */
  readonly addresses: Readonly<Record<string, string>>;
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
