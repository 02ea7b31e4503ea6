import { Observable, Subscriber } from 'rxjs';
import type { Home } from '../core/CallObserver.ts';
import { swapScope } from '../core/currentScope.ts';
import type { CallScope } from '../core/CallScope.ts';

/**
 * `source`, subscribed to in the frame `upward`, with everything that comes down delivered in the frame `downward`: the
 * one in which whoever is downstream subscribed.
 */
export function scoped<T>(
  source: Observable<T>,
  upward: CallScope | undefined,
  downward: CallScope | undefined,
  hooks: ScopedHooks<T> = NO_HOOKS,
): Observable<T> {
  // Hand-written: no operator of RxJS sets something around the subscription and around each notification.
  return new Observable<T>((subscriber) => subscribeScoped(source, subscriber, upward, downward, hooks));
}

/** What is subscribed to, or what makes it in the frame that it is subscribed in, as `defer` would. */
export type Source<T> = Observable<T> | (() => Observable<T>);

/** What {@link scoped} does when `subscriber` subscribes to it. Throws what `before` and `subscribed` throw. */
export function subscribeScoped<T>(
  source: Source<T>,
  subscriber: Subscriber<T>,
  upward: CallScope | undefined,
  downward: CallScope | undefined,
  hooks: ScopedHooks<T>,
): void {
  const { home } = hooks;
  const inner = home
    ? new HomeSubscriber(subscriber, downward, hooks, home)
    : new ScopedSubscriber(subscriber, downward, hooks);
  hooks.before?.(inner);
  if (inner.closed) return;
  inner.subscribeTo(source, upward);
  hooks.subscribed?.(inner.closed);
}

/** Ends a stream with an error from outside. */
export interface End {
  error(error: unknown): void;
}

/** What `tap` and `catchError` would hear, and more; a hook that throws ends the stream with that error. */
export interface ScopedHooks<T> {
  /** Gets what ends the stream with an error from outside. Called before the source is subscribed to. */
  before?(end: End): void;
  /** The source has been subscribed to; `ended` if it was synchronous. */
  subscribed?(ended: boolean): void;
  /** Called before the first value is delivered. */
  first?(): void;
  /** Runs each delivery, such as in a trace context. */
  readonly home?: Home | undefined;
  /** Called before the end of the source is delivered. */
  completed?(): void;
  failed?(error: unknown): void;
  /** What to go on with in place of a failure. It takes the place of the source: nothing is left between it and the consumer. */
  instead?(error: unknown): Observable<T>;
}

const NO_HOOKS: ScopedHooks<never> = {};

// Every operator of RxJS 7 is such a subclass, but the one it makes them with is not exported. Without it a synchronous
// source cannot be stopped, or each value passes one operator more; the peer range ends before RxJS 8.
/* eslint-disable rxjs-x/no-subclass, @typescript-eslint/no-deprecated */
/** A Subscriber of its own, so that a synchronous source sees at once when the one downstream has had enough. */
class ScopedSubscriber<T> extends Subscriber<T> {
  readonly #scope: CallScope | undefined;
  readonly #hooks: ScopedHooks<T>;
  readonly #downstream: Subscriber<T>;
  /** Where values go, and in which frame: past those downstream that have nothing more to do with them. */
  #onward: Subscriber<T>;
  #onwardScope: CallScope | undefined;
  #begun = false;
  #subscribing = false;
  #instead: Observable<T> | undefined;

  constructor(destination: Subscriber<T>, scope: CallScope | undefined, hooks: ScopedHooks<T>) {
    super(destination);
    this.#downstream = destination;
    this.#onward = destination;
    this.#scope = scope;
    this.#onwardScope = scope;
    this.#hooks = hooks;
  }

  subscribeTo(source: Source<T>, upward: CallScope | undefined): void {
    const outer = swapScope(upward);
    this.#subscribing = true;
    try {
      (typeof source === 'function' ? source() : source).subscribe(this);
    } catch (error) {
      // What an Observable throws it emits: this comes of one that could not be made.
      this.error(error);
    } finally {
      this.#subscribing = false;
      swapScope(outer);
    }
    this.#replace();
  }

  protected override _next(value: T): void {
    const outer = swapScope(this.#onwardScope);
    try {
      if (this.#begun) return this.#onward.next(value);
      if (!this.#begin()) return;
      this.#downstream.next(value);
      this.#shorten();
    } finally {
      swapScope(outer);
    }
  }

  /**
   * Once a value has passed one like this downstream, that one only hands on, and the next value need not pass it. It
   * cannot end by itself without ending what is upstream too.
   */
  #shorten(): void {
    const downstream = this.#downstream;
    if (!(downstream instanceof ScopedSubscriber) || downstream instanceof HomeSubscriber) return;
    this.#onward = downstream.#onward as Subscriber<T>;
    this.#onwardScope = downstream.#onwardScope;
  }

  protected override _error(error: unknown): void {
    const outer = swapScope(this.#scope);
    try {
      this.#fail(error);
    } finally {
      swapScope(outer);
    }
  }

  protected override _complete(): void {
    const outer = swapScope(this.#scope);
    try {
      if (this.#completes()) super._complete();
    } finally {
      swapScope(outer);
    }
  }

  /** As below. */
  #begin(): boolean {
    this.#begun = true;
    try {
      this.#hooks.first?.();
      return true;
    } catch (error) {
      super._error(error);
      // Stryker disable next-line BooleanLiteral: who was told of an error hears no more
      return false;
    }
  }

  /** Whether to go on: a hook has thrown otherwise, and the one downstream has been told. */
  #completes(): boolean {
    try {
      this.#hooks.completed?.();
      return true;
    } catch (error) {
      super._error(error);
      // Stryker disable next-line BooleanLiteral: who was told of an error hears no more
      return false;
    }
  }

  #fail(error: unknown): void {
    const hooks = this.#hooks;
    let told = error;
    try {
      hooks.failed?.(error);
      this.#instead = hooks.instead?.(error);
    } catch (thrown) {
      told = thrown;
    }
    if (this.#instead === undefined) super._error(told);
    // A source that fails while it is being subscribed to has yet to say how it is torn down.
    else if (!this.#subscribing) this.#replace();
  }

  #replace(): void {
    const instead = this.#instead;
    if (instead === undefined) return;
    this.#instead = undefined;
    this.unsubscribe();
    instead.subscribe(this.#downstream);
  }
}

/** Delivers at home besides. A class of its own, so that nothing else pays for it. */
class HomeSubscriber<T> extends ScopedSubscriber<T> {
  readonly #home: Home;
  readonly #deliver = (value: T): void => super._next(value);

  constructor(destination: Subscriber<T>, scope: CallScope | undefined, hooks: ScopedHooks<T>, home: Home) {
    super(destination, scope, hooks);
    this.#home = home;
  }

  protected override _next(value: T): void {
    this.#home(this.#deliver, value);
  }

  protected override _error(error: unknown): void {
    this.#home((failure) => super._error(failure), error);
  }

  protected override _complete(): void {
    this.#home(() => super._complete(), undefined);
  }
}
