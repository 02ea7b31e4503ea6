import { metrics } from '@opentelemetry/api';
import type { MeterProvider } from '@opentelemetry/api';
import type { CallObserver, CallStart } from '../core/CallObserver.ts';
import { oneOf, wholeNumber } from '../core/checks.ts';
import type { SluiceEvent } from '../core/events.ts';
import { BoundedNames } from './BoundedNames.ts';
import { CallMeter } from './CallMeter.ts';
import type { MetricSemconv } from './genAiMetricNames.ts';
import { GenAiMeter } from './GenAiMeter.ts';
import { metricBookOf } from './MetricBook.ts';
import type { ProviderOption } from './providerOf.ts';

export interface MetricObserverOptions {
  /** Default: the one that is registered with OpenTelemetry, as soon as one is. */
  readonly meterProvider?: MeterProvider | undefined;
  /**
   * Names of the GenAI metrics: those of v1.41 of the semantic conventions, which dashboards know, or the newest. Default:
   * `'latest'` where the variable `OTEL_SEMCONV_STABILITY_OPT_IN` contains `gen_ai_latest_experimental`, else `'v1.41'`.
   */
  readonly semconv?: MetricSemconv | undefined;
  /** Tenants that get numbers of their own; those that come later are counted as `other`. 1 or more. */
  readonly maxTenants?: number | undefined;
  /** The same for models, for models as providers name them, for breakers and for limiters. 1 or more. */
  readonly maxModels?: number | undefined;
  /** Who answers, for `gen_ai.provider.name`. Default: what the host name says, or else `openai`. */
  readonly provider?: ProviderOption | undefined;
}

/** Defaults of {@link MetricObserverOptions}. Together they stay below the 2,000 sets of attributes that the SDK keeps of a metric. */
export const METRIC_OBSERVER_DEFAULTS: { readonly maxTenants: number; readonly maxModels: number } = Object.freeze({
  maxTenants: 50,
  maxModels: 20,
});

/**
 * Counts and measures calls with OpenTelemetry: those of a client as its `telemetry`, or those of a pipe by hand with its
 * `onEvent`. Without a meter provider it does next to nothing.
 *
 * - **Shared:** observers of one meter provider add to the same numbers.
 * - **Cardinality:** bounded by the options. No attribute holds an id, a conversation, a user or content.
 *
 * @throws SluiceError `invalid_option`.
 *
 * @example
 * ```ts
 * import OpenAI from 'openai';
 * import { createSluice } from 'sluice';
 * import { metricObserver } from 'sluice/telemetry';
 *
 * const sluice = createSluice(new OpenAI(), { preset: 'interactive' }, { telemetry: metricObserver({ maxTenants: 200 }) });
 * ```
 */
export function metricObserver(options: MetricObserverOptions = {}): CallObserver {
  const { meterProvider, semconv = semconvOfEnvironment(), provider: named } = options;
  const { maxTenants = METRIC_OBSERVER_DEFAULTS.maxTenants, maxModels = METRIC_OBSERVER_DEFAULTS.maxModels } = options;
  oneOf('semconv', semconv, ['v1.41', 'latest']);
  wholeNumber('maxTenants', maxTenants);
  wholeNumber('maxModels', maxModels);

  let from: MeterProvider | undefined;
  let meter: CallMeter | undefined;
  const meterNow = (): CallMeter | undefined => {
    const provider = meterProvider ?? metrics.getMeterProvider();
    if (provider === from) return meter;
    from = provider;
    const book = metricBookOf(provider);
    if (book === undefined) return (meter = undefined);
    const models = new BoundedNames(maxModels);
    const genAi = new GenAiMeter(book.genAi(semconv), models, new BoundedNames(maxModels), named);
    return (meter = new CallMeter(book, genAi, models, maxTenants, maxModels));
  };
  return {
    onCall: (start: CallStart) => meterNow()?.started(start),
    onEvent: (event: SluiceEvent) => meterNow()?.hear(event),
  };
}

function semconvOfEnvironment(): MetricSemconv {
  const optedIn = (process.env['OTEL_SEMCONV_STABILITY_OPT_IN'] ?? '').split(',').map((word) => word.trim());
  return optedIn.includes('gen_ai_latest_experimental') ? 'latest' : 'v1.41';
}
