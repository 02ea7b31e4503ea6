import { catchError, defer, tap } from 'rxjs';
import type { Observable } from 'rxjs';
import { currentScope } from '../core/currentScope.ts';
import { isSluiceError } from '../core/errors.ts';
import type { ErrorCode } from '../core/errors.ts';
import { scoped } from '../operators/scoped.ts';

/** The account or key is at its limit, which says nothing of another one. The admission leaves it alone meanwhile. */
const OF_ONE_ACCOUNT: ReadonlySet<ErrorCode> = new Set<ErrorCode>(['rate_limited', 'quota_exhausted']);

/**
 * `attempt$`, and again at once where one of several deployments has come to its limit and nothing was emitted: the
 * admission then takes another. At most once for each of the others; `maxAttempts` bounds the whole call.
 */
export function acrossDeployments<T>(attempt$: Observable<T>, deployments: number, maxAttempts: number): Observable<T> {
  return defer(() => {
    const scope = currentScope();
    let emitted = false;
    const turn = (others: number): Observable<T> =>
      scoped(attempt$, next(), scope).pipe(
        tap(() => (emitted = true)),
        catchError((failure: unknown) => {
          const moves = isSluiceError(failure) && OF_ONE_ACCOUNT.has(failure.code);
          const spent = (scope?.call.dispatched ?? 0) >= maxAttempts;
          if (!moves || emitted || spent || others === 0) throw failure;
          return turn(others - 1).pipe(
            catchError((later: unknown) => {
              // No other one could be asked: what the first one said tells more.
              throw isSluiceError(later) && later.code === 'circuit_open' ? failure : later;
            }),
          );
        }),
      );
    const next = (): typeof scope => (scope && scope.call.dispatched >= scope.attempt ? scope.forNextAttempt() : scope);
    return turn(deployments - 1);
  });
}
