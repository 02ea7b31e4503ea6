import type { AttemptSink } from '../core/AttemptSink.ts';
import type { CallStage } from '../core/errors.ts';

/** Where a call stands, by what its attempts tell the scope. */
export class Progress implements AttemptSink {
  #gatesClosed = 0;
  #attemptsOpen = 0;
  #stage: CallStage | undefined;

  /** `undefined` where no gate and no source has told anything. */
  get stage(): CallStage | undefined {
    return this.#gatesClosed > 0 ? 'queue' : this.#stage;
  }

  gateClosed(): void {
    this.#gatesClosed++;
  }

  gateOpened(): void {
    if (this.#gatesClosed > 0) this.#gatesClosed--;
  }

  dispatched(): void {
    // A gate that was unsubscribed while it waited has not told.
    this.#gatesClosed = 0;
    this.#attemptsOpen++;
    this.#stage = 'headers';
  }

  responded(): void {
    this.#stage = 'first_content';
  }

  value(): void {
    this.#stage = 'streaming';
  }

  closed(): void {
    // The reader of an attempt may settle when the next one has been sent already.
    if (--this.#attemptsOpen === 0) this.#stage = 'backoff';
  }
}
