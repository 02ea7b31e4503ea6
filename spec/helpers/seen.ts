import type { Observable, Subscription } from 'rxjs';

/** Subscribes, and lists what comes: values, then `'|'` or the error itself. */
export function seen(source: Observable<unknown>): { readonly seen: unknown[]; readonly subscription: Subscription } {
  const list: unknown[] = [];
  const subscription = source.subscribe({
    next: (value) => list.push(value),
    error: (error: unknown) => list.push(error),
    complete: () => list.push('|'),
  });
  return { seen: list, subscription };
}
