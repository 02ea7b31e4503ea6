import type { Observable } from 'rxjs';
import { isSluiceError } from '../../lib/core/errors.ts';
import type { SluiceError } from '../../lib/core/errors.ts';

export interface Recording<T> {
  unsubscribe(): void;
  readonly values: readonly T[];
  /** `undefined` while it runs, and after an unsubscribe. */
  readonly ended: 'complete' | 'error' | undefined;
  /** Throws unless it failed with a SluiceError. */
  readonly error: SluiceError;
  /** Settles at the end, however it comes. */
  readonly end: Promise<void>;
}

/** Subscribes, and keeps what comes. */
export function record<T>(source: Observable<T>, onNext?: (value: T) => void): Recording<T> {
  const values: T[] = [];
  let ended: 'complete' | 'error' | undefined;
  let error: unknown;
  let settle: () => void;
  const end = new Promise<void>((resolve) => (settle = resolve));
  const subscription = source.subscribe({
    next: (value) => {
      values.push(value);
      onNext?.(value);
    },
    error: (thrown: unknown) => {
      ended = 'error';
      error = thrown;
      settle();
    },
    complete: () => {
      ended = 'complete';
      settle();
    },
  });
  return {
    unsubscribe: () => subscription.unsubscribe(),
    values,
    get ended() {
      return ended;
    },
    get error() {
      if (isSluiceError(error)) return error;
      throw new Error(`expected a SluiceError, got ${String(error)}`, { cause: error });
    },
    end,
  };
}
