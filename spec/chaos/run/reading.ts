import { Observable } from 'rxjs';
import { SluiceError } from '../../../lib/index.ts';

/**
 * What somebody reads who is outside: values until the promise settles. Aborting `signal` and unsubscribing abort that of
 * the reader in the same tick.
 */
export function reading(
  signal: AbortSignal,
  read: (signal: AbortSignal, next: (value: unknown) => void) => Promise<void>,
): Observable<unknown> {
  // Hand-written: a promise that ends in either of three ways, and is aborted from outside.
  return new Observable((subscriber) => {
    const leaving = new AbortController();
    const leave = (): void => subscriber.error(new SluiceError('aborted', 'the client has left'));
    signal.addEventListener('abort', leave);
    subscriber.add(() => {
      signal.removeEventListener('abort', leave);
      leaving.abort();
    });
    read(leaving.signal, (value) => subscriber.next(value)).then(
      () => subscriber.complete(),
      (error: unknown) => subscriber.error(error),
    );
  });
}

/** A failure as it was told outside: the code is that of the provider where that has failed, and is not looked at. */
export function failureTold(told: unknown): SluiceError {
  return new SluiceError('server_error', JSON.stringify(told));
}
