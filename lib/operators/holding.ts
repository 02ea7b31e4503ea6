import { defer, finalize, mergeMap, tap } from 'rxjs';
import type { MonoTypeOperatorFunction, Observable } from 'rxjs';
import { CallScope } from '../core/CallScope.ts';
import { currentScope } from '../core/currentScope.ts';
import type { AttemptSink } from '../core/AttemptSink.ts';
import { isSluiceError } from '../core/errors.ts';
import type { EventListener } from '../core/events.ts';
import { outcomeOf, SUCCESS } from '../core/outcome.ts';
import type { Outcome } from '../core/outcome.ts';
import type { RateLimitHints, Usage } from '../core/hints.ts';
import { startTimer } from '../core/runtime.ts';
import type { Cancel, Runtime } from '../core/runtime.ts';
import { classifyThrown } from '../wire/classify.ts';
import { scoped } from './scoped.ts';

/** A body reader that does not settle after an abort keeps its permit no longer than this. */
export const RELEASE_WITHIN_MS = 1000;

type OnQueued = (position: number, waitMs: number | undefined) => void;

/** How an operator takes hold of something for as long as one subscription to its source runs. */
export interface Hold<H> {
  readonly runtime: Runtime;
  /** Names the gate in events; without it, it reports none. */
  readonly where?: 'lane' | 'quota' | 'concurrency' | undefined;
  readonly onEvent?: EventListener | undefined;
  /** By the rules of the ports: one value, or a refusal. */
  acquire(scope: CallScope, onQueued: OnQueued): Observable<H>;
  /** What `H` says of its wait, for events. */
  waitedMs?(held: H): number;
  /** Hears the hints and usage of the attempt. */
  sink?(held: H): AttemptSink;
  /** Called once, when the attempt is sent. */
  dispatched?(held: H): void;
  /** Called once, at the first value. */
  firstContent?(held: H): void;
  /** Gets a function that ends the subscription with an error: the hold was lost. */
  onLost?(held: H, lose: (error: unknown) => void): void;
  /** Called once, when the attempt has ended, before `release`, which may have to wait until nothing of it runs. */
  ended?(held: H, outcome: Outcome, firstContentMs: number | undefined): void;
  /** Called exactly once for each `H`. `firstContentMs` counts from dispatch to the first value. */
  release(held: H, outcome: Outcome, firstContentMs: number | undefined): void;
  /** Keep the hold until nothing of the attempt runs any more, but no longer than {@link RELEASE_WITHIN_MS}. */
  readonly untilClosed?: boolean | undefined;
  /** Release before the end of the source is passed on, so that a retry finds it released. Default: true. */
  readonly releaseFirst?: boolean | undefined;
}

/**
 * Acquires, subscribes to the source, releases: once, on complete, error and unsubscribe alike. Every operator that
 * guards a subscription is made of this.
 */
export function holding<T, H>(hold: Hold<H>): MonoTypeOperatorFunction<T> {
  return (source) =>
    defer(() => {
      const below = currentScope();
      const scope = below ?? CallScope.start(hold.runtime);
      const { clock } = hold.runtime;
      const heard = hold.onEvent ? scope.with({ onEvent: hold.onEvent }) : scope;
      const { where } = hold;
      const onQueued: OnQueued = (position, waitMs) => {
        if (where) heard.report(clock.now(), { type: 'queued', where, position, waitMs });
      };
      const acquired = hold.acquire(heard, onQueued);
      let run: HeldRun<H> | undefined;
      let waits = true;
      const gateOpened = (through: boolean): void => {
        if (!waits) return;
        waits = false;
        scope.gateOpened(through);
      };
      scope.gateClosed();
      // A grant or refusal comes in the frame of whoever made room, or in none; from here on it is the consumer's.
      return scoped(acquired, scope, below).pipe(
        tap({
          error: (error: unknown) => {
            gateOpened(false);
            if (!isSluiceError(error)) return;
            heard.report(clock.now(), { type: 'refused', code: error.code, retryAfterMs: error.retryAfterMs });
          },
          unsubscribe: () => gateOpened(false),
        }),
        mergeMap((held) => {
          const granted = (): void => {
            if (where) heard.report(clock.now(), { type: 'granted', where, waitedMs: hold.waitedMs?.(held) ?? 0 });
          };
          run = new HeldRun(hold, held);
          return held$(source, { scope, below }, run, { granted, gateOpened });
        }),
        // Out here, because `mergeMap` tears down what it merged before it passes on that this has completed.
        finalize(() => run?.finish()),
      );
    });
}

function held$<T, H>(
  source: Observable<T>,
  { scope, below }: { readonly scope: CallScope; readonly below: CallScope | undefined },
  run: HeldRun<H>,
  gate: { granted(): void; gateOpened(through: boolean): void },
): Observable<T> {
  return scoped(source, scope.with({ sink: run }), below, {
    before: (fail) => {
      // Not earlier: a listener may unsubscribe, and only from here on does that release what is held.
      gate.granted();
      run.onLost(fail);
    },
    subscribed: (ended) => {
      if (!ended) run.subscribed();
      gate.gateOpened(!ended);
    },
  }).pipe(
    tap({
      next: () => run.value(),
      complete: () => run.sourceEnded(SUCCESS),
      error: (error: unknown) => run.sourceEnded(outcomeOf(classifyThrown(error, { phase: 'body' }), run.wasSent)),
    }),
  );
}

/** What is known of one subscription that something is held for. */
class HeldRun<H> implements AttemptSink {
  readonly #hold: Hold<H>;
  readonly #held: H;
  readonly #sink: AttemptSink | undefined;
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
    this.#sink = hold.sink?.(held);
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

  dispatched(atMs: number): void {
    this.#attemptsOpen++;
    this.#markSent();
    this.#sink?.dispatched?.(atMs);
  }

  sent(atMs: number): void {
    this.#sink?.sent?.(atMs);
  }

  responded(status: number): void {
    this.#sink?.responded?.(status);
  }

  hints(hints: RateLimitHints): void {
    this.#sink?.hints?.(hints);
  }

  usage(usage: Usage): void {
    this.#sink?.usage?.(usage);
  }

  closed(): void {
    this.#attemptsOpen--;
    this.#sink?.closed?.();
    if (this.#outcome !== undefined && this.#attemptsOpen === 0) this.#release(this.#outcome);
  }

  value(): void {
    if (this.#firstContentMs !== undefined) return;
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

  #markSent(): void {
    if (this.#sentAtMs !== undefined || this.#outcome !== undefined) return;
    this.#sentAtMs = this.#hold.runtime.clock.now();
    this.#hold.dispatched?.(this.#held);
  }

  #release(outcome: Outcome): void {
    if (this.#released) return;
    this.#released = true;
    this.#stopWaiting?.();
    this.#hold.release(this.#held, outcome, this.#firstContentMs);
  }
}
