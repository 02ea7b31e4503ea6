import type { TracerProvider } from '@opentelemetry/api';
import type { CallObserver, CallStart, ObservedCall } from '../core/CallObserver.ts';
import { wholeNumber } from '../core/checks.ts';
import { currentScope } from '../core/currentScope.ts';
import { invalidOption } from '../core/errors.ts';
import { CallSpan } from './CallSpan.ts';
import { callSpanOf } from './callSpans.ts';
import { captureOfEnvironment } from './captureOfEnvironment.ts';
import type { ContentKind } from './contentAttributes.ts';
import type { ProviderOption } from './providerOf.ts';
import type { SpanSettings } from './SpanSettings.ts';
import { tracerSource } from './tracerSource.ts';

export interface SpanObserverOptions {
  /** Default: the one that is registered with OpenTelemetry, as soon as one is. */
  readonly tracerProvider?: TracerProvider | undefined;
  /** Who answers, for `gen_ai.provider.name`. Default: what the host name says, or else `openai`. */
  readonly provider?: ProviderOption | undefined;
  /**
   * Whether prompts and answers go onto the spans of calls. Default: what the policy says; or yes where
   * `OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT` is `true`, `span_only` or `span_and_event`. `false` here means
   * never.
   */
  readonly captureContent?: boolean | undefined;
  /** Each captured text passes it, before it is cut. If it throws, nothing of that call is captured. */
  readonly redact?: ((text: string, kind: ContentKind) => string) | undefined;
  /** Most characters of content in one attribute. A whole number from 1. */
  readonly maxContentChars?: number | undefined;
}

/** Defaults of {@link SpanObserverOptions}. */
export const SPAN_OBSERVER_DEFAULTS: { readonly maxContentChars: number } = Object.freeze({ maxContentChars: 16_384 });

/**
 * Makes the spans of calls: one for a call, one for each wait of more than a millisecond, one for each attempt. Without
 * a tracer provider a call costs one question, and its values nothing.
 *
 * @throws SluiceError `invalid_option`.
 */
export function spanObserver(options: SpanObserverOptions = {}): CallObserver {
  const { tracerProvider, captureContent, redact, provider } = options;
  if (redact !== undefined && typeof redact !== 'function') throw invalidOption('redact', 'a function', redact);
  const tracerNow = tracerSource(tracerProvider);
  const settings: SpanSettings = {
    provider,
    captureContent: captureContent ?? captureOfEnvironment(),
    redact,
    maxContentChars: wholeNumber('maxContentChars', options.maxContentChars ?? SPAN_OBSERVER_DEFAULTS.maxContentChars),
  };
  return {
    onCall: (start: CallStart): ObservedCall | undefined => {
      const tracer = tracerNow();
      if (tracer === undefined) return undefined;
      const scope = currentScope();
      const around = callSpanOf(scope);
      if (around !== undefined) {
        around.join();
        return undefined;
      }
      const span = new CallSpan(settings, tracer, start);
      if (scope !== undefined) scope.call.observed = span;
      return span;
    },
  };
}
