import type { ErrorCode } from './errors.ts';

const BRAND: unique symbol = Symbol.for('sluice.restart') as never;

/** Stands in a stream where the answer starts over: drop what came before it. */
export interface Restart {
  readonly kind: 'restart';
  /** Why the answer before it ended. */
  readonly code: ErrorCode;
  /** The model that answers now, where it is known. */
  readonly model: string | undefined;
}

export function restart(code: ErrorCode, model: string | undefined): Restart {
  return Object.defineProperty({ kind: 'restart' as const, code, model }, BRAND, { value: true });
}

/** Whether `value` is a {@link Restart}, and not a chunk. */
export function isRestart(value: unknown): value is Restart {
  return typeof value === 'object' && value !== null && (value as Record<PropertyKey, unknown>)[BRAND] === true;
}
