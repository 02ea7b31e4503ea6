import type OpenAI from 'openai';
import type { ChatCompletion } from 'openai/resources/chat/completions';
import type { Observable } from 'rxjs';
import { askClient } from './askClient.ts';
import type { AttemptOptions } from './AttemptOptions.ts';
import type { ChatRequest } from './requests.ts';

/**
 * A chat completion that is not streamed: one value, then completion. Cold and cancelled like {@link chat}.
 *
 * ```text
 * wire:   ------- answer
 * result: ------- (answer |)
 * ```
 *
 * One limit holds, `timeouts.responseMs` from dispatch to the whole answer, because the head comes only with it. Its
 * default is the deadline of the call, or 600,000 ms where there is none.
 *
 * - **Shared:** nothing but `client`. **Unsubscribe:** aborts the request in the same tick.
 *
 * Emits as errors ({@link SluiceError}): `invalid_request` before anything is sent; `timeout` (`while`: `response`);
 * `connection`; `upstream_body_invalid` for a body that is no answer; the class of an error status or of an error in a
 * body with status 200; `timeout_deadline`.
 *
 * @throws SluiceError `invalid_option` for an option out of its range.
 *
 * @example
 * ```ts
 * import OpenAI from 'openai';
 * import { complete } from 'sluice';
 *
 * const messages = [{ role: 'user' as const, content: 'Say hello.' }];
 * complete(new OpenAI(), { model: 'gpt-5.5', messages }).subscribe((answer) => {
 *   console.log(answer.choices[0]?.message.content);
 * });
 * ```
 */
export function complete(
  client: OpenAI,
  request: ChatRequest,
  options: AttemptOptions = {},
): Observable<ChatCompletion> {
  return askClient(client, { api: 'chat', request, stream: false }, options);
}
