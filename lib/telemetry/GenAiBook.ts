import type { Meter } from '@opentelemetry/api';
import type { Usage } from '../core/hints.ts';
import { GEN_AI_METRICS, LATEST_GEN_AI_METRICS } from './genAiMetricNames.ts';
import type { MetricSemconv } from './genAiMetricNames.ts';
import { CountedSeries, MeasuredSeries } from './Series.ts';

/** Which operation of whom a measurement belongs to. */
export interface GenAiOperation {
  readonly operation: string;
  readonly provider: string;
  readonly requestModel: string | undefined;
  readonly responseModel: string | undefined;
}

const UNSPLIT = 'unknown';

/** The GenAI metrics of one meter, by their old or their new names. */
export class GenAiBook {
  readonly #duration: MeasuredSeries;
  readonly #timeToFirstChunk: MeasuredSeries;
  readonly #timePerOutputChunk: MeasuredSeries;
  readonly #tokens: CallTokens;
  readonly #usage: UsageCounters | undefined;

  constructor(meter: Meter, semconv: MetricSemconv) {
    const names = semconv === 'latest' ? LATEST_GEN_AI_METRICS : GEN_AI_METRICS;
    this.#duration = new MeasuredSeries(meter, names.duration);
    this.#timeToFirstChunk = new MeasuredSeries(meter, names.timeToFirstChunk);
    this.#timePerOutputChunk = new MeasuredSeries(meter, names.timePerOutputChunk);
    this.#tokens = semconv === 'latest' ? tokensByName(meter) : tokensByType(meter);
    this.#usage = semconv === 'latest' ? new UsageCounters(meter) : undefined;
  }

  duration(
    seconds: number,
    { operation, provider, requestModel, responseModel }: GenAiOperation,
    error?: string,
  ): void {
    this.#duration.record(seconds, operation, provider, requestModel, responseModel, error);
  }

  timeToFirstChunk(seconds: number, { operation, provider, requestModel, responseModel }: GenAiOperation): void {
    this.#timeToFirstChunk.record(seconds, operation, provider, requestModel, responseModel);
  }

  timePerOutputChunk(seconds: number, { operation, provider, requestModel, responseModel }: GenAiOperation): void {
    this.#timePerOutputChunk.record(seconds, operation, provider, requestModel, responseModel);
  }

  /** Of a call that succeeded. */
  tokens(inputTokens: number, outputTokens: number, of: GenAiOperation): void {
    this.#tokens(inputTokens, outputTokens, of);
  }

  /** Of an attempt, however it ended. */
  usage(usage: Usage | undefined, of: GenAiOperation): void {
    this.#usage?.add(usage, of);
  }
}

type CallTokens = (inputTokens: number, outputTokens: number, of: GenAiOperation) => void;

function tokensByType(meter: Meter): CallTokens {
  const tokens = new MeasuredSeries(meter, GEN_AI_METRICS.tokenUsage);
  return (inputTokens, outputTokens, { operation, provider, requestModel, responseModel }) => {
    tokens.record(inputTokens, operation, provider, requestModel, responseModel, 'input');
    tokens.record(outputTokens, operation, provider, requestModel, responseModel, 'output');
  };
}

function tokensByName(meter: Meter): CallTokens {
  const input = new MeasuredSeries(meter, LATEST_GEN_AI_METRICS.inputTokens);
  const output = new MeasuredSeries(meter, LATEST_GEN_AI_METRICS.outputTokens);
  return (inputTokens, outputTokens, { operation, provider, requestModel, responseModel }) => {
    input.record(inputTokens, operation, provider, requestModel, responseModel);
    output.record(outputTokens, operation, provider, requestModel, responseModel);
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
  add(usage: Usage | undefined, of: GenAiOperation): void {
    at(this.#input, of).value += usage?.inputTokens ?? 0;
    at(this.#output, of).value += usage?.outputTokens ?? 0;
    if (usage?.cachedInputTokens !== undefined) at(this.#cacheRead, of).value += usage.cachedInputTokens;
    if (usage?.reasoningTokens !== undefined) at(this.#reasoning, of).value += usage.reasoningTokens;
  }
}

function at(series: CountedSeries, { operation, provider, requestModel, responseModel }: GenAiOperation) {
  return series.at(operation, provider, requestModel, responseModel, UNSPLIT);
}
