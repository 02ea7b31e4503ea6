import type OpenAI from 'openai';
import type { ChatCompletionChunk } from 'openai/resources/chat/completions';
import type { Observable } from 'rxjs';
import { askClient } from './askClient.ts';
import type { AttemptOptions } from './AttemptOptions.ts';
import type { ChatRequest } from './requests.ts';

/**
 * A streamed chat completion. Cold: each subscription sends one request, and nothing is sent before.
 *
 * ```text
 * wire:   head -- role -- : ping -- "Hel" -------- "lo" -- stop -- usage -- [DONE]
 * result: --------------------------(role "Hel") - "lo" -- stop ----------- |
 * ```
 *
 * Chunks without content are held back until the first content, so whatever fails before the first value may be tried
 * again and nothing was shown. The stream completes only if the answer is whole: a finish reason for each choice, or
 * `[DONE]` after at least one choice.
 *
 * - **Shared:** nothing but `client`.
 * - **Unsubscribe:** aborts the request in the same tick; no signal of yours is listened to.
 * - **Retries of the SDK:** off for this request, whatever the client was built with.
 * - **Usage:** asked for, for accounting; its chunk is emitted only if the request has `stream_options.include_usage`. Where
 *   a provider refuses to be asked, the request is sent again without, at once, and `client` does not ask any more.
 *
 * Emits as errors ({@link SluiceError}): `invalid_request` before anything is sent; `timeout` (`while`: `headers` or
 * `first_content`), `stream_idle`, `stream_truncated`, `connection`, `upstream_body_invalid`; the class of an error
 * status or of an error inside the stream; `timeout_deadline`. After the first content they carry `partial`.
 *
 * @param client - An OpenAI client, version 6 or 7.
 * @param request - As for `client.chat.completions.create`.
 * @param options - See {@link AttemptOptions}. Limits: {@link STAGE_TIMER_DEFAULTS}.
 * @throws SluiceError `invalid_option` for an option out of its range.
 *
 * @example
 * ```ts
 * import OpenAI from 'openai';
 * import { chat } from 'sluice';
 *
 * const messages = [{ role: 'user' as const, content: 'Say hello.' }];
 * chat(new OpenAI(), { model: 'gpt-5.5', messages }, { timeouts: { idleMs: 10_000 } }).subscribe({
 *   next: (chunk) => process.stdout.write(chunk.choices[0]?.delta.content ?? ''),
 *   error: (error) => console.error(error.code),
 * });
 * ```
 */
export function chat(
  client: OpenAI,
  request: ChatRequest,
  options: AttemptOptions = {},
): Observable<ChatCompletionChunk> {
  return askClient(client, { api: 'chat', request, stream: true }, options);
}
