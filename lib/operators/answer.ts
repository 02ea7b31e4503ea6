import { concat, defer, EMPTY, ignoreElements, map, of, tap } from 'rxjs';
import type { OperatorFunction } from 'rxjs';
import type { Answer } from '../core/answer.ts';
import type { AttemptSink } from '../core/AttemptSink.ts';
import { CallScope } from '../core/CallScope.ts';
import { oneOf } from '../core/checks.ts';
import { currentScope } from '../core/currentScope.ts';
import { isSluiceError } from '../core/errors.ts';
import type { Usage } from '../core/hints.ts';
import { isRestart } from '../core/restart.ts';
import { systemRuntime } from '../core/runtime.ts';
import { AnswerAssembler } from '../wire/AnswerAssembler.ts';
import { isOfResponses } from './answerPart.ts';
import type { AnswerPart } from './answerPart.ts';
import { scoped } from './scoped.ts';

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
 * The source is one call: usage that it reports without showing it, as a chat stream does, comes with a last snapshot.
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
      const downward = currentScope();
      // A chat stream hides the chunk with the usage from those who did not ask for it; the scope hears of it all the same.
      let counted: Usage | undefined;
      const sink: AttemptSink = {
        dispatched: () => (counted = undefined),
        usage: (usage) => (counted = usage),
      };
      const upward = (downward ?? CallScope.start(systemRuntime)).with({ sink });
      const parts$ = scoped(source, upward, downward).pipe(tap((part) => add(assembler, part)));
      const end$ = defer(() => {
        const complete = assembler.usage !== undefined || counted === undefined;
        if (counted) assembler.addUsage(counted);
        return emit === 'each' && complete ? EMPTY : of(assembler.snapshot());
      });
      return concat(
        emit === 'each' ? parts$.pipe(map(() => assembler.snapshot())) : parts$.pipe(ignoreElements()),
        end$,
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
