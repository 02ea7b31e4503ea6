import { oneOf, wholeNumber, zeroOrMore } from '../core/checks.ts';

/** Names of the AWS Architecture Blog, see {@link backoff}. */
export type Jitter = 'full' | 'equal' | 'decorrelated' | 'none';

export const JITTERS: readonly Jitter[] = ['full', 'equal', 'decorrelated', 'none'];

export interface BackoffOptions {
  /** Ceiling of the first wait, doubled with each further one. Milliseconds, finite, 0 or more. Default: 250. */
  readonly baseMs?: number | undefined;
  /** No ceiling is above this. Milliseconds, finite, 0 or more. Default: 8,000. */
  readonly capMs?: number | undefined;
  /** How a wait is drawn below its ceiling. Default: `'full'`. */
  readonly jitter?: Jitter | undefined;
}

export const BACKOFF_DEFAULTS: Readonly<{ baseMs: number; capMs: number; jitter: Jitter }> = Object.freeze({
  baseMs: 250,
  capMs: 8000,
  jitter: 'full',
});

/** 2 ** 1024 is Infinity, and Infinity times a base of 0 is NaN. */
const LARGEST_EXPONENT = 1023;

/** Callers with the same hint come back over this part of it. */
const HINT_SPREAD = 0.1;

/**
 * The wait before a retry, without regard to what the provider asked for. With `ceiling = min(capMs, baseMs * 2 ** (retry - 1))`:
 *
 * - `full`: uniform in [0, ceiling)
 * - `equal`: ceiling / 2 + uniform in [0, ceiling / 2)
 * - `decorrelated`: uniform in [baseMs, 3 * previousMs), both ends capped
 * - `none`: the ceiling
 *
 * Capped before the jitter: the source caps a decorrelated wait after it, which bunches long outages up at the cap.
 * Always finite and at most `capMs`.
 *
 * Source: https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/
 *
 * @param retry - Number of the retry, from 1.
 * @param random - Uniform in [0, 1).
 * @param previousMs - The wait before the retry before this one. Only `decorrelated` reads it. Default: `baseMs`.
 * @returns Milliseconds, with a fraction.
 * @throws SluiceError `invalid_option` if an option or `retry` is out of range.
 *
 * @example
 * ```ts
 * import { backoff } from 'sluice';
 *
 * console.log(backoff(3, { baseMs: 250, capMs: 8000, jitter: 'none' }, Math.random)); // => 1000
 * ```
 */
export function backoff(retry: number, options: BackoffOptions, random: () => number, previousMs?: number): number {
  const baseMs = zeroOrMore('baseMs', options.baseMs ?? BACKOFF_DEFAULTS.baseMs);
  const capMs = zeroOrMore('capMs', options.capMs ?? BACKOFF_DEFAULTS.capMs);
  const jitter = oneOf('jitter', options.jitter ?? BACKOFF_DEFAULTS.jitter, JITTERS);
  const exponent = Math.min(wholeNumber('retry', retry) - 1, LARGEST_EXPONENT);
  const ceilingMs = Math.min(capMs, baseMs * 2 ** exponent);

  switch (jitter) {
    case 'full':
      return random() * ceilingMs;
    case 'equal':
      return ceilingMs / 2 + random() * (ceilingMs / 2);
    case 'decorrelated': {
      const leastMs = Math.min(capMs, baseMs);
      const mostMs = Math.min(capMs, Math.max(leastMs, 3 * zeroOrMore('previousMs', previousMs ?? baseMs)));
      return leastMs + random() * (mostMs - leastMs);
    }
    case 'none':
      return ceilingMs;
  }
}

/**
 * A wait that is no shorter than `hintMs`: `max(ownMs, hintMs)`, and on top of that up to a tenth of the hint, at least
 * `baseMs` and at most `capMs`. So callers that got one hint in one instant come back at instants of their own, and none
 * of them early. A hint of 0 asks for nothing, and `jitter: 'none'` adds nothing.
 *
 * @param ownMs - What {@link backoff} drew.
 * @param hintMs - What the provider asked for. Finite, 0 or more.
 * @param random - Uniform in [0, 1).
 * @returns Milliseconds.
 */
export function notBefore(ownMs: number, hintMs: number, options: BackoffOptions, random: () => number): number {
  if (hintMs === 0) return ownMs;
  // Rounded up: timers cut fractions off.
  const waitMs = Math.max(ownMs, Math.ceil(hintMs));
  if (options.jitter === 'none') return waitMs;
  const { baseMs = BACKOFF_DEFAULTS.baseMs, capMs = BACKOFF_DEFAULTS.capMs } = options;
  return waitMs + random() * Math.min(capMs, Math.max(baseMs, hintMs * HINT_SPREAD));
}
