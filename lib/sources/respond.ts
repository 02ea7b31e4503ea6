import type OpenAI from 'openai';
import type { ResponseStreamEvent } from 'openai/resources/responses/responses';
import type { Observable } from 'rxjs';
import { askClient } from './askClient.ts';
import type { AttemptOptions } from './AttemptOptions.ts';
import type { ResponseRequest } from './requests.ts';

/**
 * A streamed answer of the Responses API. Cold, held back until the first content, and cancelled like {@link chat}.
 *
 * ```text
 * wire:   created -- in_progress -- delta --------------------------- delta -- done -- completed
 * result: --------------------------(created in_progress delta) ----- delta -- done -- (completed |)
 * ```
 *
 * It completes with `response.completed` or `response.incomplete`; the latter is an answer that was cut by a limit, with
 * its reason in the event. `response.failed`, `error`, and an end without any of them are errors.
 *
 * Once content has come, every event whose type begins with `response.` counts as progress for `idleMs`: a tool that
 * runs between two pieces of text reports itself that way.
 *
 * - **Shared:** nothing but `client`. **Unsubscribe:** aborts the request in the same tick.
 *
 * Emits as errors ({@link SluiceError}): as {@link chat}.
 *
 * @throws SluiceError `invalid_option` for an option out of its range.
 *
 * @example
 * ```ts
 * import OpenAI from 'openai';
 * import { respond } from 'sluice';
 *
 * respond(new OpenAI(), { model: 'gpt-5.5', input: 'Say hello.' }).subscribe((event) => {
 *   if (event.type === 'response.output_text.delta') process.stdout.write(event.delta);
 * });
 * ```
 */
export function respond(
  client: OpenAI,
  request: ResponseRequest,
  options: AttemptOptions = {},
): Observable<ResponseStreamEvent> {
  return askClient(client, { api: 'responses', request, stream: true }, options);
}
