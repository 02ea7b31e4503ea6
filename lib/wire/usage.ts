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
  const input = first(usage, INPUT);
  const output = first(usage, OUTPUT) ?? geminiOutput(usage);
  const total = first(usage, TOTAL);
  if (input === undefined && output === undefined && total === undefined) return undefined;
  const beside = usage['prompt_tokens'] === undefined ? besideInput(usage) : 0;
  const inputTokens = (input ?? Math.max(0, (total ?? 0) - (output ?? 0))) + beside;
  const outputTokens = output ?? Math.max(0, (total ?? 0) - inputTokens);
  return {
    inputTokens,
    outputTokens,
    totalTokens: Math.max(total ?? 0, inputTokens + outputTokens),
    cachedInputTokens:
      first(usage['prompt_tokens_details'], WITHIN) ??
      first(usage['input_tokens_details'], WITHIN) ??
      first(usage, CACHED),
    reasoningTokens:
      first(usage['completion_tokens_details'], REASONING) ??
      first(usage['output_tokens_details'], REASONING) ??
      first(usage, THOUGHTS),
  };
}

const INPUT = ['prompt_tokens', 'input_tokens', 'promptTokenCount'];
const OUTPUT = ['completion_tokens', 'output_tokens'];
const TOTAL = ['total_tokens', 'totalTokenCount'];
const CACHED = ['cache_read_input_tokens', 'prompt_cache_hit_tokens', 'cachedContentTokenCount', 'cached_tokens'];
const WITHIN = ['cached_tokens'];
const REASONING = ['reasoning_tokens'];
const THOUGHTS = ['thoughtsTokenCount'];

/** Gemini counts what it thought beside what it said. */
function geminiOutput(usage: Fields): number | undefined {
  const said = first(usage, ['candidatesTokenCount']);
  const thoughts = first(usage, THOUGHTS);
  return said === undefined && thoughts === undefined ? undefined : (said ?? 0) + (thoughts ?? 0);
}

/** Anthropic counts what it read from and wrote to a cache beside the input, the others within it. */
function besideInput(usage: Fields): number {
  return (first(usage, ['cache_read_input_tokens']) ?? 0) + (first(usage, ['cache_creation_input_tokens']) ?? 0);
}

/** Whether a usage object reports anything but zeros: some servers send zeros until the last chunk. */
export function isCounted(usage: unknown): boolean {
  return COUNTS.some((key) => (first(usage, [key]) ?? 0) > 0);
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
  for (const key of COUNTS) if (key in fields) return fields;
  return usageWithin(fields, depth);
}

function usageWithin(fields: Fields, depth: number): Fields | undefined {
  for (const key of ['usage', 'usageMetadata', 'response', 'message', 'x_groq']) {
    const inner = usageOf(fields[key], depth + 1);
    if (inner !== undefined) return inner;
  }
  const choices = fields['choices'];
  return Array.isArray(choices) ? usageOf((choices[0] as Fields | null | undefined)?.['usage'], depth + 1) : undefined;
}

/** The first of these fields that is a count. */
function first(value: unknown, keys: readonly string[]): number | undefined {
  const fields = value as Fields | null | undefined;
  for (const key of keys) {
    const count = fields?.[key];
    if (typeof count === 'number' && count >= 0 && count <= Number.MAX_SAFE_INTEGER) return Math.floor(count);
  }
  return undefined;
}
