import type { SluiceError } from './errors.ts';

/**
 * How something acquired came to its end. `dropped` is the caller's own cancel: it gives back what was held and is
 * evidence for nothing. A refusal of our own is never a `failure`: whoever refused drops what it holds.
 */
export type Outcome =
  | { readonly kind: 'success' }
  | { readonly kind: 'failure'; readonly error: SluiceError }
  | { readonly kind: 'dropped'; readonly dispatched: boolean };

export const SUCCESS: Outcome = Object.freeze({ kind: 'success' });
export const DROPPED: Outcome = Object.freeze({ kind: 'dropped', dispatched: true });
export const DROPPED_UNSENT: Outcome = Object.freeze({ kind: 'dropped', dispatched: false });

/** A local refusal or cancel below is `dropped`; everything else is a failure. */
export function outcomeOf(error: SluiceError, dispatched: boolean): Outcome {
  if (error.source === 'upstream') return { kind: 'failure', error };
  return dispatched ? DROPPED : DROPPED_UNSENT;
}
