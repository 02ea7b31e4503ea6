import type { Observer } from 'rxjs';
import type { CallScope } from './CallScope.ts';

let current: CallScope | undefined;

/** The frame that the caller's subscription runs in. Read it while being subscribed and never later. */
export function currentScope(): CallScope | undefined {
  return current;
}

/** Runs `work`, a subscription upwards, in `scope`. `undefined` means outside every call. */
export function runInScope<R>(scope: CallScope | undefined, work: () => R): R {
  const outer = current;
  current = scope;
  try {
    return work();
  } finally {
    current = outer;
  }
}

/**
 * Sets the frame and returns the one before, which the caller must set again in a `finally`. For hot paths only, where
 * the closure that {@link runInScope} needs would be made for every value.
 */
export function swapScope(scope: CallScope | undefined): CallScope | undefined {
  const outer = current;
  current = scope;
  return outer;
}

/**
 * An observer that passes everything to `observer` in `scope`: the frame in which the one downstream subscribed. Without
 * it a synchronous source would run the consumer's code inside the attempt's frame.
 */
export function deliverIn<T>(scope: CallScope | undefined, observer: Observer<T>): Observer<T> {
  return new Delivery(scope, observer);
}

/** A class, as every attempt has one. */
class Delivery<T> implements Observer<T> {
  readonly #scope: CallScope | undefined;
  readonly #observer: Observer<T>;

  constructor(scope: CallScope | undefined, observer: Observer<T>) {
    this.#scope = scope;
    this.#observer = observer;
  }

  next(value: T): void {
    const outer = swapScope(this.#scope);
    try {
      this.#observer.next(value);
    } finally {
      swapScope(outer);
    }
  }

  error(error: unknown): void {
    const outer = swapScope(this.#scope);
    try {
      this.#observer.error(error);
    } finally {
      swapScope(outer);
    }
  }

  complete(): void {
    const outer = swapScope(this.#scope);
    try {
      this.#observer.complete();
    } finally {
      swapScope(outer);
    }
  }
}
