import type { Observable } from 'rxjs';
import type { AnswerPart } from '../operators/answerPart.ts';
import type { AnswerEvent } from './AnswerEvent.ts';
import { deliverySettings } from './DeliveryOptions.ts';
import { StreamOutlet } from './StreamOutlet.ts';
import type { ToReadableStreamOptions } from './toReadableStream.ts';

/** nginx's word for a client that left: nobody will read it, and logs tell it from a failure. */
const CLIENT_LEFT = 499;

/**
 * An answer as a web `Response`, for Hono, Next and everything else that speaks `fetch`: server-sent events once the
 * answer begins, or the status of its failure with a JSON body and `retry-after`.
 *
 * Resolves with the first event, or the failure, or after `openAfterMs`. Never rejects. The body is as that of
 * `toReadableStream`: at the pace of its reader, and cancelling it ends the call in the same tick. Pass the signal of the
 * request: it ends the call before there is a body.
 *
 * @throws SluiceError `invalid_option` if an option is wrong.
 *
 * @example
 * ```ts
 * import { Hono } from 'hono';
 * import OpenAI from 'openai';
 * import { chat } from 'sluice';
 * import { toResponse } from 'sluice/http';
 *
 * const openai = new OpenAI();
 * const app = new Hono();
 * app.get('/chat', (c) => {
 *   const answer$ = chat(openai, { model: 'gpt-5.5', messages: [{ role: 'user', content: 'Tell a story' }] });
 *   return toResponse(answer$, { signal: c.req.raw.signal });
 * });
 * ```
 */
export function toResponse(
  answer$: Observable<AnswerPart | AnswerEvent>,
  options: ToReadableStreamOptions = {},
): Promise<Response> {
  const settings = deliverySettings(options);

  return new Promise((resolve) => {
    const outlet: StreamOutlet = new StreamOutlet(answer$, settings, {
      signal: options.signal,
      // Told first: `onEnd` must not keep it from being answered.
      onEnd: (report) => {
        if (report.outcome === 'left') resolve(new Response(null, { status: CLIENT_LEFT }));
        options.onEnd?.(report);
      },
      onOpen: (headers) => resolve(new Response(outlet.body, { headers })),
      onRefuse: ({ statusCode, headers, body }) =>
        resolve(
          new Response(body === undefined ? null : JSON.stringify(body), {
            status: statusCode,
            headers: { ...settings.headers, ...headers },
          }),
        ),
    });
    outlet.start();
  });
}
