import type { Observable } from 'rxjs';
import type { AnswerPart } from '../operators/answerPart.ts';
import type { AnswerEvent } from './AnswerEvent.ts';

export interface ReplayableSnapshot {
  readonly streams: number;
  /** Those that are still being answered. */
  readonly running: number;
  readonly bytes: number;
}

/** Which stream a client wants. */
export interface ReplayRequest {
  /** The header `last-event-id` of the request, if there is one. */
  readonly lastEventId?: string | readonly string[] | null | undefined;
  /**
   * A name of the client's own for what it asks, such as a UUID made with the message: as long as its stream is kept, a
   * key is not asked again, also where the connection broke before an id came. 1 to 200 characters.
   */
  readonly key?: string | null | undefined;
  /** Who asks, such as the id of the user. A stream is known to its owner only. */
  readonly owner?: string | undefined;
}

/** Streams that clients can come back to. */
export interface Replays {
  /**
   * The stream that `request` names, from where the client stopped; else a new one, for which `ask` is called once. Give
   * the result to `pipeToResponse`, `toResponse` or `whenStarted`.
   *
   * Cold: all is decided when it is subscribed to. Emits as errors what becomes a status: 204, where the stream has been
   * read to its end; 410, where it is not known, not known any more, or somebody else's; `queue_full`, where
   * `maxStreams` run; what the call fails with before its first event.
   */
  open(request: ReplayRequest, ask: () => Observable<AnswerPart | AnswerEvent>): Observable<AnswerEvent>;
  /** As `open`, but never asks: 204 where there is nothing that runs by that key. For `useChat`'s way to resume. */
  resume(request: ReplayRequest): Observable<AnswerEvent>;
  /** Ends the stream that `request` names, and the call to the provider. @returns Whether it was running. */
  stop(request: ReplayRequest): boolean;
  snapshot(): ReplayableSnapshot;
  /** Ends all that runs with a failure `closed`, and keeps nothing. What is opened later fails so too. */
  close(): void;
}
