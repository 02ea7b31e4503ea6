import { DURATION_BUCKETS, ERROR_ATTRIBUTE, MODEL_ATTRIBUTE } from './metricNames.ts';
import type { MetricShape } from './metricNames.ts';

/** Which names the GenAI metrics have. */
export type MetricSemconv = 'v1.41' | 'latest';

export const OPERATION_ATTRIBUTE = 'gen_ai.operation.name';
export const PROVIDER_ATTRIBUTE = 'gen_ai.provider.name';
export const RESPONSE_MODEL_ATTRIBUTE = 'gen_ai.response.model';
export const TOKEN_TYPE_ATTRIBUTE = 'gen_ai.token.type';
export const TOKEN_MODALITY_ATTRIBUTE = 'gen_ai.token.modality';

const TOKEN_BUCKETS = [
  1, 4, 16, 64, 256, 1_024, 4_096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304, 16_777_216, 67_108_864,
];

export const OPERATION_ATTRIBUTES: readonly string[] = [
  OPERATION_ATTRIBUTE,
  PROVIDER_ATTRIBUTE,
  MODEL_ATTRIBUTE,
  RESPONSE_MODEL_ATTRIBUTE,
];
const MODALITY = [...OPERATION_ATTRIBUTES, TOKEN_MODALITY_ATTRIBUTE];

export type GenAiTimeMetric = 'duration' | 'timeToFirstChunk' | 'timePerOutputChunk';
export type GenAiTokenMetric =
  'inputTokens' | 'outputTokens' | 'usageInput' | 'usageOutput' | 'usageCacheRead' | 'usageReasoning';

/** The GenAI metrics that everything published reads: names of v1.41 of the semantic conventions. */
export const GEN_AI_METRICS: Readonly<Record<GenAiTimeMetric | 'tokenUsage', MetricShape>> = {
  duration: seconds('gen_ai.client.operation.duration', 'Time a call took, with all its attempts.', [
    ...OPERATION_ATTRIBUTES,
    ERROR_ATTRIBUTE,
  ]),
  timeToFirstChunk: seconds(
    'gen_ai.client.operation.time_to_first_chunk',
    'Time from the start of a streamed call to its first content.',
    OPERATION_ATTRIBUTES,
  ),
  timePerOutputChunk: seconds(
    'gen_ai.client.operation.time_per_output_chunk',
    'Mean time between the chunks of a streamed answer, after its first content.',
    OPERATION_ATTRIBUTES,
  ),
  tokenUsage: {
    name: 'gen_ai.client.token.usage',
    kind: 'histogram',
    unit: '{token}',
    description: 'Tokens of a successful call.',
    attributes: [...OPERATION_ATTRIBUTES, TOKEN_TYPE_ATTRIBUTE],
    buckets: TOKEN_BUCKETS,
  },
};

/** The same by their newest names. */
export const LATEST_GEN_AI_METRICS: Readonly<Record<GenAiTimeMetric | GenAiTokenMetric, MetricShape>> = {
  duration: { ...GEN_AI_METRICS.duration, name: 'gen_ai.client.inference.duration' },
  timeToFirstChunk: { ...GEN_AI_METRICS.timeToFirstChunk, name: 'gen_ai.client.inference.time_to_first_chunk' },
  timePerOutputChunk: { ...GEN_AI_METRICS.timePerOutputChunk, name: 'gen_ai.client.inference.time_per_output_chunk' },
  inputTokens: perCall('gen_ai.client.inference.operation.input_tokens', 'Input tokens of a successful call.'),
  outputTokens: perCall('gen_ai.client.inference.operation.output_tokens', 'Output tokens of a successful call.'),
  usageInput: used('input_tokens', 'Input tokens that were reported.'),
  usageOutput: used('output_tokens', 'Output tokens that were reported.'),
  usageCacheRead: used('cache_read.input_tokens', 'Those of the input tokens that came from a cache.'),
  usageReasoning: used('reasoning.output_tokens', 'Those of the output tokens that were reasoning.'),
};

function seconds(name: string, description: string, attributes: readonly string[]): MetricShape {
  return { name, kind: 'histogram', unit: 's', description, attributes, buckets: DURATION_BUCKETS };
}

function perCall(name: string, description: string): MetricShape {
  return {
    name,
    kind: 'histogram',
    unit: '{token}',
    description,
    attributes: OPERATION_ATTRIBUTES,
    buckets: TOKEN_BUCKETS,
  };
}

function used(what: string, description: string): MetricShape {
  const name = `gen_ai.client.inference.usage.${what}`;
  return { name, kind: 'counter', unit: '{token}', description, attributes: MODALITY };
}
