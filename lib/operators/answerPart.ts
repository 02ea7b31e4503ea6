import type { ChatCompletion, ChatCompletionChunk } from 'openai/resources/chat/completions';
import type { Response, ResponseStreamEvent } from 'openai/resources/responses/responses';
import type { Restart } from '../core/restart.ts';

/** What streams of answers are made of: chat chunks, Responses events, whole bodies of either API, restarts. */
export type AnswerPart = ChatCompletionChunk | ChatCompletion | ResponseStreamEvent | Response | Restart;

type Fields = Readonly<Record<string, unknown>>;

/** Whether a part is of the Responses API. Told by shape: chunks of other vendors lack `object`, or have a `type` too. */
export function isOfResponses(part: unknown): boolean {
  if (typeof part !== 'object' || part === null) return false;
  const { choices, type, object } = part as Fields;
  return choices === undefined && (typeof type === 'string' || object === 'response');
}
