import { Subscriber } from 'rxjs';
import type { CallScope } from '../core/CallScope.ts';
import type { Home } from '../core/CallObserver.ts';
import { runInScope, swapScope } from '../core/currentScope.ts';

// Every operator of RxJS 7 is such a subclass, but the one it makes them with is not exported. Without it a synchronous
// source cannot be stopped; the peer range ends before RxJS 8.
/* eslint-disable rxjs-x/no-subclass, @typescript-eslint/no-deprecated */
/** Delivers in the frame and the context in which the one downstream subscribed. */
export class HomeSubscriber<T> extends Subscriber<T> {
  readonly #scope: CallScope | undefined;
  readonly #home: Home;
  readonly #ended: (error: unknown, failed: boolean) => void;
  readonly #deliver = (value: T): void => {
    const outer = swapScope(this.#scope);
    try {
      super._next(value);
    } finally {
      swapScope(outer);
    }
  };

  /** `ended`: hears the end of the source before it is delivered. */
  constructor(
    destination: Subscriber<T>,
    scope: CallScope | undefined,
    home: Home,
    ended: (error: unknown, failed: boolean) => void,
  ) {
    super(destination);
    this.#scope = scope;
    this.#home = home;
    this.#ended = ended;
  }

  protected override _next(value: T): void {
    this.#home(this.#deliver, value);
  }

  protected override _error(error: unknown): void {
    this.#ended(error, true);
    this.#home((failure) => runInScope(this.#scope, () => super._error(failure)), error);
  }

  protected override _complete(): void {
    this.#ended(undefined, false);
    this.#home(() => runInScope(this.#scope, () => super._complete()), undefined);
  }
}
