import type { Observable } from 'rxjs';
import type { Answer } from '../core/answer.ts';
import { oneOf, wholeNumber, zeroOrInfinity, zeroOrMore } from '../core/checks.ts';
import { invalidOption } from '../core/errors.ts';
import type { SluiceError } from '../core/errors.ts';
import type { EventListener } from '../core/events.ts';
import type { RetryBudgetPort } from '../core/ports.ts';
import { systemRuntime } from '../core/runtime.ts';
import type { Runtime } from '../core/runtime.ts';
import { JITTERS } from '../limits/backoff.ts';
import type { BackoffOptions, Jitter } from '../limits/backoff.ts';
import { RETRY_RULE_DEFAULTS } from '../limits/retryRules.ts';
import { MID_STREAM_MODES } from './MidStream.ts';
import type { MidStreamMode } from './MidStream.ts';

export interface RetryWithJitterOptions<T> extends BackoffOptions {
  /** Attempts of one subscription, the first included. A whole number from 1. Default: 5. */
  readonly attempts?: number | undefined;
  /** Attempts of the whole call, over all models. A whole number from 1, or `Infinity`. Default: `Infinity`. */
  readonly maxAttempts?: number | undefined;
  /** The longest hint that is slept out; above it the failure is passed on at once. Milliseconds. Default: 60,000. */
  readonly maxHintMs?: number | undefined;
  /** Bounds what retries add to the load of the model. Default: that of the call, if it has one. */
  readonly budget?: RetryBudgetPort | undefined;
  /** What one attempt weighs in the budget. Default: 1, which makes the budget count requests. */
  readonly tokens?: number | undefined;
  /**
   * Whether a failure is worth another attempt. Not asked about local refusals and cancels, which are never retried.
   * Default: what the error says (`retryable`), but a provider that stayed silent is not tried again while a
   * `fallbackModel` of the call has another model.
   */
  readonly shouldRetry?: ((failure: SluiceError) => boolean) | undefined;
  /** What to do when the stream fails after its first value. Default: `'fail'`. */
  readonly midStream?: MidStreamMode | undefined;
  /** For `'restart'`, and for `'continue'` where a prefix is refused: the consumer handles markers. Default: `false`. */
  readonly restarts?: boolean | undefined;
  /** For `'continue'`: the model accepts an assistant prefix. Default: `false`. */
  readonly canContinue?: boolean | undefined;
  /** For `'continue'`: asks for what follows `partial`, see `withAssistantPrefix`. */
  readonly continueWith?: ((partial: Answer) => Observable<T>) | undefined;
  /**
   * Milliseconds that an attempt takes at least until its first value: one that would have less before the deadline of the
   * call is not made. Asked before each retry. Default: 0.
   */
  readonly leastMs?: (() => number) | undefined;
  /** Names the model in events, markers and errors where the source does not. */
  readonly model?: string | undefined;
  readonly onEvent?: EventListener | undefined;
  /** Default: real time. */
  readonly runtime?: Runtime | undefined;
}

export const RETRY_DEFAULTS: Readonly<{
  attempts: number;
  maxAttempts: number;
  baseMs: number;
  capMs: number;
  jitter: Jitter;
  maxHintMs: number;
  tokens: number;
  midStream: MidStreamMode;
}> = Object.freeze({
  ...RETRY_RULE_DEFAULTS,
  tokens: 1,
  midStream: 'fail',
});

/** The options with their defaults, checked. */
export interface RetrySettings<T> {
  readonly attempts: number;
  readonly maxAttempts: number;
  readonly maxHintMs: number;
  readonly backoff: Required<BackoffOptions>;
  readonly tokens: number;
  readonly midStream: MidStreamMode;
  readonly budget: RetryBudgetPort | undefined;
  readonly shouldRetry: ((failure: SluiceError) => boolean) | undefined;
  readonly restarts: boolean;
  /** Only where the model accepts a prefix. */
  readonly continueWith: ((partial: Answer) => Observable<T>) | undefined;
  readonly leastMs: () => number;
  readonly model: string | undefined;
  readonly onEvent: EventListener | undefined;
  readonly runtime: Runtime;
}

export function retrySettings<T>(options: RetryWithJitterOptions<T>): RetrySettings<T> {
  const { canContinue = false, continueWith } = options;
  const midStream = oneOf('midStream', options.midStream ?? RETRY_DEFAULTS.midStream, MID_STREAM_MODES);
  if (midStream === 'continue' && canContinue && continueWith === undefined) {
    throw invalidOption('continueWith', 'given where canContinue is set', continueWith);
  }
  return {
    attempts: wholeNumber('attempts', options.attempts ?? RETRY_DEFAULTS.attempts),
    maxAttempts: wholeOrInfinity('maxAttempts', options.maxAttempts ?? RETRY_DEFAULTS.maxAttempts),
    maxHintMs: zeroOrInfinity('maxHintMs', options.maxHintMs ?? RETRY_DEFAULTS.maxHintMs),
    backoff: {
      baseMs: zeroOrMore('baseMs', options.baseMs ?? RETRY_DEFAULTS.baseMs),
      capMs: zeroOrMore('capMs', options.capMs ?? RETRY_DEFAULTS.capMs),
      jitter: oneOf('jitter', options.jitter ?? RETRY_DEFAULTS.jitter, JITTERS),
    },
    tokens: zeroOrMore('tokens', options.tokens ?? RETRY_DEFAULTS.tokens),
    midStream,
    budget: options.budget,
    shouldRetry: options.shouldRetry,
    restarts: options.restarts ?? false,
    continueWith: canContinue ? continueWith : undefined,
    leastMs: options.leastMs ?? (() => 0),
    model: options.model,
    onEvent: options.onEvent,
    runtime: options.runtime ?? systemRuntime,
  };
}

export function wholeOrInfinity(option: string, value: number): number {
  return value === Infinity ? value : wholeNumber(option, value);
}
