import { defer, filter, map } from 'rxjs';
import type { OperatorFunction } from 'rxjs';
import { oneOf } from '../core/checks.ts';
import { SluiceError } from '../core/errors.ts';
import { isRestart } from '../core/restart.ts';
import type { Restart } from '../core/restart.ts';
import type { AnswerPart } from './answerPart.ts';
import { FirstText } from './FirstText.ts';

export interface TextOptions {
  /**
   * What to do when the answer starts over after some of its text was emitted. `'fail'`: end with an error, since text
   * cannot be taken back. `'pass'`: emit the {@link Restart}; drop what came before it. Default: `'fail'`.
   */
  readonly restarts?: 'fail' | 'pass' | undefined;
}

export const TEXT_DEFAULTS: { readonly restarts: 'fail' | 'pass' } = { restarts: 'fail' };

/**
 * The text of an answer, piece by piece: of a chat completion its first choice, of a response its output text. Chunks
 * without text emit nothing; reasoning, refusals and tool calls are left out (see {@link answer}).
 *
 * ```text
 * source: role-"Hel"---"lo"-stop-usage|
 * text(): -----"Hel"---"lo"-----------|
 * ```
 *
 * Never puts the texts of two answers together: where the answer starts over after text was emitted, the result fails,
 * or passes the {@link Restart} on. A restart before any text is passed over.
 *
 * Shares nothing. Unsubscribe: unsubscribes from the source. Emits as errors, besides those of the source: the code of
 * the failure that made the answer start over.
 *
 * @throws SluiceError `invalid_option` if `restarts` is something else.
 *
 * @example
 * ```ts
 * import { chat, text } from 'sluice';
 * import OpenAI from 'openai';
 *
 * chat(new OpenAI(), { model: 'gpt-5.5', messages: [{ role: 'user', content: 'Hello' }] })
 *   .pipe(text())
 *   .subscribe((piece) => process.stdout.write(piece));
 * ```
 */
export function text(options?: { readonly restarts?: 'fail' | undefined }): OperatorFunction<AnswerPart, string>;
export function text(options: TextOptions): OperatorFunction<AnswerPart, string | Restart>;
export function text(options: TextOptions = {}): OperatorFunction<AnswerPart, string | Restart> {
  const restarts = oneOf('restarts', options.restarts ?? TEXT_DEFAULTS.restarts, ['fail', 'pass']);

  return (source) =>
    defer(() => {
      let first = new FirstText();
      let emitted = false;
      return source.pipe(
        map((part) => {
          if (!isRestart(part)) return first.textOf(part);
          if (emitted && restarts === 'fail') throw startedOver(part);
          first = new FirstText();
          return emitted ? part : '';
        }),
        filter((piece) => {
          if (piece === '') return false;
          emitted = typeof piece === 'string';
          return true;
        }),
      );
    });
}

function startedOver({ code, model }: Restart): SluiceError {
  const message = 'the answer started over after some of its text had been emitted, and text cannot be taken back';
  return new SluiceError(code, message, { model, while: 'streaming' });
}
