import type { CallObserver } from '../core/CallObserver.ts';

/** Several observers as one: each hears everything in order, and attempts are sent inside all of them. */
export function composeObservers(observers: readonly CallObserver[]): CallObserver {
  const [only, ...others] = observers;
  if (only !== undefined && others.length === 0) return only;
  return {
    onCall: (call) => {
      for (const observer of observers) observer.onCall?.(call);
    },
    onEvent: (event) => {
      for (const observer of observers) observer.onEvent?.(event);
    },
    around: (attempt, work) => within(observers, 0, attempt, work),
  };
}

function within<R>(
  observers: readonly CallObserver[],
  at: number,
  attempt: { readonly callId: string; readonly attempt: number },
  work: () => R,
): R {
  const observer = observers[at];
  if (observer === undefined) return work();
  const inner = (): R => within(observers, at + 1, attempt, work);
  return observer.around === undefined ? inner() : observer.around(attempt, inner);
}
