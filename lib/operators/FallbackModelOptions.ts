import type { Observable } from 'rxjs';
import type { Answer } from '../core/answer.ts';
import { oneOf, positive, zeroOrMore } from '../core/checks.ts';
import { invalidOption } from '../core/errors.ts';
import type { ErrorCode } from '../core/errors.ts';
import type { EventListener } from '../core/events.ts';
import { systemRuntime } from '../core/runtime.ts';
import type { Runtime } from '../core/runtime.ts';
import { MID_STREAM_MODES } from './MidStream.ts';
import type { MidStreamMode } from './MidStream.ts';
import { wholeOrInfinity } from './RetryWithJitterOptions.ts';

export interface FallbackModelOptions<T> {
  /** The only codes that lead to a model, besides those that a map names. Default: see {@link fallbackModel}. */
  readonly onlyOn?: readonly ErrorCode[] | undefined;
  /** Codes that never lead to a model. Default: none. */
  readonly except?: readonly ErrorCode[] | undefined;
  /** Attempts of the whole call, over all models. A whole number from 1, or `Infinity`. Default: `Infinity`. */
  readonly maxAttempts?: number | undefined;
  /** Length of the prompt, for `maxPromptTokens`. Default: 0, which fits everywhere. */
  readonly promptTokens?: number | undefined;
  /** The longest prompt by model; a model that cannot fit it is passed over. Default: no bound. */
  readonly maxPromptTokens?: Readonly<Record<string, number>> | undefined;
  /** What to do when a stream fails after its first value. Default: `'fail'`. */
  readonly midStream?: MidStreamMode | undefined;
  /** For `'restart'`, and for `'continue'` where a prefix is refused: the consumer handles markers. Default: `false`. */
  readonly restarts?: boolean | undefined;
  /** For `'continue'`: the models that accept an assistant prefix. Default: none. */
  readonly canContinue?: readonly string[] | undefined;
  /** For `'continue'`: asks `model` for what follows `partial`, see `withAssistantPrefix`. */
  readonly continueWith?: ((partial: Answer, model: string) => Observable<T>) | undefined;
  readonly onEvent?: EventListener | undefined;
  /** Default: real time. */
  readonly runtime?: Runtime | undefined;
}

export const FALLBACK_DEFAULTS: Readonly<{ maxAttempts: number; promptTokens: number; midStream: MidStreamMode }> =
  Object.freeze({ maxAttempts: Infinity, promptTokens: 0, midStream: 'fail' });

/** The options with their defaults, checked. */
export interface FallbackSettings<T> {
  readonly onlyOn: readonly ErrorCode[] | undefined;
  readonly except: readonly ErrorCode[] | undefined;
  readonly maxAttempts: number;
  readonly fits: (model: string) => boolean;
  readonly midStream: MidStreamMode;
  readonly restarts: boolean;
  readonly continueWith: (model: string) => ((partial: Answer) => Observable<T>) | undefined;
  readonly onEvent: EventListener | undefined;
  readonly runtime: Runtime;
}

export function fallbackSettings<T>(options: FallbackModelOptions<T>): FallbackSettings<T> {
  const { onlyOn, except, canContinue = [], continueWith, maxPromptTokens = {}, onEvent } = options;
  const promptTokens = zeroOrMore('promptTokens', options.promptTokens ?? FALLBACK_DEFAULTS.promptTokens);
  const midStream = oneOf('midStream', options.midStream ?? FALLBACK_DEFAULTS.midStream, MID_STREAM_MODES);
  if (midStream === 'continue' && canContinue.length > 0 && continueWith === undefined) {
    throw invalidOption('continueWith', 'given where canContinue names a model', continueWith);
  }
  const longest = new Map(Object.entries(maxPromptTokens));
  for (const [model, tokens] of longest) positive(`maxPromptTokens.${model}`, tokens);
  return {
    onlyOn,
    except,
    maxAttempts: wholeOrInfinity('maxAttempts', options.maxAttempts ?? FALLBACK_DEFAULTS.maxAttempts),
    fits: (model) => promptTokens <= (longest.get(model) ?? Infinity),
    midStream,
    restarts: options.restarts ?? false,
    continueWith: (model) =>
      continueWith && canContinue.includes(model) ? (partial) => continueWith(partial, model) : undefined,
    onEvent,
    runtime: options.runtime ?? systemRuntime,
  };
}
