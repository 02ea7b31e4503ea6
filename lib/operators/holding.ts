import { Observable, Subscriber } from 'rxjs';
import type { MonoTypeOperatorFunction, Unsubscribable } from 'rxjs';
import { CallScope } from '../core/CallScope.ts';
import { currentScope, swapScope } from '../core/currentScope.ts';
import { isSluiceError } from '../core/errors.ts';
import type { SluiceFact } from '../core/events.ts';
import { outcomeOf, SUCCESS } from '../core/outcome.ts';
import { classifyThrown } from '../wire/classify.ts';
import { HeldRun } from './HeldRun.ts';
import type { Hold, OnQueued } from './Hold.ts';
import { subscribeScoped } from './scoped.ts';
import type { End, ScopedHooks } from './scoped.ts';

/**
 * Acquires, subscribes to the source, releases: once, on complete, error and unsubscribe alike. Every operator that
 * guards a subscription is made of this.
 */
export function holding<T, H>(hold: Hold<H>): MonoTypeOperatorFunction<T> {
  return (source) => guarded(hold, source);
}

/** What is subscribed to while something is held, or what makes it of that, once it is. */
export type Guarded<T, H> = Observable<T> | ((held: H) => Observable<T>);

/** `source` behind {@link holding}. */
export function guarded<T, H>(hold: Hold<H>, source: Guarded<T, H>): Observable<T> {
  // Hand-written: a flattening operator would cost every value as much as all else that happens to it here.
  return new Observable<T>((subscriber) => new Gate(hold, source, subscriber).enter());
}

/** One subscription, from the wait for what it has to hold to the end of the source. */
class Gate<T, H> implements ScopedHooks<T>, Unsubscribable {
  readonly #hold: Hold<H>;
  readonly #source: Guarded<T, H>;
  readonly #subscriber: Subscriber<T>;
  readonly #below: CallScope | undefined = currentScope();
  readonly #scope: CallScope;
  readonly #heard: CallScope;
  #run: HeldRun<H> | undefined;
  #waits = true;
  #queued = false;

  constructor(hold: Hold<H>, source: Guarded<T, H>, subscriber: Subscriber<T>) {
    const scope = this.#below ?? CallScope.start(hold.runtime);
    const { conversation = scope.conversation, onEvent } = hold;
    this.#hold = hold;
    this.#source = source;
    this.#subscriber = subscriber;
    // Stryker disable next-line ConditionalExpression: a copy would say the same
    this.#scope = conversation === scope.conversation ? scope : scope.with({ conversation });
    this.#heard = onEvent ? this.#scope.with({ onEvent }) : this.#scope;
  }

  enter(): void {
    const { where } = this.#hold;
    const onQueued: OnQueued = (position, waitMs) => {
      this.#queued = true;
      if (where) this.#report({ type: 'queued', where, position, waitMs });
    };
    const acquired = this.#hold.acquire(this.#heard, onQueued);
    this.#scope.gateClosed();
    const receiver = new GrantSubscriber<H>(this);
    const outer = swapScope(this.#scope);
    try {
      acquired.subscribe(receiver);
    } finally {
      swapScope(outer);
    }
    this.#subscriber.add(receiver);
    // Stryker disable next-line ConditionalExpression: it would have nothing to do a second time
    if (this.#run === undefined) this.#subscriber.add(this);
  }

  /** The one downstream has left, or has had its end. */
  unsubscribe(): void {
    this.#opened(false);
    this.#left();
    this.#run?.finish();
  }

  // A grant or refusal comes in the frame of whoever made room, or in none; from here on it is the consumer's.

  granted(held: H): void {
    this.#atHome(() => this.#granted(held));
  }

  refused(error: unknown): void {
    this.#atHome(() => this.#refused(error));
  }

  /** Nothing more comes of what was acquired. */
  acquired(): void {
    if (this.#run === undefined) this.#atHome(() => this.#subscriber.complete());
  }

  before(end: End): void {
    const { where } = this.#hold;
    const run = this.#run as HeldRun<H>;
    // Not earlier: a listener may unsubscribe, and only from here on does that release what is held.
    if (where) this.#report({ type: 'granted', where, waitedMs: run.waitedMs });
    run.onLost((error) => this.#scope.home(() => end.error(error)));
  }

  subscribed(ended: boolean): void {
    if (!ended) this.#run?.subscribed();
    this.#opened(!ended);
  }

  first(): void {
    this.#run?.firstValue();
  }

  completed(): void {
    this.#run?.sourceEnded(SUCCESS);
  }

  failed(error: unknown): void {
    const run = this.#run as HeldRun<H>;
    run.sourceEnded(outcomeOf(classifyThrown(error), run.wasSent));
  }

  #atHome(work: () => void): void {
    const outer = swapScope(this.#below);
    try {
      this.#scope.home(work);
    } finally {
      swapScope(outer);
    }
  }

  #granted(held: H): void {
    this.#queued = false;
    // Added again last: the source is left first, and what it says by then counts.
    this.#subscriber.remove(this);
    try {
      const run = new HeldRun(this.#hold, held);
      this.#run = run;
      const upward = this.#scope.withSink(run);
      const source = this.#source;
      const made = typeof source === 'function' ? (): Observable<T> => source(held) : source;
      subscribeScoped(this.#hold.guard?.(held, made) ?? made, this.#subscriber, upward, this.#below, this);
    } catch (error) {
      // RxJS would report an observer's exception elsewhere and leave the consumer waiting.
      this.#subscriber.error(error);
    } finally {
      this.#subscriber.add(this);
    }
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

// As in `scoped`.
/* eslint-disable rxjs-x/no-subclass, @typescript-eslint/no-deprecated */
/** Takes what was acquired to its gate: one object in place of the five of an observer. */
class GrantSubscriber<H> extends Subscriber<H> {
  readonly #gate: { granted(held: H): void; refused(error: unknown): void; acquired(): void };

  constructor(gate: { granted(held: H): void; refused(error: unknown): void; acquired(): void }) {
    super();
    this.#gate = gate;
  }

  protected override _next(held: H): void {
    this.#gate.granted(held);
  }

  protected override _error(error: unknown): void {
    try {
      this.#gate.refused(error);
      // Stryker disable next-line BlockStatement: the one that it was added to lets go of it too
    } finally {
      // Stryker disable next-line CallExpression: as above
      this.unsubscribe();
    }
  }

  protected override _complete(): void {
    try {
      this.#gate.acquired();
    } finally {
      this.unsubscribe();
    }
  }
}
