import type { AttemptSink } from '../core/AttemptSink.ts';
import type { RateLimitHints, Usage } from '../core/hints.ts';
import type { Outcome } from '../core/outcome.ts';
import { startTimer } from '../core/runtime.ts';
import type { Cancel } from '../core/runtime.ts';
import type { Hold } from './Hold.ts';

/** A body reader that does not settle after an abort keeps its permit no longer than this. */
export const RELEASE_WITHIN_MS = 1000;

/** What is known of one subscription that something is held for. */
export class HeldRun<H> implements AttemptSink {
  readonly #hold: Hold<H>;
  readonly #held: H;
  #sentAtMs: number | undefined;
  #firstContentMs: number | undefined;
  #gatesClosed = 0;
  #attemptsOpen = 0;
  #sourceEnded: Outcome | undefined;
  #outcome: Outcome | undefined;
  #released = false;
  #stopWaiting: Cancel | undefined;

  constructor(hold: Hold<H>, held: H) {
    this.#hold = hold;
    this.#held = held;
  }

  get waitedMs(): number {
    return this.#hold.waitedMs?.(this.#held) ?? 0;
  }

  get wasSent(): boolean {
    return this.#sentAtMs !== undefined;
  }

  /** A source that does not speak to the scope counts as sent once no gate holds it back: the safe side for a quota. */
  subscribed(): void {
    if (this.#gatesClosed === 0) this.#markSent();
  }

  gateClosed(): void {
    this.#gatesClosed++;
  }

  gateOpened(through: boolean): void {
    this.#gatesClosed--;
    if (through && this.#gatesClosed === 0) this.#markSent();
  }

  dispatched(_atMs: number, sentFollows: boolean): void {
    this.#attemptsOpen++;
    this.#markSent(sentFollows);
  }

  sent(): void {
    this.#hold.sent?.(this.#held);
  }

  responded(status: number): void {
    this.#hold.responded?.(this.#held, status);
  }

  hints(hints: RateLimitHints): void {
    this.#hold.hints?.(this.#held, hints);
  }

  usage(usage: Usage): void {
    this.#hold.usage?.(this.#held, usage);
  }

  closed(): void {
    this.#attemptsOpen--;
    if (this.#outcome !== undefined && this.#attemptsOpen === 0) this.#release(this.#outcome);
  }

  firstValue(): void {
    this.#markSent();
    this.#firstContentMs = this.#hold.runtime.clock.now() - (this.#sentAtMs ?? 0);
    this.#hold.firstContent?.(this.#held);
  }

  onLost(lose: (error: unknown) => void): void {
    this.#hold.onLost?.(this.#held, lose);
  }

  /** The source has ended, which is not passed on yet. */
  sourceEnded(outcome: Outcome): void {
    this.#sourceEnded = outcome;
    if (this.#hold.releaseFirst ?? true) this.#end(outcome);
  }

  /** The one downstream has seen the end, or has unsubscribed. */
  finish(): void {
    this.#end(this.#sourceEnded ?? { kind: 'dropped', dispatched: this.wasSent });
  }

  #end(outcome: Outcome): void {
    if (this.#outcome !== undefined) return;
    this.#outcome = outcome;
    this.#hold.ended?.(this.#held, outcome, this.#firstContentMs);
    if (!this.#hold.untilClosed || this.#attemptsOpen === 0) {
      this.#release(outcome);
      return;
    }
    this.#stopWaiting = startTimer(this.#hold.runtime, RELEASE_WITHIN_MS, () => this.#release(outcome));
  }

  #markSent(sentFollows = false): void {
    if (this.#sentAtMs !== undefined || this.#outcome !== undefined) return;
    this.#sentAtMs = this.#hold.runtime.clock.now();
    this.#hold.dispatched?.(this.#held, sentFollows);
  }

  #release(outcome: Outcome): void {
    if (this.#released) return;
    this.#released = true;
    this.#stopWaiting?.();
    this.#hold.release(this.#held, outcome, this.#firstContentMs);
  }
}
