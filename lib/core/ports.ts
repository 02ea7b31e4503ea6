import type { Observable } from 'rxjs';
import type { ErrorCode, SluiceError } from './errors.ts';
import type { BreakerState, SluiceFact } from './events.ts';
import type { RateLimitHints, Usage } from './hints.ts';
import type { Outcome } from './outcome.ts';

// Rules for every `acquire`:
// - cold; a place in line is taken synchronously at subscribe;
// - emits one value and completes, or fails with a SluiceError of source 'local';
// - unsubscribe before the value gives the place back and takes nothing;
// - whoever got the value owns it and must call `release` once; further calls do nothing.

/** Who asks, and how long it may take. */
export interface AcquireRequest {
  readonly callId?: string | undefined;
  readonly model?: string | undefined;
  readonly tenant?: string | undefined;
  readonly priority?: string | undefined;
  readonly conversation?: string | undefined;
  /** Longest wait for this grant. Default: the limiter's own bound. */
  readonly maxWaitMs?: number | undefined;
  /** Monotonic milliseconds by which the grant must come. */
  readonly deadlineAtMs?: number | undefined;
  /** Called when the request has to wait: its place in line from 1, and the wait in so far as it is known. */
  readonly onQueued?: ((position: number, waitMs: number | undefined) => void) | undefined;
  /** Hears what the limiter changes because of this request, until it has ended. */
  readonly onFact?: ((fact: SluiceFact) => void) | undefined;
}

/** What one attempt takes from a quota. */
export interface Cost {
  readonly requests: number;
  readonly tokens: number;
  /** `true` where the caller named the tokens: then more than a minute's worth is refused. A guess is clamped. */
  readonly explicit: boolean;
}

/** How a reservation ended, in tokens. */
export interface QuotaSettlement {
  readonly reservedTokens: number;
  /** As the provider reported it; undefined where it did not. */
  readonly usedTokens: number | undefined;
  readonly refundedTokens: number;
}

export interface QuotaRequest extends AcquireRequest {
  readonly cost: Cost;
  /** Called once, when the grant has been released. */
  readonly onSettled?: ((settlement: QuotaSettlement) => void) | undefined;
  /** Called when the answer to this attempt pauses the quota, for everyone. */
  readonly onCooldown?: ((waitMs: number, reason: ErrorCode) => void) | undefined;
}

/** A reservation in every layer of a quota. */
export interface Grant {
  readonly waitedMs: number;
  /** Tokens that were reserved, after clamping. */
  readonly reservedTokens: number;
  /**
   * The attempt is sent now. Reports of limits are ordered by this. `sentFollows`: `sent` will be called, and nothing of
   * what it took comes back before.
   */
  dispatched(sentFollows?: boolean): void;
  /** Gives back so many of its tokens, before it is dispatched: it goes to one that needs fewer. */
  shrink?(tokens: number): void;
  /** It has been handed to the network only now: it will arrive that much later. */
  sent?(): void;
  /** The head of an answer is here: after a cooldown, others follow the first one once it has been answered. */
  responded?(status: number): void;
  /** What the answer to this attempt said of limits. */
  observe(hints: RateLimitHints): void;
  /** What the provider says it counted. */
  settle(usage: Usage): void;
  /** Ends the reservation; what is refunded depends on how the attempt ended. */
  release(outcome: Outcome): void;
}

export interface LayerSnapshot {
  readonly layer: string;
  readonly requests: { readonly level: number; readonly burst: number; readonly perMinute: number } | undefined;
  readonly tokens: { readonly level: number; readonly burst: number; readonly perMinute: number } | undefined;
}

export interface QuotaSnapshot {
  readonly waiting: number;
  readonly cooldownMs: number;
  readonly layers: readonly LayerSnapshot[];
}

export interface QuotaPort {
  acquire(request: QuotaRequest): Observable<Grant>;
  /** A hint that reached the caller by another way than a grant. */
  observe(hints: RateLimitHints): void;
  snapshot(): QuotaSnapshot;
}

/** A slot of a concurrency limit. */
export interface Permit {
  readonly waitedMs: number;
  /** `firstContentMs`: from dispatch to the first content, where there was any. */
  release(outcome: Outcome, firstContentMs?: number): void;
}

export interface ConcurrencySnapshot {
  readonly limit: number;
  readonly inFlight: number;
  readonly waiting: number;
}

export interface ConcurrencyPort {
  acquire(request: AcquireRequest): Observable<Permit>;
  snapshot(): ConcurrencySnapshot;
}

/** Leave to try, given by a breaker. */
export interface BreakerPass {
  /**
   * Calls `revoke` if the breaker opens before `release` or `dispatched`: the attempt must not be sent then. Returns
   * nothing: both calls end it.
   */
  onRevoke(revoke: (refusal: SluiceError) => void): void;
  /** The attempt is sent now and can no longer be revoked. */
  dispatched(): void;
  /** The first content has come: a probe is not stuck. */
  firstContent?(): void;
  release(outcome: Outcome): void;
}

export interface BreakerSnapshot {
  readonly state: BreakerState;
  /** Until the next probe may go; 0 unless open. */
  readonly retryAfterMs: number;
  readonly consecutiveFailures: number;
  readonly calls: number;
  readonly failures: number;
}

export interface BreakerPort {
  acquire(request: AcquireRequest): Observable<BreakerPass>;
  snapshot(): BreakerSnapshot;
}

/** What one attempt asks for in one step: breaker, cooldown, quota and slots. */
export interface AdmissionRequest extends QuotaRequest {
  readonly model: string;
}

/** Everything that one attempt holds. */
export interface Admitted {
  readonly waitedMs: number;
  /** Tokens that were reserved, after clamping. */
  readonly reservedTokens: number;
  /** Where it is to be sent. */
  readonly deployment: Deployment;
  /**
   * Calls `revoke` if the breaker opens before `release` or `dispatched`: the attempt must not be sent then. Returns
   * nothing: both calls end it.
   */
  onRevoke(revoke: (refusal: SluiceError) => void): void;
  /** The attempt is sent now. `sentFollows`: `sent` will be called, and nothing of what it took comes back before. */
  dispatched(sentFollows?: boolean): void;
  /** It has been handed to the network only now: it will arrive that much later. */
  sent?(): void;
  /** The head of an answer is here. */
  responded(status: number): void;
  /** What the answer to this attempt said of limits. */
  observe(hints: RateLimitHints): void;
  /** What the provider says it counted. */
  settle(usage: Usage): void;
  firstContent(): void;
  /**
   * The attempt has ended, as far as quota, breaker and limits are concerned. What it has in flight it keeps until
   * `release`. `firstContentMs`: from dispatch to the first content, where there was any.
   */
  end(outcome: Outcome, firstContentMs?: number): void;
  /** Nothing of it runs any more. Ends it, if `end` did not. */
  release(outcome: Outcome, firstContentMs?: number): void;
}

/** One place that serves a model. */
export interface Deployment {
  /** The name of the model; where it has several deployments, `model@client`. */
  readonly name: string;
  readonly client: string;
  /** The name the model has there. */
  readonly model: string;
}

export interface DeploymentSnapshot extends Deployment {
  readonly inFlight: number;
  /** `Infinity` where there is none. */
  readonly limit: number;
  readonly cooldownMs: number;
  /** Until it is asked again: its breaker is open, or its account has run out. */
  readonly unavailableMs: number;
  readonly breaker: BreakerSnapshot;
  readonly layers: readonly LayerSnapshot[];
}

export interface AdmissionSnapshot {
  readonly inFlight: number;
  readonly waiting: number;
  readonly models: Readonly<
    Record<string, { readonly waiting: number; readonly deployments: readonly DeploymentSnapshot[] }>
  >;
  /** Those that have something in flight or waiting; calls without a tenant under the empty name. */
  readonly tenants: Readonly<Record<string, { readonly inFlight: number; readonly waiting: number }>>;
  readonly priorities: Readonly<Record<string, { readonly inFlight: number }>>;
}

export interface AdmissionPort {
  acquire(request: AdmissionRequest): Observable<Admitted>;
  snapshot(): AdmissionSnapshot;
}

/** A turn of a conversation. */
export interface LanePlace {
  readonly waitedMs: number;
  /** Where processes share the lane: higher for each turn of it that starts. What takes its writes can refuse older ones. */
  readonly token?: number | undefined;
  /**
   * Calls `lose` if the place is lost before `release`: superseded by a newer turn, or its lease ran out. The turn must
   * end with that error.
   */
  onLost(lose: (error: SluiceError) => void): void;
  /** Looks at the clock before something of the turn is passed on: if the lease has run out, `lose` is called at once. */
  check?(): void;
  release(): void;
}

export interface LaneRequest extends AcquireRequest {
  readonly conversation: string;
  /** End the running turn, and those waiting, with `superseded`, and start at once. */
  readonly supersede?: boolean | undefined;
}

export interface LanesSnapshot {
  /** Conversations with a turn running or waiting. */
  readonly conversations: number;
  readonly waiting: number;
}

export interface LanesPort {
  acquire(request: LaneRequest): Observable<LanePlace>;
  snapshot(): LanesSnapshot;
}

/** Limits what retries add to the load of an upstream. Synchronous: asked before sleeping. */
export interface RetryBudgetPort {
  /** A first attempt was sent: earns. */
  deposit(tokens: number): void;
  /** Takes what one retry costs, or refuses. */
  withdraw(tokens: number): boolean;
}
