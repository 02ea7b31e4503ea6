import { concat, defer, from, map, mergeMap, of } from 'rxjs';
import type { OperatorFunction } from 'rxjs';
import type { AttemptSink } from '../core/AttemptSink.ts';
import { CallScope } from '../core/CallScope.ts';
import { currentScope } from '../core/currentScope.ts';
import type { Usage } from '../core/hints.ts';
import { systemRuntime } from '../core/runtime.ts';
import type { AnswerPart } from '../operators/answerPart.ts';
import { scoped } from '../operators/scoped.ts';
import { isAnswerEvent, isLast } from './AnswerEvent.ts';
import type { AnswerEvent } from './AnswerEvent.ts';
import { AnswerReader } from './AnswerReader.ts';

/**
 * The answer as events for a user interface, whatever API, vendor or shape it comes from. They are plain objects, to be
 * sent over a WebSocket, say; for event streams over HTTP see `pipeToResponse` and `toResponse`.
 *
 * ```text
 * source:           role----"Hel"---------"lo"----------stop-|
 * toAnswerEvents(): --------delta{Hel}----delta{lo}----------(usage, done|)
 * ```
 *
 * Each event has an `id`, from 1 up. `usage` is told once, before `done`, and where the provider counted. A restart is
 * a `reset`, unless nothing had been told yet. Events of a source that has some already, such as an answer of
 * `replayable`, pass as they are.
 *
 * Shares nothing. Unsubscribe: unsubscribes from the source. Emits as errors, besides those of the source:
 * `upstream_body_invalid`, for a piece of a tool call that could belong to several.
 *
 * @example
 * ```ts
 * import OpenAI from 'openai';
 * import { chat } from 'sluice';
 * import { toAnswerEvents } from 'sluice/http';
 *
 * chat(new OpenAI(), { model: 'gpt-5.5', messages: [{ role: 'user', content: 'Hello' }] })
 *   .pipe(toAnswerEvents())
 *   .subscribe(({ type, data }) => console.log(type, JSON.stringify(data)));
 * ```
 */
export function toAnswerEvents(): OperatorFunction<AnswerPart | AnswerEvent, AnswerEvent> {
  return (source) =>
    defer(() => {
      const reader = new AnswerReader();
      const downward = currentScope();
      let counted: Usage | undefined;
      let passed = false;
      let last = 0;
      const sink: AttemptSink = {
        dispatched: () => (counted = undefined),
        usage: (usage) => (counted = usage),
      };
      const upward = (downward ?? CallScope.start(systemRuntime)).with({ sink });
      const numbered = (event: AnswerEvent): AnswerEvent => ({ ...event, id: String(++last) });
      const events$ = scoped(source, upward, downward).pipe(
        mergeMap((part) => {
          if (!isAnswerEvent(part)) return from(reader.read(part)).pipe(map(numbered));
          passed = isLast(part);
          return of(part.id === undefined ? numbered(part) : part);
        }),
      );
      return concat(
        events$,
        defer(() => from(passed ? [] : reader.end(counted)).pipe(map(numbered))),
      );
    });
}
