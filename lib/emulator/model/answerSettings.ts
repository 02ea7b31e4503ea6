import { nonEmpty, wholeNumber } from '../../core/checks.ts';
import { invalidOption } from '../../core/errors.ts';
import { checkDistribution } from './distribution.ts';
import type { Distribution } from './distribution.ts';

/** A function call that an answer consists of. */
export interface ToolCallSettings {
  readonly name: string;
  /** JSON text. Default: `{"answer":"..."}` with the predicted text. */
  readonly arguments?: string | undefined;
}

/** How answers come. What a model does not set is taken from the provider. */
export interface AnswerSettings {
  /** From arrival to the head of a streamed answer. Default: 0. */
  readonly headersMs?: Distribution | undefined;
  /** From arrival to the first content. Default: 50. */
  readonly firstTokenMs?: Distribution | undefined;
  /** From one token to the next; drawn once for each answer. Default: 5. */
  readonly tokenMs?: Distribution | undefined;
  /** Tokens of text in an answer, cut at the request's limit. `'max'`: as many as the request allows. Default: 64. */
  readonly tokens?: Distribution | 'max' | undefined;
  /** Tokens in each chunk. Default: 1. */
  readonly chunkTokens?: number | undefined;
  /** Tokens of reasoning before the text. Default: 0, and 16 where the request asks for reasoning. */
  readonly reasoningTokens?: number | undefined;
  /** Calls these functions instead of writing text. Default: none, unless the request insists on one. */
  readonly toolCalls?: readonly ToolCallSettings[] | undefined;
  /** The text is a refusal. Default: false. */
  readonly refusal?: boolean | undefined;
  /** Text of the answer, instead of the predicted one. Each four characters count as a token. */
  readonly text?: string | undefined;
}

/** @throws SluiceError `invalid_option` */
export function checkAnswerSettings(settings: AnswerSettings, path: string): void {
  for (const name of ['headersMs', 'firstTokenMs', 'tokenMs'] as const) {
    const value = settings[name];
    if (value !== undefined) checkDistribution(path + name, value);
  }
  const { tokens, chunkTokens, reasoningTokens, toolCalls, text } = settings;
  if (tokens !== undefined && tokens !== 'max') checkDistribution(`${path}tokens`, tokens);
  if (chunkTokens !== undefined) wholeNumber(`${path}chunkTokens`, chunkTokens);
  if (reasoningTokens !== undefined) wholeNumber(`${path}reasoningTokens`, reasoningTokens, 0);
  for (const call of toolCalls ?? []) nonEmpty(`${path}toolCalls: name`, call.name);
  if (text !== undefined && typeof text !== 'string') throw invalidOption(`${path}text`, 'a string', text);
}
