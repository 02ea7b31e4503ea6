import type { Attributes } from '@opentelemetry/api';
import { AggregationTemporality, MeterProvider, MetricReader } from '@opentelemetry/sdk-metrics';
import type { Histogram, MetricData, ResourceMetrics } from '@opentelemetry/sdk-metrics';

class TestReader extends MetricReader {
  override selectAggregationTemporality(): AggregationTemporality {
    return AggregationTemporality.CUMULATIVE;
  }
  protected override async onShutdown(): Promise<void> {}
  protected override async onForceFlush(): Promise<void> {}
}

export type Point = { readonly attributes: Attributes; readonly value: number | Histogram };

/** What was measured so far. */
export interface Measured {
  readonly metrics: readonly MetricData[];
  find(name: string): MetricData | undefined;
  points(name: string): readonly Point[];
  /** Each number by its attributes, printed as `key=value,key=value` in the order of the keys; of a histogram, its count. */
  numbers(name: string): Readonly<Record<string, number>>;
  /** Of all points, or those that have these attributes. */
  total(name: string, attributes?: Attributes): number;
  /** Sum, not count, of a histogram; over all points, or those that have these attributes. */
  sum(name: string, attributes?: Attributes): number;
}

export interface TestMetrics {
  readonly provider: MeterProvider;
  collect(): Promise<Measured>;
}

/** A meter provider that is read when the test says so. */
export function testMetrics(): TestMetrics {
  const reader = new TestReader();
  const provider = new MeterProvider({ readers: [reader] });
  return {
    provider,
    async collect() {
      const { resourceMetrics, errors } = await reader.collect();
      if (errors.length > 0) throw errors[0];
      return measured(resourceMetrics);
    },
  };
}

function measured({ scopeMetrics }: ResourceMetrics): Measured {
  const metrics = scopeMetrics.flatMap((scope) => scope.metrics);
  const find = (name: string): MetricData | undefined => metrics.find(({ descriptor }) => descriptor.name === name);
  const points = (name: string): readonly Point[] => (find(name)?.dataPoints ?? []) as readonly Point[];
  const those = (name: string, attributes: Attributes): readonly Point[] =>
    points(name).filter((point) => Object.entries(attributes).every(([key, value]) => point.attributes[key] === value));
  return {
    metrics,
    find,
    points,
    numbers: (name) =>
      Object.fromEntries(points(name).map(({ attributes, value }) => [printed(attributes), countOf(value)])),
    total: (name, attributes = {}) => those(name, attributes).reduce((sum, { value }) => sum + countOf(value), 0),
    sum: (name, attributes = {}) =>
      those(name, attributes).reduce((sum, { value }) => sum + ((value as Histogram).sum ?? NaN), 0),
  };
}

function countOf(value: number | Histogram): number {
  return typeof value === 'number' ? value : value.count;
}

function printed(attributes: Attributes): string {
  return Object.keys(attributes)
    .sort()
    .map((key) => `${key}=${String(attributes[key])}`)
    .join(',');
}
