import type { Usage } from '../core/hints.ts';

/**
 * Reads the tokens that a provider says it counted. `value` is the usage object, or a chunk or body that holds it, of
 * chat completions, the Responses API, Anthropic's messages or Gemini. `undefined` where it reports nothing readable.
 *
 * `inputTokens` is all input, cached or not; `outputTokens` is all output, reasoning included. Never NaN or negative.
 */
export function readUsage(value: unknown): Usage | undefined {
  const usage = usageOf(value, 0);
  if (usage === undefined) return undefined;
  const { prompt_tokens_details: prompt, completion_tokens_details: completion } = usage;
  const { input_tokens_details: inputDetails, output_tokens_details: outputDetails } = usage;
  // Anthropic counts what it read from and wrote to a cache beside the input, the others within it.
  const read = count(usage['cache_read_input_tokens']);
  const written = count(usage['cache_creation_input_tokens']);
  const thoughts = count(usage['thoughtsTokenCount']);
  const input = count(usage['prompt_tokens']) ?? count(usage['input_tokens']) ?? count(usage['promptTokenCount']);
  const candidates = count(usage['candidatesTokenCount']);
  const output =
    count(usage['completion_tokens']) ??
    count(usage['output_tokens']) ??
    (candidates === undefined && thoughts === undefined ? undefined : (candidates ?? 0) + (thoughts ?? 0));
  const total = count(usage['total_tokens']) ?? count(usage['totalTokenCount']);
  if (input === undefined && output === undefined && total === undefined) return undefined;
  const beside = usage['prompt_tokens'] === undefined ? (read ?? 0) + (written ?? 0) : 0;
  const inputTokens = (input ?? Math.max(0, (total ?? 0) - (output ?? 0))) + beside;
  const outputTokens = output ?? Math.max(0, (total ?? 0) - inputTokens);
  return {
    inputTokens,
    outputTokens,
    totalTokens: Math.max(total ?? 0, inputTokens + outputTokens),
    cachedInputTokens:
      count(field(prompt, 'cached_tokens')) ??
      count(field(inputDetails, 'cached_tokens')) ??
      read ??
      count(usage['prompt_cache_hit_tokens']) ??
      count(usage['cachedContentTokenCount']) ??
      count(usage['cached_tokens']),
    reasoningTokens:
      count(field(completion, 'reasoning_tokens')) ?? count(field(outputDetails, 'reasoning_tokens')) ?? thoughts,
  };
}

/** Whether a usage object reports anything but zeros: some servers send zeros until the last chunk. */
export function isCounted(usage: unknown): boolean {
  return COUNTS.some((key) => (count(field(usage, key)) ?? 0) > 0);
}

const COUNTS = [
  'total_tokens',
  'prompt_tokens',
  'completion_tokens',
  'input_tokens',
  'output_tokens',
  'promptTokenCount',
  'totalTokenCount',
];

type Fields = Record<string, unknown>;

function usageOf(value: unknown, depth: number): Fields | undefined {
  if (typeof value !== 'object' || value === null || depth > 2) return undefined;
  const fields = value as Fields;
  if (COUNTS.some((key) => key in fields)) return fields;
  for (const key of ['usage', 'usageMetadata', 'response', 'message', 'x_groq']) {
    const inner = usageOf(fields[key], depth + 1);
    if (inner !== undefined) return inner;
  }
  const choices = fields['choices'];
  return Array.isArray(choices) ? usageOf(field(choices[0], 'usage'), depth + 1) : undefined;
}

function field(value: unknown, key: string): unknown {
  return (value as Fields | null | undefined)?.[key];
}

function count(value: unknown): number | undefined {
  return typeof value === 'number' && value >= 0 && value <= Number.MAX_SAFE_INTEGER ? Math.floor(value) : undefined;
}
