import { concat, defer, ignoreElements, map, of, tap } from 'rxjs';
import type { OperatorFunction } from 'rxjs';
import type { Answer } from '../core/answer.ts';
import { oneOf } from '../core/checks.ts';
import { isSluiceError } from '../core/errors.ts';
import { isRestart } from '../core/restart.ts';
import { AnswerAssembler } from '../wire/AnswerAssembler.ts';
import { isOfResponses } from './answerPart.ts';
import type { AnswerPart } from './answerPart.ts';

export interface AnswerOptions {
  /** `'each'`: a snapshot for each part of the stream. `'last'`: one, when the source has completed. Default: `'each'`. */
  readonly emit?: 'each' | 'last' | undefined;
}

export const ANSWER_DEFAULTS: { readonly emit: 'each' | 'last' } = { emit: 'each' };

/**
 * Puts the answer together: text, reasoning, tool calls, refusal, finish reason, usage and model, of all choices.
 *
 * ```text
 * source:   role----"Hel"------"lo"---stop---usage|
 * answer(): {''}----{Hel}------{Hello}{stop}-{use}|
 * ```
 *
 * Each snapshot is immutable and holds all that has come, so a consumer can show the latest and drop the others; what
 * did not change is shared between them. For a slower pace, add RxJS's `auditTime`. Where the answer starts over, the
 * snapshot is empty again and counts one more of `restarts`. With `emit: 'last'` an empty source gives an empty answer.
 *
 * Shares nothing. Unsubscribe: unsubscribes from the source. Emits as errors, besides those of the source:
 * `upstream_body_invalid` with `partial`, for a piece of a tool call that could belong to several.
 *
 * @throws SluiceError `invalid_option` if `emit` is something else.
 *
 * @example
 * ```ts
 * import { answer, chat } from 'sluice';
 * import OpenAI from 'openai';
 *
 * chat(new OpenAI(), { model: 'gpt-5.5', messages: [{ role: 'user', content: 'Hello' }] })
 *   .pipe(answer())
 *   .subscribe(({ text, toolCalls }) => console.log(text, toolCalls.length));
 * ```
 */
export function answer(options: AnswerOptions = {}): OperatorFunction<AnswerPart, Answer> {
  const emit = oneOf('emit', options.emit ?? ANSWER_DEFAULTS.emit, ['each', 'last']);

  return (source) =>
    defer(() => {
      const assembler = new AnswerAssembler();
      if (emit === 'each') {
        return source.pipe(
          map((part) => {
            add(assembler, part);
            return assembler.snapshot();
          }),
        );
      }
      return concat(
        source.pipe(
          tap((part) => add(assembler, part)),
          ignoreElements(),
        ),
        defer(() => of(assembler.snapshot())),
      );
    });
}

function add(assembler: AnswerAssembler, part: AnswerPart): void {
  try {
    if (isRestart(part)) assembler.restart();
    else if (isOfResponses(part)) assembler.addResponses(part);
    else assembler.addChat(part);
  } catch (error) {
    throw isSluiceError(error) ? error.with({ partial: assembler.snapshot() }) : error;
  }
}
