import type { Answer } from '../core/answer.ts';
import { invalidRequest } from '../core/errors.ts';

/**
 * The request that asks a model to go on behind the text of `partial`: the same, with that text as a last message of the
 * assistant. For chat requests (`messages`) and for the Responses API (`input`). The request that was given is not
 * changed.
 *
 * @throws SluiceError `invalid_request` if the request has neither.
 *
 * @example
 * ```ts
 * import OpenAI from 'openai';
 * import { chat, retryWithJitter, withAssistantPrefix } from 'sluice';
 * import type { ChatRequest } from 'sluice';
 *
 * const openai = new OpenAI();
 * const request: ChatRequest = { model: 'deepseek-v3.2', messages: [{ role: 'user', content: 'Hello' }] };
 * chat(openai, request)
 *   .pipe(
 *     retryWithJitter({
 *       midStream: 'continue',
 *       canContinue: true,
 *       continueWith: (partial) => chat(openai, withAssistantPrefix(request, partial)),
 *     }),
 *   )
 *   .subscribe((chunk) => process.stdout.write(chunk.choices[0]?.delta.content ?? ''));
 * ```
 */
export function withAssistantPrefix<R extends object>(request: R, partial: Answer): R {
  const { messages, input } = request as { messages?: unknown; input?: unknown };
  const prefix = { role: 'assistant', content: partial.text };
  if (Array.isArray(messages)) return { ...request, messages: [...(messages as unknown[]), prefix] };
  if (Array.isArray(input)) return { ...request, input: [...(input as unknown[]), prefix] };
  if (typeof input === 'string') return { ...request, input: [{ role: 'user', content: input }, prefix] };
  throw invalidRequest('messages', 'a list of messages, or input a text or a list', messages);
}
