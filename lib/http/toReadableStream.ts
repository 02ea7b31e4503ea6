import type { Observable } from 'rxjs';
import type { AnswerPart } from '../operators/answerPart.ts';
import type { AnswerEvent } from './AnswerEvent.ts';
import { deliverySettings } from './DeliveryOptions.ts';
import type { DeliveryOptions, DeliveryReport } from './DeliveryOptions.ts';
import { StreamOutlet } from './StreamOutlet.ts';

export interface ToReadableStreamOptions extends DeliveryOptions {
  /** Ends the stream and the call, as if the client had left: the signal of the request. */
  readonly signal?: AbortSignal | undefined;
  /** Hears once how the stream ended. */
  readonly onEnd?: ((report: DeliveryReport) => void) | undefined;
}

/**
 * An answer as the body of a web `Response`: server-sent events in bytes, at the pace of whoever reads it. `toResponse`
 * makes the whole response, with the right status where the answer fails before it begins.
 *
 * Subscribes when it is first read. Cancelling it unsubscribes in the same tick, which aborts the request to the
 * provider. Failures are an event `failure`; only a client that is dropped, because it did not read, makes it an error.
 *
 * @throws SluiceError `invalid_option` if an option is wrong.
 *
 * @example
 * ```ts
 * import OpenAI from 'openai';
 * import { chat } from 'sluice';
 * import { toReadableStream } from 'sluice/http';
 *
 * const openai = new OpenAI();
 * export function GET(request: Request): Response {
 *   const answer$ = chat(openai, { model: 'gpt-5.5', messages: [{ role: 'user', content: 'Tell a story' }] });
 *   const headers = { 'content-type': 'text/event-stream', 'cache-control': 'no-cache, no-transform' };
 *   return new Response(toReadableStream(answer$, { signal: request.signal }), { headers });
 * }
 * ```
 */
export function toReadableStream(
  answer$: Observable<AnswerPart | AnswerEvent>,
  options: ToReadableStreamOptions = {},
): ReadableStream<Uint8Array> {
  return new StreamOutlet(answer$, deliverySettings(options), options).body;
}
