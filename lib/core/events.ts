import type { ServerAddress } from './attempt.ts';
import type { ErrorCode } from './errors.ts';
import type { RateLimitHints, Usage } from './hints.ts';

export type BreakerState = 'closed' | 'open' | 'half_open' | 'ramping';

/** What happened, without whom it happened to. Plain facts: no prompt, completion, key or raw header. */
export type SluiceFact =
  | {
      readonly type: 'queued';
      readonly where: 'lane' | 'quota' | 'concurrency';
      readonly position: number;
      readonly waitMs: number | undefined;
    }
  | { readonly type: 'granted'; readonly where: 'lane' | 'quota' | 'concurrency'; readonly waitedMs: number }
  /** It was queued, and its caller left before it was granted or refused. */
  | { readonly type: 'left'; readonly where: 'lane' | 'quota' | 'concurrency' }
  | {
      readonly type: 'attempt.started';
      /** Where it is sent to, in so far as it is known. */
      readonly server: ServerAddress | undefined;
    }
  | { readonly type: 'hints'; readonly hints: RateLimitHints; readonly status: number | undefined }
  | { readonly type: 'committed'; readonly firstContentMs: number }
  | {
      readonly type: 'attempt.ended';
      readonly outcome: 'success' | 'failure' | 'dropped';
      readonly code: ErrorCode | undefined;
      /** Of the failure; short and redacted. */
      readonly message: string | undefined;
      readonly status: number | undefined;
      readonly requestId: string | undefined;
      readonly durationMs: number;
      /** As the provider reported it. */
      readonly usage: Usage | undefined;
      /** Where it reported none, and has probably billed the attempt all the same. */
      readonly estimatedUsage: Usage | undefined;
      readonly responseId: string | undefined;
      readonly responseModel: string | undefined;
      readonly serviceTier: string | undefined;
      readonly systemFingerprint: string | undefined;
      readonly finishReasons: readonly string[];
      /** Chunks that held content. */
      readonly contentChunks: number;
      /** From the first of them to the last. */
      readonly contentMs: number;
    }
  | {
      readonly type: 'retry.scheduled';
      readonly waitMs: number;
      readonly code: ErrorCode;
      /** `'hint'`: the provider's wait was the longer one. */
      readonly waitSource: 'backoff' | 'hint';
    }
  | {
      readonly type: 'breaker.changed';
      readonly breaker: string;
      readonly from: BreakerState;
      readonly to: BreakerState;
      readonly reason: string;
    }
  | {
      readonly type: 'limit.changed';
      readonly limiter: string;
      readonly from: number;
      readonly to: number;
      readonly reason: string;
    }
  | { readonly type: 'cooldown'; readonly waitMs: number; readonly reason: ErrorCode }
  | { readonly type: 'fallback'; readonly from: string | undefined; readonly to: string; readonly code: ErrorCode }
  | { readonly type: 'restart'; readonly code: ErrorCode }
  /** The shared store is lost, or back. Of no call: its id is empty. */
  | {
      readonly type: 'store.changed';
      readonly to: 'lost' | 'returned';
      /** Why it was lost: `TIMEOUT`, or a code of the connection or the server. */
      readonly reason: string | undefined;
    }
  | { readonly type: 'refused'; readonly code: ErrorCode; readonly retryAfterMs: number | undefined }
  | {
      readonly type: 'settled';
      readonly reservedTokens: number;
      readonly usedTokens: number | undefined;
      readonly refundedTokens: number;
    }
  | {
      readonly type: 'call.ended';
      readonly outcome: 'success' | 'failure' | 'dropped';
      readonly code: ErrorCode | undefined;
      /** Of the failure; short and redacted. */
      readonly message: string | undefined;
      readonly attempts: number;
      readonly durationMs: number;
      // Where the attempts of the call were accounted for:
      /** Of the answer that was delivered. */
      readonly usage?: Usage | undefined;
      /** Of all other attempts, in and out. */
      readonly wastedTokens?: number;
      /** Of all attempts whose models have a price; `undefined` where none has. */
      readonly cost?: number | undefined;
      /** Whether `usage`, `wastedTokens` or `cost` rests on an estimate. */
      readonly usageEstimated?: boolean;
    };

/** Whom a fact belongs to, and when it happened. */
export interface EventContext {
  readonly callId: string;
  /** Number of the attempt within its call, from 1; before the first dispatch, the number it will get. */
  readonly attempt: number;
  readonly model: string | undefined;
  readonly tenant: string | undefined;
  readonly conversation: string | undefined;
  /** Monotonic milliseconds. */
  readonly atMs: number;
}

export type SluiceEvent = EventContext & SluiceFact;

export type EventListener = (event: SluiceEvent) => void;
