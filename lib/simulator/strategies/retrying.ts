import { defer, retry, tap, throwError } from 'rxjs';
import type { Observable } from 'rxjs';
import { isSluiceError } from '../../core/errors.ts';
import type { Runtime } from '../../core/runtime.ts';
import { after } from '../../operators/after.ts';

export interface Retrying {
  readonly attempts: number;
  /** `failures` counts from 1. Nothing: it is given up. */
  readonly waitMs: (failures: number, hintMs: number | undefined) => number | undefined;
}

const RETRIED: ReadonlySet<number> = new Set([408, 409, 429, 500, 502, 503, 504, 529]);

/** Tries again what failed before its first value. */
export function retrying<T>(source$: Observable<T>, runtime: Runtime, { attempts, waitMs }: Retrying): Observable<T> {
  return defer(() => {
    let begun = false;
    return source$.pipe(
      tap(() => (begun = true)),
      retry({
        count: attempts - 1,
        delay: (error: unknown, failures) => {
          if (begun || !isRetried(error)) return throwError(() => error);
          const pauseMs = waitMs(failures, isSluiceError(error) ? error.retryAfterMs : undefined);
          return pauseMs === undefined ? throwError(() => error) : after(runtime, pauseMs);
        },
      }),
    );
  });
}

/** By the status alone, as the clients do it that are compared with. */
function isRetried(error: unknown): boolean {
  if (!isSluiceError(error)) return false;
  return error.status === undefined ? error.code === 'connection' : RETRIED.has(error.status);
}
