import type { CallObserver, CallStart, ObservedCall } from '../core/CallObserver.ts';

/**
 * Several observers as one: each hears everything, in order. Only the first that has something to do about a call alone
 * does it.
 */
export function composeObservers(observers: readonly CallObserver[]): CallObserver {
  return {
    onCall: (call: CallStart): ObservedCall | undefined => {
      let observed: ObservedCall | undefined;
      for (const { onCall } of observers) {
        const own = (onCall as ((start: CallStart) => ObservedCall | undefined) | undefined)?.(call);
        observed ??= own;
      }
      return observed;
    },
    onEvent: (event) => {
      for (const { onEvent } of observers) onEvent?.(event);
    },
  };
}
