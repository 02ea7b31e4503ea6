import { defer, finalize, map, merge, Observable, Subject, takeUntil, tap } from 'rxjs';
import type { OperatorFunction } from 'rxjs';
import { positiveOrInfinity, wholeNumber } from '../core/checks.ts';
import { startTimer, systemRuntime } from '../core/runtime.ts';
import type { Cancel, Runtime } from '../core/runtime.ts';
import type { AnswerPart } from '../operators/answerPart.ts';
import type { AnswerEvent } from './AnswerEvent.ts';
import { DELIVERY_DEFAULTS } from './DeliveryOptions.ts';
import type { MessageOf } from './httpFailure.ts';
import { toldFailures } from './toldFailures.ts';

export interface MessageEventsOptions {
  /** How long an `EventSource` waits before it comes back. Milliseconds, a whole number. Default: 3,000. */
  readonly retryMs?: number | undefined;
  /** A comment is emitted after so long without an event. Above 0; `Infinity`: none. Default: 15,000. */
  readonly heartbeatMs?: number | undefined;
  /** What the client is told of a failure, `undefined` for the default: the message of a SluiceError, else `internal error`. */
  readonly messageOf?: MessageOf | undefined;
  /** Time and waiting. Default: real time. */
  readonly runtime?: Runtime | undefined;
}

/** What NestJS calls `MessageEvent`. */
export interface SseMessage {
  data?: object;
  id?: string;
  type?: string;
  retry?: number;
  comment?: string;
}

/**
 * An answer as the `MessageEvent`s that NestJS expects of an `@Sse()` handler, with heartbeats between them.
 *
 * ```text
 * source:            role---"Hel"---------------"lo"---stop-|
 * toMessageEvents(): -------delta-----comment---delta-------(usage, done|)
 * ```
 *
 * Never fails: Nest has sent its headers by then, so that a failure is an event `failure`, and the end. For a status
 * instead, and for answers of `replayable`, wait with `whenStarted` first.
 *
 * Shares nothing. Unsubscribe: unsubscribes from the source; Nest does so when the client leaves.
 *
 * @throws SluiceError `invalid_option` if an option is wrong.
 *
 * @example
 * ```ts
 * import type { Observable } from 'rxjs';
 * import OpenAI from 'openai';
 * import { chat } from 'sluice';
 * import { toMessageEvents } from 'sluice/http';
 * import type { SseMessage } from 'sluice/http';
 *
 * class ChatController {
 *   // @Sse('chat')
 *   chat(): Observable<SseMessage> {
 *     const messages = [{ role: 'user' as const, content: 'Tell a story' }];
 *     return chat(new OpenAI(), { model: 'gpt-5.5', messages }).pipe(toMessageEvents());
 *   }
 * }
 * ```
 */
export function toMessageEvents(
  options: MessageEventsOptions = {},
): OperatorFunction<AnswerPart | AnswerEvent, SseMessage> {
  const retryMs = wholeNumber('retryMs', options.retryMs ?? DELIVERY_DEFAULTS.retryMs, 0);
  const heartbeatMs = positiveOrInfinity('heartbeatMs', options.heartbeatMs ?? DELIVERY_DEFAULTS.heartbeatMs);
  const { messageOf, runtime = systemRuntime } = options;

  return (source) =>
    defer(() => {
      let lastAtMs = runtime.clock.now();
      const end$ = new Subject<void>();
      const messages$ = source.pipe(
        toldFailures(messageOf),
        tap(() => (lastAtMs = runtime.clock.now())),
        // Not by itself: Nest gives every message an id that has none.
        map(({ id, type, data }, at): SseMessage => ({
          type,
          data,
          ...(id !== undefined && { id }),
          ...(at === 0 && { retry: retryMs }),
        })),
        finalize(() => end$.next()),
      );
      const heartbeats$ = beats(runtime, heartbeatMs, () => lastAtMs).pipe(
        map((): SseMessage => ({ comment: '' })),
        takeUntil(end$),
      );
      return merge(heartbeats$, messages$);
    });
}

/** Emits whenever nothing has happened for `everyMs`. */
function beats(runtime: Runtime, everyMs: number, lastAtMs: () => number): Observable<void> {
  // Hand-written: timers go through the runtime.
  return new Observable<void>((subscriber) => {
    let stop: Cancel = () => {};
    const wait = (ms: number): void => {
      stop = startTimer(runtime, ms, () => {
        const leftMs = lastAtMs() + everyMs - runtime.clock.now();
        if (leftMs <= 0) subscriber.next();
        wait(leftMs > 0 ? leftMs : everyMs);
      });
    };
    wait(everyMs);
    return () => stop();
  });
}
