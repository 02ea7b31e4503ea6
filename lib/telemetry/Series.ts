import type { Attributes, Histogram, Meter, ObservableResult } from '@opentelemetry/api';
import type { MetricShape } from './metricNames.ts';

export type AttributeValue = string | number | undefined;

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
  readonly #cells: AttributeSets<Cell>;
  readonly #known = new Map<Attributes, Cell>();

  /** `refresh` runs before each reading. */
  constructor(meter: Meter, shape: MetricShape, refresh: () => void = () => {}) {
    this.#cells = new AttributeSets(shape.attributes, (attributes) => ({ attributes, value: 0 }));
    observable(meter, shape).addCallback((result: ObservableResult) => {
      refresh();
      for (const { value, attributes } of this.all()) result.observe(value, attributes);
    });
  }

  /** Values in the order of the attributes that the metric has. */
  at(a?: AttributeValue, b?: AttributeValue, c?: AttributeValue, d?: AttributeValue): Cell {
    return this.#cells.at(a, b, c, d);
  }

  /** By the attributes as they are, which must be the same object each time. */
  of(attributes: Attributes): Cell {
    let cell = this.#known.get(attributes);
    if (cell === undefined) this.#known.set(attributes, (cell = { attributes, value: 0 }));
    return cell;
  }

  *all(): Iterable<Cell> {
    yield* this.#cells.all();
    yield* this.#known.values();
  }
}

/** A metric of which each measurement is the SDK's work. */
export function histogramOf(meter: Meter, { name, unit, description, buckets = [] }: MetricShape): Histogram {
  return meter.createHistogram(name, { unit, description, advice: { explicitBucketBoundaries: [...buckets] } });
}

/** What belongs to each combination of values of attributes: made once, and kept. */
export class AttributeSets<T> {
  readonly #keys: readonly string[];
  readonly #make: (attributes: Attributes) => T;
  readonly #made = new Map<string, T>();

  /** At most four keys. */
  constructor(keys: readonly string[], make: (attributes: Attributes) => T) {
    this.#keys = keys;
    this.#make = make;
  }

  /** Values in the order of the keys; one that is `undefined` leaves its attribute out. */
  at(a: AttributeValue, b?: AttributeValue, c?: AttributeValue, d?: AttributeValue): T {
    const key = keyOf(this.#keys.length, a, b, c, d);
    let made = this.#made.get(key);
    if (made === undefined) {
      const values = [a, b, c, d];
      const attributes: Attributes = {};
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

function keyOf(count: number, a: AttributeValue, b: AttributeValue, c: AttributeValue, d: AttributeValue): string {
  if (count === 1) return String(a);
  if (count === 2) return `${a}\n${b}`;
  return count === 3 ? `${a}\n${b}\n${c}` : `${a}\n${b}\n${c}\n${d}`;
}

function observable(meter: Meter, { name, kind, unit, description }: MetricShape) {
  const options = { unit, description };
  if (kind === 'counter') return meter.createObservableCounter(name, options);
  if (kind === 'upDownCounter') return meter.createObservableUpDownCounter(name, options);
  return meter.createObservableGauge(name, options);
}
