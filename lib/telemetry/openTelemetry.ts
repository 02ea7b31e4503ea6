import type { CallObserver } from '../core/CallObserver.ts';
import { composeObservers } from './composeObservers.ts';
import { metricObserver } from './metricObserver.ts';
import type { MetricObserverOptions } from './metricObserver.ts';
import { spanObserver } from './spanObserver.ts';
import type { SpanObserverOptions } from './spanObserver.ts';

export interface OpenTelemetryOptions extends SpanObserverOptions, MetricObserverOptions {
  /** Default: true. */
  readonly spans?: boolean | undefined;
  /** Default: true. */
  readonly metrics?: boolean | undefined;
}

/**
 * Reports calls to OpenTelemetry: for the `telemetry` option of `createSluice`, or for {@link traceCall}.
 *
 * ```text
 * chat gpt-5.5                 CLIENT    the call, with its retries and fallbacks; red only if it failed in the end
 *   queue                      INTERNAL  only where it waited for more than a millisecond
 *   attempt gpt-5.5            CLIENT    1: 429, red
 *   attempt gpt-5.5            CLIENT    2: 503, red
 *   attempt deepseek-v3.2      CLIENT    3: 200
 * ```
 *
 * Spans and metrics go to the providers that are registered with OpenTelemetry when a call starts, unless others are
 * given; without any, next to nothing is done. Whatever sends an HTTP request runs inside the span of its attempt, and
 * what the consumer hears in the context that it subscribed in.
 *
 * - **Privacy:** no prompt, answer, key or header, unless `captureContent` lets the first two in.
 * - **Shared:** one for a process is enough; every client and pipe may have it.
 *
 * @throws SluiceError `invalid_option`.
 *
 * @example
 * ```ts
 * import OpenAI from 'openai';
 * import { createSluice } from 'sluice';
 * import { openTelemetry } from 'sluice/telemetry';
 *
 * const sluice = createSluice(new OpenAI(), { preset: 'interactive' }, { telemetry: openTelemetry() });
 * ```
 */
export function openTelemetry(options: OpenTelemetryOptions = {}): CallObserver {
  const { spans = true, metrics = true } = options;
  return composeObservers([...(spans ? [spanObserver(options)] : []), ...(metrics ? [metricObserver(options)] : [])]);
}
