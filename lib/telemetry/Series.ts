import type { Attributes, Histogram, Meter, ObservableResult } from '@opentelemetry/api';
import type { MetricShape } from './metricNames.ts';

type Value = string | number | undefined;

/** One number of a metric. */
export interface Cell {
  readonly attributes: Attributes;
  value: number;
}

/**
 * The numbers of a metric that adds up here and is read when somebody collects: to add costs a look into a map, where the
 * SDK would sort and print the attributes each time.
 */
export class CountedSeries {
  readonly #cells: ByAttributes<Cell>;

  /** `refresh` runs before each reading. */
  constructor(meter: Meter, shape: MetricShape, refresh: () => void = () => {}) {
    this.#cells = new ByAttributes(shape.attributes, (attributes) => ({ attributes, value: 0 }));
    observable(meter, shape).addCallback((result: ObservableResult) => {
      refresh();
      for (const { value, attributes } of this.#cells.all()) result.observe(value, attributes);
    });
  }

  /** Values in the order of the attributes that the metric has. */
  at(a?: Value, b?: Value, c?: Value, d?: Value, e?: Value): Cell {
    return this.#cells.at(a, b, c, d, e);
  }

  all(): Iterable<Cell> {
    return this.#cells.all();
  }
}

/** A metric of which each measurement counts. Its attributes are put together once for each combination. */
export class MeasuredSeries {
  readonly #histogram: Histogram;
  readonly #attributes: ByAttributes<Attributes>;

  constructor(meter: Meter, { name, unit, description, attributes, buckets }: MetricShape) {
    const advice = buckets && { explicitBucketBoundaries: [...buckets] };
    this.#histogram = meter.createHistogram(name, { unit, description, ...(advice && { advice }) });
    this.#attributes = new ByAttributes(attributes, (set) => set);
  }

  /** Values in the order of the attributes that the metric has. */
  record(value: number, a?: Value, b?: Value, c?: Value, d?: Value, e?: Value): void {
    this.#histogram.record(value, this.#attributes.at(a, b, c, d, e));
  }
}

class ByAttributes<T> {
  readonly #keys: readonly string[];
  readonly #make: (attributes: Attributes) => T;
  readonly #made = new Map<string, T>();

  constructor(keys: readonly string[], make: (attributes: Attributes) => T) {
    this.#keys = keys;
    this.#make = make;
  }

  at(a: Value, b: Value, c: Value, d: Value, e: Value): T {
    const key = `${a}\n${b}\n${c}\n${d}\n${e}`;
    let made = this.#made.get(key);
    if (made === undefined) {
      const values = [a, b, c, d, e];
      const attributes: Attributes = {};
      // An attribute that is absent and one that is empty would be one to Prometheus, but not to others.
      this.#keys.forEach((name, at) => values[at] !== undefined && (attributes[name] = values[at]));
      made = this.#make(Object.freeze(attributes));
      this.#made.set(key, made);
    }
    return made;
  }

  all(): Iterable<T> {
    return this.#made.values();
  }
}

function observable(meter: Meter, { name, kind, unit, description }: MetricShape) {
  const options = { unit, description };
  if (kind === 'counter') return meter.createObservableCounter(name, options);
  if (kind === 'upDownCounter') return meter.createObservableUpDownCounter(name, options);
  return meter.createObservableGauge(name, options);
}
