import type { ProviderOptions, QuotaSettings } from '../../../lib/emulator/index.ts';
import type { PolicyInput } from '../../../lib/index.ts';
import type { GatewayMidStream } from '../../../lib/policy/Policy.ts';

/**
 * Where a plan is played. `virtual`: everything in one virtual time, the same to the last event each time. `http`: over
 * real HTTP to emulators. `redis`: over real HTTP, as two clients that share a Redis server of their own.
 */
export type WorldName = 'virtual' | 'http' | 'redis';

/** Everything that is going to happen, as plain data. All times are milliseconds since the beginning. */
export interface ChaosPlan {
  /** Draws what is left to chance while it is played: jitter, latencies, which requests get a random fault. */
  readonly seed: number;
  readonly world: WorldName;
  readonly policy: PolicyInput;
  /** By the name of a client. */
  readonly providers: Readonly<Record<string, PlannedProvider>>;
  readonly calls: readonly PlannedCall[];
  readonly shocks: readonly Shock[];
  /** When the client is closed; what then still runs is cut after `drainMs`. Absent: when all calls have ended. */
  readonly close?: { readonly atMs: number; readonly drainMs: number } | undefined;
}

export interface PlannedProvider {
  /** Plain data: no `when` in its faults, no dialect of its own. */
  readonly options: Omit<ProviderOptions, 'seed'>;
  /** Each message takes between these, one way. Over real HTTP it takes what it takes. */
  readonly networkMs: readonly [least: number, most: number];
}

export interface PlannedCall {
  readonly atMs: number;
  readonly api: 'chat' | 'respond' | 'complete';
  /** By a method of the client where nothing is said. */
  readonly by?: CallerKind | undefined;
  readonly model: string;
  readonly words: number;
  readonly outputLimit?: number | undefined;
  /** Which of the clients that share a store; 0 where there is one. */
  readonly process?: number | undefined;
  readonly tenant?: string | undefined;
  readonly conversation?: string | undefined;
  readonly priority?: string | undefined;
  readonly deadlineMs?: number | undefined;
  readonly restarts?: boolean | undefined;
  readonly attempts?: number | undefined;
  /** In place of what the policy says. */
  readonly fallback?: readonly string[] | undefined;
  /** What a client of a gateway says of streams that break off. */
  readonly midStream?: GatewayMidStream | undefined;
  readonly leaves?: Leaving | undefined;
}

/**
 * `gateway`: a client that asks a gateway over HTTP. `fetch`: an SDK whose `fetch` is `sluice.fetch`. `call`: `sluice.call`
 * with a function that asks the SDK client which it is given.
 */
export type CallerKind = 'gateway' | 'fetch' | 'call';

/** How a caller goes before the end: so long after it asked, or with the value of that number. */
export type Leaving =
  | { readonly how: 'unsubscribe' | 'abort'; readonly afterMs: number }
  | { readonly how: 'unsubscribe' | 'abort'; readonly atValue: number };

export type Shock =
  | { readonly kind: 'reload'; readonly atMs: number; readonly policy: PolicyInput }
  /** The provider changes its limits, and tells nobody. */
  | { readonly kind: 'limits'; readonly atMs: number; readonly client: string; readonly account: QuotaSettings }
  /** The wall clock is corrected. */
  | { readonly kind: 'wall'; readonly atMs: number; readonly byMs: number }
  /** The process stands still: timers and messages that were due come late, all at once. */
  | { readonly kind: 'stall'; readonly atMs: number; readonly forMs: number }
  /** The store is emptied, or is away or silent for some time. */
  | {
      readonly kind: 'store';
      readonly atMs: number;
      readonly what: 'flush' | 'restart' | 'pause';
      readonly forMs: number;
    };
