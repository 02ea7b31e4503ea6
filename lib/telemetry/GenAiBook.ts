import type { Attributes, Histogram, Meter } from '@opentelemetry/api';
import type { Usage } from '../core/hints.ts';
import {
  GEN_AI_METRICS,
  LATEST_GEN_AI_METRICS,
  OPERATION_ATTRIBUTES,
  TOKEN_MODALITY_ATTRIBUTE,
  TOKEN_TYPE_ATTRIBUTE,
} from './genAiMetricNames.ts';
import type { MetricSemconv } from './genAiMetricNames.ts';
import { ERROR_ATTRIBUTE } from './metricNames.ts';
import { AttributeSets, CountedSeries, histogramOf } from './Series.ts';

/** Which operation of whom a measurement belongs to: its attributes, and the same with one more. */
export class GenAiOperation {
  readonly attributes: Attributes;
  readonly input: Attributes;
  readonly output: Attributes;
  readonly unsplit: Attributes;
  readonly #failed = new Map<string, Attributes>();

  constructor(attributes: Attributes) {
    this.attributes = attributes;
    this.input = { ...attributes, [TOKEN_TYPE_ATTRIBUTE]: 'input' };
    this.output = { ...attributes, [TOKEN_TYPE_ATTRIBUTE]: 'output' };
    this.unsplit = { ...attributes, [TOKEN_MODALITY_ATTRIBUTE]: 'unknown' };
  }

  failed(error: string): Attributes {
    let attributes = this.#failed.get(error);
    if (attributes === undefined) {
      attributes = { ...this.attributes, [ERROR_ATTRIBUTE]: error };
      this.#failed.set(error, attributes);
    }
    return attributes;
  }
}

/** The GenAI metrics of one meter, by their old or their new names. */
export class GenAiBook {
  readonly #operations = new AttributeSets(OPERATION_ATTRIBUTES, (attributes) => new GenAiOperation(attributes));
  readonly #duration: Histogram;
  readonly #timeToFirstChunk: Histogram;
  readonly #timePerOutputChunk: Histogram;
  readonly #tokens: CallTokens;
  readonly #usage: UsageCounters | undefined;

  constructor(meter: Meter, semconv: MetricSemconv) {
    const names = semconv === 'latest' ? LATEST_GEN_AI_METRICS : GEN_AI_METRICS;
    this.#duration = histogramOf(meter, names.duration);
    this.#timeToFirstChunk = histogramOf(meter, names.timeToFirstChunk);
    this.#timePerOutputChunk = histogramOf(meter, names.timePerOutputChunk);
    this.#tokens = semconv === 'latest' ? tokensByName(meter) : tokensByType(meter);
    this.#usage = semconv === 'latest' ? new UsageCounters(meter) : undefined;
  }

  operation(name: string, provider: string, model: string | undefined, served: string | undefined): GenAiOperation {
    return this.#operations.at(name, provider, model, served);
  }

  duration(seconds: number, of: GenAiOperation, error: string | undefined): void {
    this.#duration.record(seconds, error === undefined ? of.attributes : of.failed(error));
  }

  timeToFirstChunk(seconds: number, { attributes }: GenAiOperation): void {
    this.#timeToFirstChunk.record(seconds, attributes);
  }

  timePerOutputChunk(seconds: number, { attributes }: GenAiOperation): void {
    this.#timePerOutputChunk.record(seconds, attributes);
  }

  /** Of a call that succeeded. */
  tokens(inputTokens: number, outputTokens: number, of: GenAiOperation): void {
    this.#tokens(inputTokens, outputTokens, of);
  }

  /** Whether {@link usage} counts. */
  get countsUsage(): boolean {
    return this.#usage !== undefined;
  }

  /** Of an attempt, however it ended. */
  usage(usage: Usage | undefined, of: GenAiOperation): void {
    this.#usage?.add(usage, of);
  }
}

type CallTokens = (inputTokens: number, outputTokens: number, of: GenAiOperation) => void;

function tokensByType(meter: Meter): CallTokens {
  const tokens = histogramOf(meter, GEN_AI_METRICS.tokenUsage);
  return (inputTokens, outputTokens, { input, output }) => {
    tokens.record(inputTokens, input);
    tokens.record(outputTokens, output);
  };
}

function tokensByName(meter: Meter): CallTokens {
  const input = histogramOf(meter, LATEST_GEN_AI_METRICS.inputTokens);
  const output = histogramOf(meter, LATEST_GEN_AI_METRICS.outputTokens);
  return (inputTokens, outputTokens, { attributes }) => {
    input.record(inputTokens, attributes);
    output.record(outputTokens, attributes);
  };
}

class UsageCounters {
  readonly #input: CountedSeries;
  readonly #output: CountedSeries;
  readonly #cacheRead: CountedSeries;
  readonly #reasoning: CountedSeries;

  constructor(meter: Meter) {
    this.#input = new CountedSeries(meter, LATEST_GEN_AI_METRICS.usageInput);
    this.#output = new CountedSeries(meter, LATEST_GEN_AI_METRICS.usageOutput);
    this.#cacheRead = new CountedSeries(meter, LATEST_GEN_AI_METRICS.usageCacheRead);
    this.#reasoning = new CountedSeries(meter, LATEST_GEN_AI_METRICS.usageReasoning);
  }

  /** Without usage, 0: that something was asked shows. */
  add(usage: Usage | undefined, { unsplit }: GenAiOperation): void {
    this.#input.of(unsplit).value += usage?.inputTokens ?? 0;
    this.#output.of(unsplit).value += usage?.outputTokens ?? 0;
    if (usage?.cachedInputTokens !== undefined) this.#cacheRead.of(unsplit).value += usage.cachedInputTokens;
    if (usage?.reasoningTokens !== undefined) this.#reasoning.of(unsplit).value += usage.reasoningTokens;
  }
}
