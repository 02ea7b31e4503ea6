import { Observable, Subscriber } from 'rxjs';
import type { Home } from '../core/CallObserver.ts';
import { runInScope, swapScope } from '../core/currentScope.ts';
import type { CallScope } from '../core/CallScope.ts';

/**
 * `source`, subscribed to in the frame `upward`, with everything that comes down delivered in the frame `downward`: the
 * one in which whoever is downstream subscribed.
 */
export function scoped<T>(
  source: Observable<T>,
  upward: CallScope | undefined,
  downward: CallScope | undefined,
  hooks: ScopedHooks = NO_HOOKS,
): Observable<T> {
  // Hand-written: no operator of RxJS sets something around the subscription and around each notification.
  return new Observable<T>((subscriber) => subscribeScoped(source, subscriber, upward, downward, hooks));
}

/** What {@link scoped} does when `subscriber` subscribes to it. Throws what `before` and `subscribed` throw. */
export function subscribeScoped<T>(
  source: Observable<T>,
  subscriber: Subscriber<T>,
  upward: CallScope | undefined,
  downward: CallScope | undefined,
  hooks: ScopedHooks,
): void {
  const { home } = hooks;
  const inner = home
    ? new HomeSubscriber(subscriber, downward, hooks, home)
    : new ScopedSubscriber(subscriber, downward, hooks);
  hooks.before?.((error) => inner.error(error));
  if (inner.closed) return;
  runInScope(upward, () => source.subscribe(inner));
  hooks.subscribed?.(inner.closed);
}

/** What `tap` would hear, and more; a hook that throws ends the stream with that error. */
export interface ScopedHooks {
  /** Gets a function that ends the stream with an error from outside. Called before the source is subscribed to. */
  readonly before?: ((fail: (error: unknown) => void) => void) | undefined;
  /** The source has been subscribed to; `ended` if it was synchronous. */
  readonly subscribed?: ((ended: boolean) => void) | undefined;
  /** Called before the first value is delivered. */
  readonly first?: (() => void) | undefined;
  /** Runs each delivery, such as in a trace context. */
  readonly home?: Home | undefined;
  /** Called before the end of the source is delivered. */
  readonly completed?: (() => void) | undefined;
  readonly failed?: ((error: unknown) => void) | undefined;
}

const NO_HOOKS: ScopedHooks = {};

// Every operator of RxJS 7 is such a subclass, but the one it makes them with is not exported. Without it a synchronous
// source cannot be stopped, or each value passes one operator more; the peer range ends before RxJS 8.
/* eslint-disable rxjs-x/no-subclass, @typescript-eslint/no-deprecated */
/** A Subscriber of its own, so that a synchronous source sees at once when the one downstream has had enough. */
class ScopedSubscriber<T> extends Subscriber<T> {
  readonly #scope: CallScope | undefined;
  readonly #hooks: ScopedHooks;
  #first: (() => void) | undefined;

  constructor(destination: Subscriber<T>, scope: CallScope | undefined, hooks: ScopedHooks) {
    super(destination);
    this.#scope = scope;
    this.#hooks = hooks;
    this.#first = hooks.first;
  }

  protected override _next(value: T): void {
    const outer = swapScope(this.#scope);
    try {
      if (this.#first === undefined || this.#hooked(this.#takeFirst())) super._next(value);
    } finally {
      swapScope(outer);
    }
  }

  protected override _error(error: unknown): void {
    const { failed } = this.#hooks;
    runInScope(this.#scope, () => {
      if (failed === undefined || this.#hooked(() => failed(error))) super._error(error);
    });
  }

  protected override _complete(): void {
    runInScope(this.#scope, () => {
      if (this.#hooked(this.#hooks.completed)) super._complete();
    });
  }

  #takeFirst(): (() => void) | undefined {
    const first = this.#first;
    this.#first = undefined;
    return first;
  }

  /** Whether to go on: a hook has thrown otherwise, and the one downstream has been told. */
  #hooked(hook: (() => void) | undefined): boolean {
    try {
      hook?.();
      return true;
    } catch (error) {
      super._error(error);
      return false;
    }
  }
}

/** Delivers at home besides. A class of its own, so that nothing else pays for it. */
class HomeSubscriber<T> extends ScopedSubscriber<T> {
  readonly #home: Home;
  readonly #deliver = (value: T): void => super._next(value);

  constructor(destination: Subscriber<T>, scope: CallScope | undefined, hooks: ScopedHooks, home: Home) {
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
