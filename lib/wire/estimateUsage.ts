import type { Answer } from '../core/answer.ts';
import type { Usage } from '../core/hints.ts';
import { ESTIMATE_DEFAULTS, estimateCost } from './estimate.ts';
import { utf8Length } from './utf8Length.ts';

/**
 * What a provider that says nothing of usage has probably counted: the request as `estimateCost` reads it, and a token for
 * every four bytes that have come of the answer. Reasoning that was not shown is not in it.
 */
export function estimateUsage(request: unknown, answer: Answer | undefined): Usage {
  const { inputTokens } = estimateCost(request);
  let bytes = 0;
  for (const { text, reasoning, refusal, toolCalls } of answer?.choices ?? []) {
    bytes += utf8Length(text) + utf8Length(reasoning) + utf8Length(refusal);
    for (const call of toolCalls) bytes += utf8Length(call.name) + utf8Length(call.arguments);
  }
  const outputTokens = Math.ceil(bytes / ESTIMATE_DEFAULTS.bytesPerToken);
  const totalTokens = inputTokens + outputTokens;
  return { inputTokens, outputTokens, totalTokens, cachedInputTokens: undefined, reasoningTokens: undefined };
}
