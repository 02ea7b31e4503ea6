import { lastValueFrom } from 'rxjs';
import type { Observable } from 'rxjs';
import type { Answer } from '../core/answer.ts';
import { answer } from './answer.ts';
import type { AnswerPart } from './answerPart.ts';

/**
 * The whole answer, as a promise. Subscribes at once; rejects with what the source fails with, a SluiceError for every
 * source of this library, which carries what had come as `partial`. A source that completes without a value gives an
 * empty answer. Takes what {@link answer} takes: streamed or whole, with restarts or without.
 *
 * It cannot be cancelled through the promise: cancel the source, as with `takeUntil`.
 *
 * @example
 * ```ts
 * import { chat, lastAnswer, retryWithJitter } from 'sluice';
 * import OpenAI from 'openai';
 *
 * const request = { model: 'gpt-5.5', messages: [{ role: 'user' as const, content: 'Hello' }] };
 * const { text, finishReason } = await lastAnswer(chat(new OpenAI(), request).pipe(retryWithJitter()));
 * console.log(text, finishReason);
 * ```
 */
export function lastAnswer(observable$: Observable<AnswerPart>): Promise<Answer> {
  return lastValueFrom(observable$.pipe(answer({ emit: 'last' })));
}
