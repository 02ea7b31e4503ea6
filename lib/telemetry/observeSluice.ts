import { metrics } from '@opentelemetry/api';
import type { MeterProvider } from '@opentelemetry/api';
import { wholeNumber } from '../core/checks.ts';
import type { AdmissionSnapshot } from '../core/ports.ts';
import { BoundedNames, OTHER } from './BoundedNames.ts';
import { BREAKER_LEVEL } from './CallMeter.ts';
import { metricBookOf } from './MetricBook.ts';
import { METRIC_OBSERVER_DEFAULTS } from './metricObserver.ts';

/** What is read of a client. */
export interface ObservedSluice {
  snapshot(): {
    readonly admission: AdmissionSnapshot;
    readonly spend: { readonly capUsed: Readonly<Record<string, number>> };
  };
}

export interface ObserveSluiceOptions {
  /** Default: the one that is registered with OpenTelemetry by now. */
  readonly meterProvider?: MeterProvider | undefined;
  /** Tenants with a cap that are shown; of the others, the one that is nearest to its cap is shown as `other`. 1 or more. */
  readonly maxTenants?: number | undefined;
  /** Deployments whose breakers and limits are shown. 1 or more. */
  readonly maxModels?: number | undefined;
}

/**
 * Shows how a client stands, each time that metrics are read: how much of its daily cap each tenant has spent, and the
 * breakers and concurrency limits that no event has told of yet. Next to `openTelemetry()`, which cannot know them.
 *
 * Where several clients have one meter provider, the larger share of a tenant counts. Without a provider it does nothing.
 *
 * @returns Ends it, such as before the client is closed for good. What was shown last stays.
 * @throws SluiceError `invalid_option`.
 *
 * @example
 * ```ts
 * import OpenAI from 'openai';
 * import { createSluice } from 'sluice';
 * import { observeSluice, openTelemetry } from 'sluice/telemetry';
 *
 * const policy = { models: { default: { price: { inputPerMTok: 2, outputPerMTok: 8 } } }, spend: { perTenantPerDay: { default: 5 } } };
 * const sluice = createSluice(new OpenAI(), policy, { telemetry: openTelemetry() });
 * const stop = observeSluice(sluice);
 * ```
 */
export function observeSluice(sluice: ObservedSluice, options: ObserveSluiceOptions = {}): () => void {
  const { meterProvider = metrics.getMeterProvider() } = options;
  const { maxTenants = METRIC_OBSERVER_DEFAULTS.maxTenants, maxModels = METRIC_OBSERVER_DEFAULTS.maxModels } = options;
  const tenants = new BoundedNames(wholeNumber('maxTenants', maxTenants));
  const deployments = new BoundedNames(wholeNumber('maxModels', maxModels));
  const book = metricBookOf(meterProvider);
  if (book === undefined) return () => {};

  const refresh = (): void => {
    const { admission, spend } = sluice.snapshot();
    for (const [tenant, share] of Object.entries(spend.capUsed)) {
      const cell = book.spendCapUsed.at(tenants.of(tenant || undefined));
      cell.value = Math.max(cell.value, share);
    }
    for (const { name, breaker, limit } of Object.values(admission.models).flatMap((model) => model.deployments)) {
      // Many breakers have no state in common.
      if (deployments.of(name) === OTHER) continue;
      book.breakerState.at(name).value = BREAKER_LEVEL[breaker.state];
      if (limit < Infinity) book.concurrencyLimit.at(name).value = limit;
    }
  };
  book.refreshers.add(refresh);
  return () => void book.refreshers.delete(refresh);
}
