import { createNoopMeter } from '@opentelemetry/api';
import type { Attributes, Histogram, Meter, MeterProvider } from '@opentelemetry/api';
import type { CallTally } from './CallTally.ts';
import { GenAiBook } from './GenAiBook.ts';
import type { MetricSemconv } from './genAiMetricNames.ts';
import { SLUICE_METRICS } from './metricNames.ts';
import { AttributeSets, CountedSeries, histogramOf } from './Series.ts';

/** All metrics of one meter provider: several observers add to the same numbers, as one reader reads them all. */
export class MetricBook {
  readonly ended: CountedSeries;
  readonly requests: CountedSeries;
  readonly retries: CountedSeries;
  readonly queueSize: CountedSeries;
  readonly inflight: CountedSeries;
  readonly breakerState: CountedSeries;
  readonly breakerTransitions: CountedSeries;
  readonly concurrencyLimit: CountedSeries;
  readonly cooldowns: CountedSeries;
  readonly fallbacks: CountedSeries;
  readonly refusals: CountedSeries;
  readonly tokensReserved: CountedSeries;
  readonly tokensUsed: CountedSeries;
  readonly tokensWasted: CountedSeries;
  readonly cost: CountedSeries;
  readonly spendCapUsed: CountedSeries;
  readonly storeLosses: CountedSeries;
  readonly callAttempts: Histogram;
  readonly attemptDuration: Histogram;
  readonly queueWait: Histogram;
  /** Attributes of {@link callAttempts}. */
  readonly byModel: AttributeSets<Attributes>;
  /** Attributes of {@link queueWait}. */
  readonly byQueue: AttributeSets<Attributes>;
  /** Calls that run, by their id. */
  readonly calls: Map<string, CallTally> = new Map();
  /** Bring the gauges up to date, each time that one is read. */
  readonly refreshers: Set<() => void> = new Set();
  readonly #meter: Meter;
  readonly #genAi = new Map<MetricSemconv, GenAiBook>();

  constructor(meter: Meter) {
    const refresh = (): void => this.#refresh();
    this.#meter = meter;
    this.ended = new CountedSeries(meter, SLUICE_METRICS.calls);
    this.requests = new CountedSeries(meter, SLUICE_METRICS.requests);
    this.retries = new CountedSeries(meter, SLUICE_METRICS.retries);
    this.queueSize = new CountedSeries(meter, SLUICE_METRICS.queueSize);
    this.inflight = new CountedSeries(meter, SLUICE_METRICS.inflight);
    this.breakerState = new CountedSeries(meter, SLUICE_METRICS.breakerState, refresh);
    this.breakerTransitions = new CountedSeries(meter, SLUICE_METRICS.breakerTransitions);
    this.concurrencyLimit = new CountedSeries(meter, SLUICE_METRICS.concurrencyLimit, refresh);
    this.cooldowns = new CountedSeries(meter, SLUICE_METRICS.cooldowns);
    this.fallbacks = new CountedSeries(meter, SLUICE_METRICS.fallbacks);
    this.refusals = new CountedSeries(meter, SLUICE_METRICS.refusals);
    this.tokensReserved = new CountedSeries(meter, SLUICE_METRICS.tokensReserved);
    this.tokensUsed = new CountedSeries(meter, SLUICE_METRICS.tokensUsed);
    this.tokensWasted = new CountedSeries(meter, SLUICE_METRICS.tokensWasted);
    this.cost = new CountedSeries(meter, SLUICE_METRICS.cost);
    this.spendCapUsed = new CountedSeries(meter, SLUICE_METRICS.spendCapUsed, refresh);
    this.storeLosses = new CountedSeries(meter, SLUICE_METRICS.storeLosses);
    this.callAttempts = histogramOf(meter, SLUICE_METRICS.callAttempts);
    this.attemptDuration = histogramOf(meter, SLUICE_METRICS.attemptDuration);
    this.queueWait = histogramOf(meter, SLUICE_METRICS.queueWait);
    this.byModel = new AttributeSets(SLUICE_METRICS.callAttempts.attributes, (attributes) => attributes);
    this.byQueue = new AttributeSets(SLUICE_METRICS.queueWait.attributes, (attributes) => attributes);
  }

  genAi(semconv: MetricSemconv): GenAiBook {
    let book = this.#genAi.get(semconv);
    if (book === undefined) this.#genAi.set(semconv, (book = new GenAiBook(this.#meter, semconv)));
    return book;
  }

  #refresh(): void {
    if (this.refreshers.size === 0) return;
    for (const cell of this.spendCapUsed.all()) cell.value = 0;
    for (const refresher of this.refreshers) refresher();
  }
}

const BOOKS = new WeakMap<MeterProvider, MetricBook>();

/** `undefined` for a provider that measures nothing. */
export function metricBookOf(provider: MeterProvider): MetricBook | undefined {
  let book = BOOKS.get(provider);
  if (book !== undefined) return book;
  const meter = provider.getMeter('sluice');
  if (meter === createNoopMeter()) return undefined;
  book = new MetricBook(meter);
  BOOKS.set(provider, book);
  return book;
}
