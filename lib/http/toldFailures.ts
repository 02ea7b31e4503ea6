import { catchError, defer, EMPTY, of, tap } from 'rxjs';
import type { OperatorFunction } from 'rxjs';
import type { AnswerPart } from '../operators/answerPart.ts';
import type { AnswerEvent } from './AnswerEvent.ts';
import { failureBody, HttpFailure } from './httpFailure.ts';
import type { MessageOf } from './httpFailure.ts';
import { toAnswerEvents } from './toAnswerEvents.ts';

/** The events of an answer, with a failure as the last of them. */
export function toldFailures(
  messageOf: MessageOf | undefined,
): OperatorFunction<AnswerPart | AnswerEvent, AnswerEvent> {
  return (source) =>
    defer(() => {
      let lastId = 0;
      return source.pipe(
        toAnswerEvents(),
        tap(({ id }) => (lastId = Number(id))),
        catchError((error: unknown) => {
          if (error instanceof HttpFailure && error.body === undefined) return EMPTY;
          const failure: AnswerEvent = { type: 'failure', data: failureBody(error, messageOf) };
          return of(Number.isSafeInteger(lastId) ? { id: String(lastId + 1), ...failure } : failure);
        }),
      );
    });
}
