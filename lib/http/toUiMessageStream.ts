import { defer, mergeMap } from 'rxjs';
import type { OperatorFunction } from 'rxjs';
import type { AnswerPart } from '../operators/answerPart.ts';
import type { AnswerEvent } from './AnswerEvent.ts';
import type { MessageOf } from './httpFailure.ts';
import { toldFailures } from './toldFailures.ts';
import { UiMessageWriter } from './UiMessageWriter.ts';
import type { UiMessageChunk } from './UiMessageWriter.ts';

export interface ToUiMessageStreamOptions {
  /** What the client is told of a failure, `undefined` for the default: the message of a SluiceError, else `internal error`. */
  readonly messageOf?: MessageOf | undefined;
}

/**
 * An answer as the chunks of the AI SDK's UI message stream. For `useChat` over HTTP, pass `format: 'ui-messages'` to
 * `pipeToResponse` or `toResponse` instead, which write the same chunks.
 *
 * ```text
 * source:              role---"Hel"-----------------------------------------"lo"---------stop-|
 * toUiMessageStream(): -------(start, start-step, text-start, text-delta)---text-delta---(text-end, finish-step, finish|)
 * ```
 *
 * Tool calls are `tool-input-*`, usage is `message-metadata`, a refusal is text, a restart is `reset-step`, which needs
 * `ai` 7: older ones end with an error there. Choices but the first are left out. Never fails: a failure is `error`.
 *
 * Shares nothing. Unsubscribe: unsubscribes from the source.
 *
 * @example
 * ```ts
 * import OpenAI from 'openai';
 * import { chat } from 'sluice';
 * import { toUiMessageStream } from 'sluice/http';
 *
 * chat(new OpenAI(), { model: 'gpt-5.5', messages: [{ role: 'user', content: 'Hello' }] })
 *   .pipe(toUiMessageStream())
 *   .subscribe((chunk) => console.log(chunk.type));
 * ```
 */
export function toUiMessageStream(
  options: ToUiMessageStreamOptions = {},
): OperatorFunction<AnswerPart | AnswerEvent, UiMessageChunk> {
  const { messageOf } = options;
  return (source) =>
    defer(() => {
      const writer = new UiMessageWriter();
      return source.pipe(
        toldFailures(messageOf),
        mergeMap((event) => writer.chunks(event)),
      );
    });
}
