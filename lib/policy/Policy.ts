import type { ErrorCode } from '../core/errors.ts';
import type { MidStreamMode } from '../core/midStream.ts';
import type { AimdOptions } from '../limits/Aimd.ts';
import type { BackoffOptions } from '../limits/backoff.ts';
import type { CircuitBreakerOptions } from '../limits/breakerRules.ts';
import type { CooldownOptions } from '../limits/Cooldown.ts';
import type { Refund, RefundCause } from '../limits/refunds.ts';
import type { RetryBudgetOptions } from '../limits/RetryBudget.ts';

export type Complete<T> = { readonly [K in keyof T]-?: NonNullable<T[K]> };

/**
 * A policy with every default filled in: what `parsePolicy` and `loadPolicy` return. Plain data, frozen. `Infinity`
 * stands for a bound that is off; as JSON that is `null`, which `parsePolicy` reads as off again.
 */
export interface Policy {
  /** Addresses and keys of clients, for programs that make clients from the policy. */
  readonly clients: Readonly<Record<string, ClientPolicy>>;
  /** From the call to its first content; to the whole answer where it is not streamed. */
  readonly deadlineMs: number;
  /** From the call to the end of its answer. */
  readonly totalMs: number;
  /** Calls that may be in flight at one time, all together. */
  readonly maxInFlight: number;
  /** Attempts of one call, over all models. */
  readonly maxAttempts: number;
  readonly quota: QuotaPolicy;
  /** `default` is always there; see `modelPolicy` for the settings of a model that is not listed. */
  readonly models: Readonly<Record<string, ModelPolicy>> & { readonly default: ModelPolicy };
  /** `default` is always there, for tenants not listed; see `tenantPolicy`. */
  readonly tenants: Readonly<Record<string, TenantPolicy>> & { readonly default: TenantPolicy };
  readonly priorities: PrioritiesPolicy;
  readonly retryBudget: Complete<RetryBudgetOptions>;
  readonly conversations: ConversationsPolicy;
  readonly spend: SpendPolicy;
  readonly store: StorePolicy;
  readonly telemetry: { readonly captureContent: boolean };
  readonly gateway: GatewayPolicy;
}

export interface ClientPolicy {
  readonly baseURL?: string | undefined;
  readonly apiKey?: string | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

/** Rates of one layer of a quota. A rate that is not there is not limited; a burst is there where its rate is. */
export interface LayerPolicy {
  readonly requestsPerMinute?: number | undefined;
  readonly burstRequests?: number | undefined;
  readonly tokensPerMinute?: number | undefined;
  readonly burstTokens?: number | undefined;
}

/** How the provider behind a layer counts, and how it is approached. */
export interface QuotaRulesPolicy {
  readonly settle: 'usage' | 'reserved';
  readonly refundOn: Readonly<Record<RefundCause, Refund>>;
  readonly arrivalMarginMs: number;
  readonly cooldown: Complete<CooldownOptions>;
  /** A deployment whose quota is exhausted is left alone so long, if the provider did not say. */
  readonly exhaustedMs: number;
}

/** The line in front of all quotas. */
export interface LinePolicy {
  readonly maxWaiting: number;
  readonly maxWaitMs: number;
  /** What may pass a waiter that is too large for what there is, as a part of its tokens. */
  readonly passShare: number;
}

export interface QuotaPolicy {
  /** The layer of all clients that have none of their own, and the line in front of all quotas. */
  readonly account: LayerPolicy & QuotaRulesPolicy & LinePolicy;
  /** Clients with an account of their own: they draw on it instead of `account`. */
  readonly clients: Readonly<Record<string, LayerPolicy & QuotaRulesPolicy>>;
}

export interface ModelPolicy {
  /** The client of deployments that name none. */
  readonly client: string;
  /** Where the model is served. At least one; the least loaded is taken. */
  readonly deployments: readonly DeploymentPolicy[];
  /** The layer of the model, over all its deployments. Each model has its own, also where it comes from `default`. */
  readonly quota: LayerPolicy;
  readonly retry: RetryPolicy;
  /** What deployments get that have none of their own. */
  readonly breaker: BreakerPolicy;
  readonly concurrency: ConcurrencyPolicy;
  /** Models to ask, in order, when this one fails. */
  readonly fallback: readonly string[];
  /** Models to ask instead of those of `fallback`, by the code of the failure. */
  readonly fallbackOn: Readonly<Partial<Record<ErrorCode, readonly string[]>>>;
  readonly params: ParamsPolicy;
  readonly price?: PricePolicy | undefined;
  readonly timeouts: TimeoutsPolicy;
  readonly midStream: MidStreamMode;
  /** Accepts an assistant prefix. */
  readonly canContinue: boolean;
  /** A fallback to it is passed over where the prompt is longer. */
  readonly maxPromptTokens: number;
  /** Asks for usage at the end of a chat stream. */
  readonly includeUsage: boolean;
}

export interface DeploymentPolicy {
  readonly client: string;
  /** The name it has there. Absent: the name that was asked for. */
  readonly model?: string | undefined;
  /** A layer of its own, and the rules of its provider. */
  readonly quota: LayerPolicy & QuotaRulesPolicy;
  readonly breaker: BreakerPolicy;
  readonly concurrency: ConcurrencyPolicy;
}

export interface RetryPolicy extends Complete<BackoffOptions> {
  readonly attempts: number;
  readonly maxHintMs: number;
}

export type BreakerPolicy = Complete<CircuitBreakerOptions>;

/** A limit that stands, or one that finds its size. */
export type ConcurrencyPolicy = { readonly limit: number } | (Complete<AimdOptions> & { readonly limit?: undefined });

export interface ParamsPolicy {
  readonly omit: readonly string[];
  readonly rename: Readonly<Record<string, string>>;
  readonly set: Readonly<Record<string, unknown>>;
}

/** In the currency of `spend`, per million tokens. */
export interface PricePolicy {
  readonly inputPerMTok: number;
  readonly outputPerMTok: number;
  readonly cachedInputPerMTok: number;
}

export interface TimeoutsPolicy {
  readonly headersMs: number;
  /** Absent: the default of stage timers, or half of what is left to the deadline if that is less. */
  readonly firstContentMs?: number | undefined;
  readonly idleMs: number;
  readonly tailMs: number;
  /** Absent: the deadline, or else the default of stage timers. */
  readonly responseMs?: number | undefined;
}

/** What one tenant gets, over all models. */
export interface TenantPolicy extends LayerPolicy {
  readonly maxInFlight: number;
  /** Slots of `maxInFlight` of all calls that it can always have; lent while it is idle. */
  readonly reservedInFlight: number;
  /** Its part of what is short, next to those of others. */
  readonly weight: number;
}

export interface PrioritiesPolicy {
  /** The most urgent first, which is also the priority of calls that name none. */
  readonly order: readonly string[];
  /** One for each name in `order`. */
  readonly levels: Readonly<Record<string, { readonly maxInFlight: number }>>;
  /** One whose oldest waiter has waited so long, times its distance from the first, gets one turn in eight. */
  readonly ageingMs: number;
}

export interface ConversationsPolicy {
  readonly maxWaiting: number;
  readonly maxWaitMs: number;
  /** The header that carries the conversation upstream; `null`: none does. */
  readonly header: string | null;
}

export interface SpendPolicy {
  /** In the currency of prices, by tenant; `default` is always there, for those not listed. Days are of UTC. */
  readonly perTenantPerDay: Readonly<Record<string, number>> & { readonly default: number };
}

export interface StorePolicy {
  /** Where it is not given, the store's own rule holds. */
  readonly onLoss?: 'share' | 'refuse' | undefined;
  readonly url?: string | undefined;
}

export interface GatewayPolicy {
  /** Without any, whoever reaches the gateway may ask it. */
  readonly keys: readonly GatewayKeyPolicy[];
  /** What callers get of a stream that breaks off, unless they ask for another. Absent: what the model has. */
  readonly midStream?: GatewayMidStream | undefined;
}

/** `buffer`: nothing of an answer is passed on before all of it is there. */
export type GatewayMidStream = MidStreamMode | 'buffer';

export interface GatewayKeyPolicy {
  /** SHA-256 of the key, in 64 hexadecimal digits of lower case. */
  readonly hash: string;
  /** Whose calls these are. Absent: named by the request; the key is then an operator's, who may see how all stand. */
  readonly tenant?: string | undefined;
  /** Absent: named by the request. */
  readonly priority?: string | undefined;
}

export interface PolicyOptions {
  /** Names of the clients that there are. A policy that names another is wrong. Default: those of its `clients`, if any. */
  readonly clients?: readonly string[] | undefined;
}

export interface LoadPolicyOptions extends PolicyOptions {
  /** Where `${NAME}` is looked up. Default: the environment of this process. */
  readonly env?: Readonly<Record<string, string | undefined>> | undefined;
}
