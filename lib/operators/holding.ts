import { Observable } from 'rxjs';
import type { MonoTypeOperatorFunction, Subscriber } from 'rxjs';
import { CallScope } from '../core/CallScope.ts';
import { currentScope, deliverIn, runInScope } from '../core/currentScope.ts';
import { isSluiceError } from '../core/errors.ts';
import type { SluiceFact } from '../core/events.ts';
import { outcomeOf, SUCCESS } from '../core/outcome.ts';
import { classifyThrown } from '../wire/classify.ts';
import { HeldRun } from './HeldRun.ts';
import type { Hold, OnQueued } from './Hold.ts';
import { subscribeScoped } from './scoped.ts';
import type { ScopedHooks } from './scoped.ts';

/**
 * Acquires, subscribes to the source, releases: once, on complete, error and unsubscribe alike. Every operator that
 * guards a subscription is made of this.
 */
export function holding<T, H>(hold: Hold<H>): MonoTypeOperatorFunction<T> {
  return (source) =>
    // Hand-written: a flattening operator would cost every value as much as all else that happens to it here.
    new Observable<T>((subscriber) => new Gate(hold, source, subscriber).enter());
}

/** One subscription, from the wait for what it has to hold to the end of the source. */
class Gate<T, H> {
  readonly #hold: Hold<H>;
  readonly #source: Observable<T>;
  readonly #subscriber: Subscriber<T>;
  readonly #below: CallScope | undefined = currentScope();
  readonly #scope: CallScope;
  readonly #heard: CallScope;
  #run: HeldRun<H> | undefined;
  #waits = true;
  #queued = false;
  /** Ends what is held. There once something has been asked for: a grant from then on comes after a wait. */
  #leaving: (() => void) | undefined;

  constructor(hold: Hold<H>, source: Observable<T>, subscriber: Subscriber<T>) {
    const scope = this.#below ?? CallScope.start(hold.runtime);
    this.#hold = hold;
    this.#source = source;
    this.#subscriber = subscriber;
    this.#scope = hold.conversation === undefined ? scope : scope.with({ conversation: hold.conversation });
    this.#heard = hold.onEvent ? this.#scope.with({ onEvent: hold.onEvent }) : this.#scope;
  }

  enter(): void {
    const { where } = this.#hold;
    const onQueued: OnQueued = (position, waitMs) => {
      this.#queued = true;
      if (where) this.#report({ type: 'queued', where, position, waitMs });
    };
    const acquired = this.#hold.acquire(this.#heard, onQueued);
    this.#scope.gateClosed();
    // A grant or refusal comes in the frame of whoever made room, or in none; from here on it is the consumer's.
    const observer = deliverIn<H>(this.#below, {
      next: (held) => this.#scope.home(() => this.#granted(held)),
      error: (error) => this.#scope.home(() => this.#refused(error)),
      complete: () => {
        if (this.#run === undefined) this.#subscriber.complete();
      },
    });
    this.#subscriber.add(runInScope(this.#scope, () => acquired.subscribe(observer)));
    // Added last: the source is left first, and what it says by then counts.
    const leave = (): void => {
      this.#opened(false);
      this.#left();
      this.#run?.finish();
    };
    this.#leaving = leave;
    this.#subscriber.add(leave);
  }

  #granted(held: H): void {
    const leave = this.#leaving;
    this.#queued = false;
    // After a wait the source comes only now, and still has to be left first.
    if (leave) this.#subscriber.remove(leave);
    try {
      const run = new HeldRun(this.#hold, held);
      this.#run = run;
      const upward = this.#scope.with({ sink: run });
      const source = this.#hold.guard?.(held, this.#source) ?? this.#source;
      subscribeScoped(source, this.#subscriber, upward, this.#below, this.#hooks(run, held));
    } catch (error) {
      // RxJS would report an observer's exception elsewhere and leave the consumer waiting.
      this.#subscriber.error(error);
    } finally {
      if (leave) this.#subscriber.add(leave);
    }
  }

  #hooks(run: HeldRun<H>, held: H): ScopedHooks {
    const hold = this.#hold;
    const { where } = hold;
    return {
      before: (fail) => {
        // Not earlier: a listener may unsubscribe, and only from here on does that release what is held.
        if (where) this.#report({ type: 'granted', where, waitedMs: hold.waitedMs?.(held) ?? 0 });
        run.onLost((error) => this.#scope.home(() => fail(error)));
      },
      subscribed: (ended) => {
        if (!ended) run.subscribed();
        this.#opened(!ended);
      },
      first: () => run.firstValue(),
      completed: () => run.sourceEnded(SUCCESS),
      failed: (error) => run.sourceEnded(outcomeOf(classifyThrown(error, { phase: 'body' }), run.wasSent)),
    };
  }

  #refused(error: unknown): void {
    this.#queued = false;
    this.#opened(false);
    if (isSluiceError(error)) this.#report({ type: 'refused', code: error.code, retryAfterMs: error.retryAfterMs });
    this.#subscriber.error(error);
  }

  #left(): void {
    const { where } = this.#hold;
    if (this.#queued && where) this.#report({ type: 'left', where });
    this.#queued = false;
  }

  /** The attempt waits here no longer. */
  #opened(through: boolean): void {
    if (!this.#waits) return;
    this.#waits = false;
    this.#scope.gateOpened(through);
  }

  #report(fact: SluiceFact): void {
    this.#heard.report(this.#hold.runtime.clock.now(), fact);
  }
}
