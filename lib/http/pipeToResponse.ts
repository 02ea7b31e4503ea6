import type { ServerResponse } from 'node:http';
import { Observable } from 'rxjs';
import type { OperatorFunction } from 'rxjs';
import type { AnswerPart } from '../operators/answerPart.ts';
import type { AnswerEvent } from './AnswerEvent.ts';
import { deliver } from './deliver.ts';
import { deliverySettings } from './DeliveryOptions.ts';
import type { DeliveryOptions, DeliveryReport } from './DeliveryOptions.ts';
import { ResponseOutlet } from './ResponseOutlet.ts';

/**
 * Sends an answer to a browser as server-sent events, over a response of `node:http`, Express, or whatever is built on
 * them. Nothing happens before it is subscribed to.
 *
 * ```text
 * source:                   role---"Hel"---"lo"----stop-|
 * over the response:        -------200,{Hel}-{lo}-------usage, done
 * pipeToResponse(response): ----------------------------(r|)
 * ```
 *
 * The result emits one {@link DeliveryReport} and completes. It never fails: failures are told to the client, before the
 * first event as a status with a JSON body and `retry-after`, after it as an event `failure`.
 *
 * - **The client leaves:** the source is unsubscribed from in the same tick, which aborts the request to the provider.
 * - **The client is slow:** events that wait are merged; past `pauseBytes` the provider's body is not read on, past
 *   `maxPendingBytes` or `maxStalledMs` the client is dropped.
 * - **Unsubscribe:** ends the call, and the response where it stands.
 *
 * Nothing is shared between subscriptions.
 *
 * @throws SluiceError `invalid_option` if an option is wrong.
 *
 * @example
 * ```ts
 * import { createServer } from 'node:http';
 * import OpenAI from 'openai';
 * import { chat } from 'sluice';
 * import { pipeToResponse } from 'sluice/http';
 *
 * const openai = new OpenAI();
 * createServer((request, response) => {
 *   const messages = [{ role: 'user' as const, content: 'Tell a story' }];
 *   chat(openai, { model: 'gpt-5.5', messages }).pipe(pipeToResponse(response)).subscribe();
 * });
 * ```
 */
export function pipeToResponse(
  response: ServerResponse,
  options: DeliveryOptions = {},
): OperatorFunction<AnswerPart | AnswerEvent, DeliveryReport> {
  const settings = deliverySettings(options);

  return (source) =>
    // Hand-written: it consumes the source, at a pace that must be set while it subscribes.
    new Observable<DeliveryReport>((subscriber) => {
      if (response.destroyed || response.writableEnded) {
        subscriber.next({ outcome: 'left', events: 0, error: undefined });
        subscriber.complete();
        return;
      }
      let ended = false;
      const outlet = new ResponseOutlet(response, settings);
      const onClose = (): void => delivery.left();
      const onDrain = (): void => delivery.drained();
      response.on('close', onClose);
      response.on('error', onClose);
      response.on('drain', onDrain);
      const delivery = deliver(source, outlet, settings, (report) => {
        ended = true;
        response.off('close', onClose);
        response.off('error', onClose);
        response.off('drain', onDrain);
        subscriber.next(report);
        subscriber.complete();
      });
      subscriber.add(() => {
        if (ended) return;
        delivery.left();
        outlet.cut();
      });
    });
}
