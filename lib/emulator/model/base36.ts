const DIGITS = '0123456789abcdefghijklmnopqrstuvwxyz';

/** A whole number of 0 or more as `toString(36)` writes it, in a fraction of the time. */
export function base36(value: number): string {
  let text = '';
  let left = value;
  do {
    text = (DIGITS[left % 36] as string) + text;
    left = Math.floor(left / 36);
  } while (left > 0);
  return text;
}
