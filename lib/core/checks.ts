import { invalidOption } from './errors.ts';

// Each check says what it accepts, so that NaN fails it, and null and '1' too: not every caller is type-checked.

/** @throws SluiceError `invalid_option` unless `value` is finite and above 0. */
export function positive(option: string, value: number): number {
  if (Number.isFinite(value) && value > 0) return value;
  throw invalidOption(option, 'finite and above 0', value);
}

/** @throws SluiceError `invalid_option` unless `value` is above 0; `Infinity` means off. */
export function positiveOrInfinity(option: string, value: number): number {
  if (typeof value === 'number' && value > 0) return value;
  throw invalidOption(option, 'above 0, or Infinity', value);
}

/** @throws SluiceError `invalid_option` unless `value` is finite and 0 or more. */
export function zeroOrMore(option: string, value: number): number {
  if (Number.isFinite(value) && value >= 0) return value;
  throw invalidOption(option, 'finite and 0 or more', value);
}

/** @throws SluiceError `invalid_option` unless `value` is 0 or more; `Infinity` means without a bound. */
export function zeroOrInfinity(option: string, value: number): number {
  if (typeof value === 'number' && value >= 0) return value;
  throw invalidOption(option, '0 or more, or Infinity', value);
}

/** @throws SluiceError `invalid_option` unless `value` is a whole number of at least `least`. */
export function wholeNumber(option: string, value: number, least = 1): number {
  if (Number.isSafeInteger(value) && value >= least) return value;
  throw invalidOption(option, `a whole number of at least ${least}`, value);
}

/** @throws SluiceError `invalid_option` unless `value` is a whole number of at least 1; `Infinity` means without a bound. */
export function wholeOrInfinity(option: string, value: number): number {
  return value === Infinity ? value : wholeNumber(option, value);
}

/** @throws SluiceError `invalid_option` unless `value` is from 0 to 1. */
export function ratio(option: string, value: number): number {
  if (typeof value === 'number' && value >= 0 && value <= 1) return value;
  throw invalidOption(option, 'from 0 to 1', value);
}

/** @throws SluiceError `invalid_option` unless `value` is one of `accepted`. */
export function oneOf<T extends string>(option: string, value: T, accepted: readonly T[]): T {
  if (accepted.includes(value)) return value;
  throw invalidOption(option, `one of ${accepted.join(', ')}`, value);
}

/** @throws SluiceError `invalid_option` unless `value` is a string with something in it. */
export function nonEmpty(option: string, value: string): string {
  if (typeof value === 'string' && value !== '') return value;
  throw invalidOption(option, 'a string that is not empty', value);
}
