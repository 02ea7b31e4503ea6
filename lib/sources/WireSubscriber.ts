import { Subscriber } from 'rxjs';
import type { WireEvent } from '../core/attempt.ts';

/** What a {@link WireSubscriber} brings events to. */
export interface WireReceiver {
  next(event: WireEvent): void;
  error(thrown: unknown): void;
  complete(): void;
}

// Every operator of RxJS 7 is such a subclass. Without it a synchronous source would run on after its consumer had enough,
// or each event pass two subscribers more; the peer range ends before RxJS 8.
/* eslint-disable rxjs-x/no-subclass, @typescript-eslint/no-deprecated */
/** One subscription to a transport: there before the transport runs, so that it can be left from within. */
export class WireSubscriber extends Subscriber<WireEvent> {
  readonly #receiver: WireReceiver;

  constructor(receiver: WireReceiver) {
    super();
    this.#receiver = receiver;
  }

  protected override _next(event: WireEvent): void {
    this.#receiver.next(event);
  }

  protected override _error(thrown: unknown): void {
    try {
      this.#receiver.error(thrown);
    } finally {
      this.unsubscribe();
    }
  }

  protected override _complete(): void {
    try {
      this.#receiver.complete();
    } finally {
      this.unsubscribe();
    }
  }
}
