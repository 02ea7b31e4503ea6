import type { Answer } from '../core/answer.ts';

/**
 * Whether a model can go on from `partial` as an assistant prefix: plain text of one choice. A tool call cannot be
 * taken up in the middle, nor can a refusal or reasoning.
 */
export function isContinuable(partial: Answer): boolean {
  const { choices, toolCalls, refusal, text, finishReason } = partial;
  return choices.length <= 1 && toolCalls.length === 0 && refusal === '' && text.trim() !== '' && finishReason === null;
}

/** What the consumer holds when `rest` was streamed behind `start`, which has text. Both have one choice. */
export function joinAnswers(start: Answer, rest: Answer): Answer {
  const { refusal, toolCalls, finishReason } = rest;
  const text = start.text + rest.text;
  const reasoning = start.reasoning + rest.reasoning;
  return {
    text,
    reasoning,
    refusal,
    toolCalls,
    finishReason,
    choices: [{ index: start.choices[0]?.index ?? 0, text, reasoning, refusal, toolCalls, finishReason }],
    usage: rest.usage,
    model: rest.model ?? start.model,
    restarts: start.restarts,
    empty: false,
  };
}
