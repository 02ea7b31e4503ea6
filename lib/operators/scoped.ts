import { Observable, Subscriber } from 'rxjs';
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
  hooks: ScopedHooks = {},
): Observable<T> {
  // Hand-written: no operator of RxJS sets something around the subscription and around each notification.
  return new Observable<T>((subscriber) => {
    hooks.before?.((error) => runInScope(downward, () => subscriber.error(error)));
    if (subscriber.closed) return;
    const inner = new ScopedSubscriber(subscriber, downward);
    runInScope(upward, () => source.subscribe(inner));
    hooks.subscribed?.(inner.closed);
  });
}

export interface ScopedHooks {
  /** Gets a function that ends the stream with an error from outside. Called before the source is subscribed to. */
  readonly before?: ((fail: (error: unknown) => void) => void) | undefined;
  /** The source has been subscribed to; `ended` if it was synchronous. */
  readonly subscribed?: ((ended: boolean) => void) | undefined;
}

// Every operator of RxJS 7 is such a subclass, but the one it makes them with is not exported. Without it a synchronous
// source cannot be stopped, or each value passes one operator more; the peer range ends before RxJS 8.
/* eslint-disable rxjs-x/no-subclass, @typescript-eslint/no-deprecated */
/** A Subscriber of its own, so that a synchronous source sees at once when the one downstream has had enough. */
class ScopedSubscriber<T> extends Subscriber<T> {
  readonly #scope: CallScope | undefined;

  constructor(destination: Subscriber<T>, scope: CallScope | undefined) {
    super(destination);
    this.#scope = scope;
  }

  protected override _next(value: T): void {
    const outer = swapScope(this.#scope);
    try {
      super._next(value);
    } finally {
      swapScope(outer);
    }
  }

  protected override _error(error: unknown): void {
    runInScope(this.#scope, () => super._error(error));
  }

  protected override _complete(): void {
    runInScope(this.#scope, () => super._complete());
  }
}
