import { Observable } from 'rxjs';
import { startTimer } from '../core/runtime.ts';
import type { Runtime } from '../core/runtime.ts';

/** Emits once after `delayMs` and completes. Unsubscribe stops the timer in the same tick. */
export function after(runtime: Runtime, delayMs: number): Observable<void> {
  // Hand-written: RxJS's `timer` takes a whole scheduler, and fires at once for waits above 2^31-1 ms.
  return new Observable((subscriber) =>
    startTimer(runtime, delayMs, () => {
      subscriber.next();
      subscriber.complete();
    }),
  );
}
