import type { ErrorCode } from '../core/errors.ts';
import type { MidStreamMode } from '../core/midStream.ts';
import type { Jitter } from '../limits/backoff.ts';
import type { CooldownOptions } from '../limits/Cooldown.ts';
import type { RefundRules } from '../limits/refunds.ts';
import type { ClientPolicy, GatewayMidStream, LayerPolicy } from './Policy.ts';

/** `null` turns the bound off. */
export type Bound = number | null | undefined;

/** Settings to start from. */
export type PresetName = 'firstAid' | 'interactive' | 'batch';

/** How much trouble a model is worth: how often it is retried, and when its breaker opens. */
export type RetryClass = 'cheap' | 'main' | 'expensive' | 'lastResort';

/** A policy as it is written. Every part may be left out; a {@link Policy} is one too. */
export interface PolicyInput {
  readonly preset?: PresetName | undefined;
  readonly clients?: Readonly<Record<string, ClientPolicy>> | undefined;
  readonly deadlineMs?: Bound;
  readonly totalMs?: Bound;
  readonly maxInFlight?: Bound;
  readonly maxAttempts?: Bound;
  readonly quota?: QuotaInput | undefined;
  readonly models?: Readonly<Record<string, ModelInput>> | undefined;
  readonly tenants?: Readonly<Record<string, TenantInput>> | undefined;
  readonly priorities?: PrioritiesInput | undefined;
  readonly retryBudget?:
    | {
        readonly ratio?: number | undefined;
        readonly minPerSecond?: number | undefined;
        readonly windowMs?: number | undefined;
      }
    | undefined;
  readonly conversations?:
    | { readonly maxWaiting?: Bound; readonly maxWaitMs?: Bound; readonly header?: string | null | undefined }
    | undefined;
  readonly spend?: { readonly perTenantPerDay?: Readonly<Record<string, number | null>> | undefined } | undefined;
  readonly store?: { readonly onLoss?: 'share' | 'refuse' | undefined; readonly url?: string | undefined } | undefined;
  readonly telemetry?: { readonly captureContent?: boolean | undefined } | undefined;
  readonly gateway?: GatewayInput | undefined;
}

export interface LayerInput extends LayerPolicy {
  readonly settle?: 'usage' | 'reserved' | undefined;
  readonly refundOn?: RefundRules | undefined;
  readonly arrivalMarginMs?: number | undefined;
  readonly cooldown?: CooldownOptions | undefined;
  readonly exhaustedMs?: number | undefined;
}

export interface AccountInput extends LayerInput {
  readonly maxWaiting?: Bound;
  readonly maxWaitMs?: Bound;
  readonly passShare?: number | undefined;
}

export interface QuotaInput {
  readonly account?: AccountInput | undefined;
  readonly clients?: Readonly<Record<string, LayerInput>> | undefined;
}

export interface RetryInput {
  readonly attempts?: number | undefined;
  readonly baseMs?: number | undefined;
  readonly capMs?: number | undefined;
  readonly jitter?: Jitter | undefined;
  readonly maxHintMs?: Bound;
}

export interface BreakerInput {
  readonly consecutiveFailures?: Bound;
  readonly errorRatio?: Bound;
  readonly windowMs?: number | undefined;
  readonly minCalls?: number | undefined;
  readonly openMs?: number | undefined;
  readonly openFactor?: number | undefined;
  readonly steadyProbes?: number | undefined;
  readonly openCapMs?: number | undefined;
  readonly halfOpenShare?: number | undefined;
  readonly halfOpenMaxProbes?: number | undefined;
  readonly halfOpenMaxMs?: number | undefined;
  readonly rampMs?: number | undefined;
  readonly countRateLimited?: boolean | undefined;
}

export interface ConcurrencyInput {
  readonly limit?: Bound;
  readonly initial?: number | undefined;
  readonly min?: number | undefined;
  readonly max?: number | undefined;
  readonly decrease?: number | undefined;
  readonly growEveryMs?: number | undefined;
  readonly maxOverMeasured?: Bound;
  readonly maxFirstContentMs?: Bound;
}

export interface DeploymentInput {
  readonly client?: string | undefined;
  readonly model?: string | undefined;
  readonly quota?: LayerInput | undefined;
  readonly breaker?: BreakerInput | undefined;
  readonly concurrency?: ConcurrencyInput | undefined;
}

export interface ParamsInput {
  readonly omit?: readonly string[] | undefined;
  readonly rename?: Readonly<Record<string, string>> | undefined;
  readonly set?: Readonly<Record<string, unknown>> | undefined;
}

export interface TimeoutsInput {
  readonly headersMs?: Bound;
  readonly firstContentMs?: Bound;
  readonly idleMs?: Bound;
  readonly tailMs?: Bound;
  readonly responseMs?: Bound;
}

export interface ModelInput {
  readonly class?: RetryClass | undefined;
  readonly client?: string | undefined;
  readonly deployments?: readonly DeploymentInput[] | undefined;
  readonly quota?: LayerInput | undefined;
  readonly retry?: RetryInput | undefined;
  readonly breaker?: BreakerInput | undefined;
  readonly concurrency?: ConcurrencyInput | undefined;
  readonly fallback?: readonly string[] | undefined;
  readonly fallbackOn?: Readonly<Partial<Record<ErrorCode, readonly string[] | undefined>>> | undefined;
  readonly params?: ParamsInput | undefined;
  readonly price?:
    | {
        readonly inputPerMTok: number;
        readonly outputPerMTok: number;
        readonly cachedInputPerMTok?: number | undefined;
      }
    | undefined;
  readonly timeouts?: TimeoutsInput | undefined;
  readonly midStream?: MidStreamMode | undefined;
  readonly canContinue?: boolean | undefined;
  readonly maxPromptTokens?: Bound;
  readonly includeUsage?: boolean | undefined;
}

export interface TenantInput extends LayerPolicy {
  readonly maxInFlight?: Bound;
  readonly reservedInFlight?: number | undefined;
  readonly weight?: number | undefined;
}

export interface PriorityInput {
  readonly maxInFlight?: Bound;
}

/** Settings of a priority stand under its name, or under its name in `levels`. */
export interface PrioritiesInput {
  readonly order?: readonly string[] | undefined;
  readonly levels?: Readonly<Record<string, PriorityInput>> | undefined;
  readonly ageingMs?: Bound;
  readonly [name: string]: PriorityInput | readonly string[] | Readonly<Record<string, PriorityInput>> | Bound;
}

export interface GatewayInput {
  /** Keys, or only their hashes. */
  readonly keys?: readonly (string | GatewayKeyInput)[] | undefined;
  readonly midStream?: GatewayMidStream | undefined;
}

export interface GatewayKeyInput {
  /** SHA-256 of the key, in 64 hexadecimal digits. */
  readonly hash: string;
  readonly tenant?: string | undefined;
  readonly priority?: string | undefined;
}
