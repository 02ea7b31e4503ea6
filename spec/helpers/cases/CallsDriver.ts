import type OpenAI from 'openai';
import type { Observable } from 'rxjs';
import type { BreakerState, SluiceEvent } from '../../../lib/core/events.ts';
import type { LanesSnapshot } from '../../../lib/core/ports.ts';
import type { ChatRequest } from '../../../lib/sources/requests.ts';
import { estimateCost } from '../../../lib/wire/estimate.ts';
import type { CountedRuntime } from './CaseTime.ts';
import type { CallsConfig, CallsInput, Step } from './callsCase.ts';

/** One way to put together what a case configures in neutral words, and to look at what became of it. */
export interface CallsDriver {
  /** One call. `onEvent` hears its facts. */
  call(step: Step, request: ChatRequest, options: DriverCallOptions): Observable<unknown>;
  /** The smallest call there is, within a conversation. */
  turn(conversation: string): Observable<string>;
  breakerOf(model: string): BreakerState;
  isPaused(model: string): boolean;
  tokensLeft(model: string): number | undefined;
  slots(): { readonly inFlight: number; readonly waiting: number; readonly limit: number };
  lanes(): LanesSnapshot;
  /** Sizes of the concurrency limit, as they changed. */
  readonly limits: readonly number[];
}

export interface DriverCallOptions {
  readonly signal: AbortSignal | undefined;
  readonly onEvent: (event: SluiceEvent) => void;
}

/** @throws SluiceError `invalid_option` or `invalid_policy` for a configuration that cannot work. */
export type MakeDriver = (input: CallsInput, client: OpenAI, runtime: CountedRuntime) => CallsDriver;

/** Requests a minute that a case allows, if it says so. */
export function requestRates(config: CallsConfig): { requestsPerMinute?: number; burstRequests?: number | undefined } {
  const { rate_per_sec: perSecond, burst, min_interval_ms: intervalMs } = config;
  if (perSecond !== undefined) return { requestsPerMinute: perSecond * 60, burstRequests: burst };
  return intervalMs === undefined ? {} : { requestsPerMinute: 60_000 / intervalMs, burstRequests: 1 };
}

/** What the breaker of a case does not name stays out of its way. Cases that count probes mean to let all of them through. */
export function breakerSettings({ breaker }: CallsConfig): {
  consecutiveFailures: number;
  errorRatio: number;
  minCalls?: number | undefined;
  openMs?: number | undefined;
  halfOpenMaxProbes?: number | undefined;
  halfOpenShare?: number | undefined;
  countRateLimited?: boolean | undefined;
  rampMs: number;
} {
  return {
    consecutiveFailures: breaker?.failures ?? Infinity,
    errorRatio: breaker?.error_ratio ?? Infinity,
    minCalls: breaker?.min_calls,
    openMs: breaker?.reset_ms,
    halfOpenMaxProbes: breaker?.half_open_max,
    halfOpenShare: breaker?.half_open_max === undefined ? undefined : 1,
    countRateLimited: breaker?.count_429,
    rampMs: 0,
  };
}

/** What a call takes from quotas. */
export function costOf(
  { default_output_estimate: guess }: CallsConfig,
  { explicit_tokens: named, estimate, prompt_tokens: prompt }: Step,
  request: ChatRequest,
): { readonly tokens: number; readonly explicit: boolean } {
  if (named !== undefined) return { tokens: named, explicit: true };
  const guessed = estimateCost(request, guess === undefined ? {} : { defaultOutputTokens: guess });
  return { tokens: estimate ?? (prompt === undefined ? 0 : guessed.tokens), explicit: false };
}
