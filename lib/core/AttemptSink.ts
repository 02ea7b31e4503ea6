import type { RateLimitHints, Usage } from './hints.ts';

/**
 * Hears what the source below says of its attempt. Sources call `dispatched` and `closed` once each, in this order;
 * between them the others. A sink must not throw.
 */
export interface AttemptSink {
  /** A gate further up, such as a queue, keeps the attempt waiting. */
  gateClosed?(): void;
  /**
   * That gate has subscribed to what is above it, and that has not ended (`through`), or the attempt ended there. Not
   * called if it is unsubscribed while it waits.
   */
  gateOpened?(through: boolean): void;
  /** The request leaves now. `sentFollows`: it is still to be prepared, and `sent` will tell when that is done. */
  dispatched?(atMs: number, sentFollows: boolean): void;
  /** It is on its way only now: what prepares a request, such as an SDK on a busy machine, took until then. */
  sent?(atMs: number): void;
  /** The head of an answer is here. */
  responded?(status: number): void;
  hints?(hints: RateLimitHints): void;
  usage?(usage: Usage): void;
  /** Nothing of the attempt runs any more: the body reader has settled. */
  closed?(): void;
}
