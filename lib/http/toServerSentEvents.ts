import { map } from 'rxjs';
import type { OperatorFunction } from 'rxjs';
import type { AnswerPart } from '../operators/answerPart.ts';
import type { AnswerEvent } from './AnswerEvent.ts';
import { encodeServerSentEvent } from './ServerSentEvent.ts';
import { toMessageEvents } from './toMessageEvents.ts';
import type { MessageEventsOptions } from './toMessageEvents.ts';

/**
 * An answer as the text of an event stream, to be written as it is: for servers that `pipeToResponse` and `toResponse`
 * do not fit. The first piece of text tells how long to wait before coming back.
 *
 * ```text
 * source:               role---"Hel"---------------"lo"---stop-|
 * toServerSentEvents(): r------delta--heartbeat----delta-------(usage, done|)
 * ```
 *
 * Never fails: a failure is an event `failure`, and the end. Where it should be a status instead, see `whenStarted`. It
 * knows no pace: what a slow client does not take waits wherever you write it to.
 *
 * Shares nothing. Unsubscribe: unsubscribes from the source.
 *
 * @throws SluiceError `invalid_option` if an option is wrong.
 *
 * @example
 * ```ts
 * import OpenAI from 'openai';
 * import { chat } from 'sluice';
 * import { toServerSentEvents } from 'sluice/http';
 *
 * chat(new OpenAI(), { model: 'gpt-5.5', messages: [{ role: 'user', content: 'Hello' }] })
 *   .pipe(toServerSentEvents())
 *   .subscribe((text) => process.stdout.write(text));
 * ```
 */
export function toServerSentEvents(
  options: MessageEventsOptions = {},
): OperatorFunction<AnswerPart | AnswerEvent, string> {
  const toMessages = toMessageEvents(options);
  return (source) =>
    source.pipe(
      toMessages,
      map(({ type, data, ...fields }) =>
        encodeServerSentEvent({ ...fields, event: type, data: data === undefined ? undefined : JSON.stringify(data) }),
      ),
    );
}
