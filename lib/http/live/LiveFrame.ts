import type { ErrorCode } from '../../core/errors.ts';
import type { BreakerState } from '../../core/events.ts';
import type { BreakerSnapshot, LayerSnapshot } from '../../core/ports.ts';

/** What happened in one second. Numbers that nothing is known of are `null`, as JSON has it. */
export interface LivePoint {
  /** Seconds since the page began to watch. */
  readonly second: number;
  /** That ended. */
  readonly calls: number;
  readonly failed: number;
  readonly attempts: number;
  readonly rateLimited: number;
  /** At the end of it. */
  readonly inFlight: number;
  readonly waiting: number;
  /** Time to first content of calls over the last 15 seconds. */
  readonly p50Ms: number | null;
  readonly p95Ms: number | null;
  /** The worst that each breaker was; on the wire only where it differs from the second before. */
  readonly breakers?: Readonly<Record<string, BreakerState>>;
}

/** Of the last five minutes, or since the page began to watch. */
export interface LiveTotals {
  readonly calls: number;
  readonly failed: number;
  readonly dropped: number;
  readonly attempts: number;
  readonly rateLimited: number;
  /** Of attempts. */
  readonly rateLimitedShare: number | null;
  /** Attempts per call, of calls that made any. */
  readonly amplification: number | null;
  /** What calls failed with, the most frequent first. */
  readonly codes: readonly (readonly [code: string, calls: number])[];
}

export interface LiveAttempt {
  readonly model: string | undefined;
  /** Milliseconds since the call began. */
  readonly atMs: number;
  readonly durationMs: number;
  readonly firstContentMs: number | undefined;
  readonly outcome: 'success' | 'failure' | 'dropped';
  readonly code: ErrorCode | undefined;
  readonly status: number | undefined;
}

export interface LiveWait {
  readonly where: 'lane' | 'quota' | 'concurrency';
  /** Milliseconds since the call began. */
  readonly atMs: number;
  readonly durationMs: number;
}

/** A call that has ended. No content, no conversation, no key. */
export interface LiveCall {
  /** Rises by one with each call. */
  readonly number: number;
  readonly callId: string;
  /** Milliseconds since the Unix epoch. */
  readonly beganWallMs: number;
  readonly model: string | undefined;
  /** Where another model stood in for that. */
  readonly answeredBy: string | undefined;
  readonly tenant: string | undefined;
  readonly outcome: 'success' | 'failure' | 'dropped';
  readonly code: ErrorCode | undefined;
  readonly durationMs: number;
  /** From the beginning of the call. */
  readonly firstContentMs: number | undefined;
  /** How many there were; the lists are cut. */
  readonly attemptCount: number;
  readonly attempts: readonly LiveAttempt[];
  readonly waits: readonly LiveWait[];
  readonly tokens: number | undefined;
  readonly cost: number | undefined;
}

/** A breaker or a limit that changed, or a pause. Those that repeat at once are counted in one. */
export interface LiveChange {
  readonly number: number;
  readonly wallMs: number;
  readonly kind: 'breaker' | 'cooldown' | 'limit' | 'fallback' | 'store';
  /** Of a breaker, a limiter or a model; empty for the store that processes share. */
  readonly name: string;
  readonly from: string | undefined;
  readonly to: string;
  readonly reason: string;
  readonly times: number;
}

export interface LiveDeployment {
  readonly name: string;
  readonly inFlight: number;
  /** `null` where there is none. */
  readonly limit: number | null;
  readonly cooldownMs: number;
  readonly unavailableMs: number;
  readonly breaker: BreakerSnapshot;
  readonly layers: readonly LayerSnapshot[];
}

export interface LiveModel {
  readonly name: string;
  readonly waiting: number;
  readonly deployments: readonly LiveDeployment[];
}

export interface LiveTenant {
  readonly name: string;
  readonly inFlight: number;
  readonly waiting: number;
  /** Share of its daily cap; `null` where it has none. */
  readonly capUsed: number | null;
}

/** How things stand, cut to what a page can show. */
export interface LiveStanding {
  readonly closed: boolean;
  readonly calls: number;
  readonly inFlight: number;
  readonly waiting: number;
  readonly conversations: number;
  /** That wait for the turn before them. */
  readonly turnsWaiting: number;
  readonly models: readonly LiveModel[];
  readonly moreModels: number;
  readonly tenants: readonly LiveTenant[];
  readonly moreTenants: { readonly count: number; readonly inFlight: number; readonly waiting: number };
  readonly spend: {
    readonly day: string;
    readonly cost: number;
    readonly tokens: number;
    readonly wastedTokens: number;
    readonly models: readonly (readonly [name: string, cost: number])[];
  };
}

/** One event of the stream: `hello` has everything there is, `frame` what is new. */
export interface LiveFrame {
  readonly wallMs: number;
  readonly beganWallMs: number;
  readonly standing: LiveStanding;
  readonly totals: LiveTotals;
  /** Of calls in the last minute. */
  readonly firstContent: { readonly p50Ms: number | null; readonly p95Ms: number | null };
  readonly points: readonly LivePoint[];
  readonly changes: readonly LiveChange[];
  /** The newest last. At most some; `LiveCall.number` tells how many were left out. */
  readonly calls: readonly LiveCall[];
  /** Those that failed, or needed more than one attempt. */
  readonly troubled: readonly LiveCall[];
}
