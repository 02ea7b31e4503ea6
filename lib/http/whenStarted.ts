import { Observable, Subject, takeUntil } from 'rxjs';
import type { Subscriber } from 'rxjs';
import { runInScope } from '../core/currentScope.ts';
import type { AnswerPart } from '../operators/answerPart.ts';
import type { AnswerEvent } from './AnswerEvent.ts';
import { httpFailure, HttpFailure } from './httpFailure.ts';
import type { MessageOf } from './httpFailure.ts';
import { toAnswerEvents } from './toAnswerEvents.ts';

export interface WhenStartedOptions {
  /** Of the request: ends the call when the client leaves before the answer begins. */
  readonly signal?: AbortSignal | undefined;
  /** What the client is told of a failure, `undefined` for the default: the message of a SluiceError, else `internal error`. */
  readonly messageOf?: MessageOf | undefined;
}

const CLIENT_LEFT = 499;

/**
 * Waits for an answer to begin, for frameworks that send their headers as soon as they are given a stream, as NestJS
 * does: until then a failure can be a status.
 *
 * Subscribes at once. Resolves with the first event to what gives that event and all others, to one subscriber; events
 * that come before it are held. Rejects with an {@link HttpFailure} if the answer fails before, or has nothing to tell, as
 * one of `replayable` that was read to its end (204). Its `statusCode` is what Nest, Express and Fastify answer with.
 *
 * - **`signal`:** ends the call and rejects. Pass it: nothing else can, before there is something to unsubscribe from.
 * - **Unsubscribe** from the result: unsubscribes from the source in the same tick.
 *
 * @example
 * ```ts
 * import type { Observable } from 'rxjs';
 * import OpenAI from 'openai';
 * import { chat } from 'sluice';
 * import { toMessageEvents, whenStarted } from 'sluice/http';
 * import type { SseMessage } from 'sluice/http';
 *
 * class ChatController {
 *   // @Sse('chat'), and @SseSignal() before `signal`
 *   async chat(signal: AbortSignal): Promise<Observable<SseMessage>> {
 *     const messages = [{ role: 'user' as const, content: 'Tell a story' }];
 *     const answer$ = await whenStarted(chat(new OpenAI(), { model: 'gpt-5.5', messages }), { signal });
 *     return answer$.pipe(toMessageEvents());
 *   }
 * }
 * ```
 */
export function whenStarted(
  answer$: Observable<AnswerPart | AnswerEvent>,
  options: WhenStartedOptions = {},
): Promise<Observable<AnswerEvent>> {
  const { signal, messageOf } = options;
  return new Promise((resolve, reject) => {
    const stop$ = new Subject<void>();
    const held = new HeldEvents(() => stop$.next());
    const leave = (): void => {
      stop$.next();
      reject(new HttpFailure(CLIENT_LEFT, 'the client left', undefined));
    };
    if (signal?.aborted) {
      leave();
      return;
    }
    signal?.addEventListener('abort', leave);
    const end = (): void => signal?.removeEventListener('abort', leave);
    stop$.subscribe(end);
    runInScope(undefined, () =>
      answer$.pipe(toAnswerEvents(), takeUntil(stop$)).subscribe({
        next: (event) => {
          held.next(event);
          resolve(held.events$);
        },
        error: (error: unknown) => {
          end();
          held.error(error);
          reject(httpFailure(error, messageOf));
        },
        complete: () => {
          end();
          held.complete();
        },
      }),
    );
  });
}

/** Keeps events for the one who subscribes, and only until then. */
class HeldEvents {
  readonly events$: Observable<AnswerEvent>;
  #held: AnswerEvent[] = [];
  #end: ((subscriber: Subscriber<AnswerEvent>) => void) | undefined;
  #subscriber: Subscriber<AnswerEvent> | undefined;

  constructor(stop: () => void) {
    // Hand-written: a ReplaySubject would keep every event to the end.
    this.events$ = new Observable<AnswerEvent>((subscriber) => {
      this.#subscriber = subscriber;
      subscriber.add(stop);
      const held = this.#held;
      this.#held = [];
      for (const event of held) subscriber.next(event);
      this.#end?.(subscriber);
    });
  }

  next(event: AnswerEvent): void {
    if (this.#subscriber) this.#subscriber.next(event);
    else this.#held.push(event);
  }

  error(error: unknown): void {
    this.#finish((subscriber) => subscriber.error(error));
  }

  complete(): void {
    this.#finish((subscriber) => subscriber.complete());
  }

  #finish(end: (subscriber: Subscriber<AnswerEvent>) => void): void {
    if (this.#subscriber) end(this.#subscriber);
    else this.#end = end;
  }
}
