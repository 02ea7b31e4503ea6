import type { Distribution } from '../../emulator/model/distribution.ts';
import type { QuotaChange } from '../../emulator/model/FakeProvider.ts';
import type { ProviderOptions } from '../../emulator/model/settings.ts';
import type { PolicyInput } from '../../policy/PolicyInput.ts';
import type { Recipe } from './Recipe.ts';

/** When calls are made. Rates are per minute, times in milliseconds. */
export type Arrivals =
  /** One every `60,000 / perMinute` ms. */
  | { readonly kind: 'constant'; readonly perMinute: number }
  /** At random, independently of each other. */
  | { readonly kind: 'poisson'; readonly perMinute: number }
  /** So many at one instant, again and again. */
  | { readonly kind: 'bursts'; readonly size: number; readonly everyMs: number }
  /** At random, with a rate that swings around its mean once in `periodMs`; at `peakAtMs` it is `peak` times the mean. */
  | {
      readonly kind: 'daily';
      readonly perMinute: number;
      /** From 1 to 2. Default: 1.5. */
      readonly peak?: number | undefined;
      /** Default: half of the period. */
      readonly peakAtMs?: number | undefined;
      /** Default: a day. */
      readonly periodMs?: number | undefined;
    }
  /** Each of so many makes a call, waits for its end, thinks, and makes the next. */
  | {
      readonly kind: 'workers';
      readonly workers: number;
      /** Default: 0. */
      readonly thinkMs?: Distribution | undefined;
      /** Of all workers together. Default: as many as fit into the time. */
      readonly calls?: number | undefined;
    }
  /** As they are listed, in the order of their times. */
  | { readonly kind: 'trace'; readonly calls: readonly TraceCall[] };

/** A recorded call. What it does not say is drawn as for the others of its load. */
export interface TraceCall {
  readonly atMs: number;
  readonly model?: string | undefined;
  readonly tenant?: string | undefined;
  readonly priority?: string | undefined;
  readonly conversation?: string | undefined;
  readonly promptTokens?: number | undefined;
  readonly outputTokens?: number | undefined;
}

/** Calls of one kind. */
export interface Load {
  readonly arrivals: Arrivals;
  readonly model: string;
  readonly tenant?: string | undefined;
  readonly priority?: string | undefined;
  /** Tokens of the prompt. Default: 500. */
  readonly promptTokens?: Distribution | undefined;
  /** Output limit that the requests name (`max_completion_tokens`). Default: none. */
  readonly outputLimit?: number | undefined;
  /** `share` of the calls are turns of `count` conversations, which are drawn. Default: none. */
  readonly conversations?: { readonly share: number; readonly count: number } | undefined;
  /** Users leave after so long, whatever has come by then. Default: never. */
  readonly leavesAfterMs?: Distribution | undefined;
  /** Default: that of the policy. */
  readonly deadlineMs?: number | undefined;
  /** When it begins, and when it ends. Default: with the scenario. */
  readonly fromMs?: number | undefined;
  readonly toMs?: number | undefined;
}

/** A part of the scenario with figures of its own: of the calls made from `fromMs` to before `toMs`. */
export interface Phase {
  readonly name: string;
  readonly fromMs: number;
  readonly toMs: number;
  /** Of the calls that ask for this model. Default: of all. */
  readonly model?: string | undefined;
}

/** A provider, its limits and faults, and how they change over time. */
export interface Upstream extends Omit<ProviderOptions, 'seed' | 'chunks'> {
  readonly changes?: readonly (QuotaChange & { readonly atMs: number })[] | undefined;
}

/** How calls are made. `sluice` runs the policy; the others are what is done elsewhere. */
export type StrategyInput =
  | { readonly kind: 'bare' }
  /** The SDK's own retries. Default: 2. */
  | { readonly kind: 'sdk'; readonly retries?: number | undefined }
  /** Tries again after a fixed time. Defaults: 5 attempts, 1,000 ms. */
  | { readonly kind: 'fixed'; readonly attempts?: number | undefined; readonly delayMs?: number | undefined }
  /** Doubling waits without jitter, which look at no header. Defaults: 5 attempts, 500 ms, 8,000 ms. */
  | {
      readonly kind: 'backoff';
      readonly attempts?: number | undefined;
      readonly baseMs?: number | undefined;
      readonly capMs?: number | undefined;
      readonly jitter?: 'none' | 'full' | undefined;
      /** A hint of the provider is waited out. Default: false. */
      readonly heedHints?: boolean | undefined;
      /** Asked once the attempts are used up. */
      readonly fallback?: string | undefined;
    }
  /** What a report from production describes. */
  | ({ readonly kind: 'recipe' } & Recipe)
  /** A policy of its own, or that of the scenario. */
  | {
      readonly kind: 'sluice';
      readonly policy?: PolicyInput | undefined;
      /** Whether calls say whose they are. Without it all stand in one line. Default: true. */
      readonly tenants?: boolean | undefined;
    };

/** What is simulated. */
export interface Scenario {
  readonly name: string;
  /** Default: 1. */
  readonly seed?: number | undefined;
  /** Calls are made for so long; what runs by then is run to its end. */
  readonly forMs: number;
  readonly load: readonly Load[];
  /** By the name of the client that reaches it. */
  readonly upstreams: Readonly<Record<string, Upstream>>;
  /** One way, for each message. Default: 20. */
  readonly networkMs?: Distribution | undefined;
  readonly policy?: PolicyInput | undefined;
  /** Default: bare, sdk, backoff and sluice. */
  readonly strategies?: readonly (StrategyInput & { readonly name?: string | undefined })[] | undefined;
  /** Figures of parts of it, beside those of the whole. Default: none. */
  readonly phases?: readonly Phase[] | undefined;
  /** Simulated streams bring their first content and the rest in one. `'all'`: every chunk. Default: `'ends'`. */
  readonly chunks?: 'ends' | 'all' | undefined;
}

export const SCENARIO_DEFAULTS = {
  seed: 1,
  networkMs: 20,
  promptTokens: 500,
  chunks: 'ends',
} as const;
