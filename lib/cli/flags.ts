import { parseArgs } from 'node:util';
import type { ParseArgsConfig } from 'node:util';
import { SluiceError } from '../core/errors.ts';

type FlagOptions = NonNullable<ParseArgsConfig['options']>;
type Values<O extends FlagOptions> = ReturnType<
  typeof parseArgs<{ options: O; strict: true; allowPositionals: boolean; allowNegative: true }>
>['values'];

export interface Flags<O extends FlagOptions> {
  readonly values: Values<O>;
  readonly positionals: readonly string[];
}

/**
 * Reads flags; `--no-x` switches a flag off. At most `maxPositionals` words may stand beside them.
 * @throws SluiceError `invalid_option`, in one sentence.
 */
export function parseFlags<const O extends FlagOptions>(
  args: readonly string[],
  options: O,
  maxPositionals = 0,
): Flags<O> {
  try {
    const { values, positionals } = parseArgs({
      args: [...args],
      options,
      strict: true,
      allowPositionals: true,
      allowNegative: true,
    });
    const [extra] = positionals.slice(maxPositionals);
    if (extra !== undefined) throw wrongFlag(`there is no use for "${extra}" here`);
    return { values: values, positionals };
  } catch (error) {
    if (error instanceof SluiceError) throw error;
    throw wrongFlag(sentenceOf(error));
  }
}

/** @throws SluiceError `invalid_option` unless the flag was left out or is a number that `check` accepts. */
export function numberFlag(
  name: string,
  text: string | undefined,
  check?: (option: string, value: number) => number,
): number | undefined {
  if (text === undefined) return undefined;
  const value = text.trim() === '' ? Number.NaN : Number(text);
  if (Number.isNaN(value)) throw wrongFlag(`--${name} must be a number, got "${text}"`);
  return check === undefined ? value : check(`--${name}`, value);
}

export function wrongFlag(sentence: string): SluiceError {
  return new SluiceError('invalid_option', sentence);
}

/** Node's own messages go on about positional arguments. */
function sentenceOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  const unknown = /^Unknown option '([^']*)'/.exec(message);
  if (unknown !== null) return `there is no flag ${unknown[1] ?? ''}`;
  const valueless = /^Option '(?:-\w, )?(--[^ ']*)[^']*' argument missing/.exec(message);
  if (valueless !== null) return `${valueless[1] ?? ''} needs a value`;
  return (message.split('\n')[0] ?? message).replace(/\.$/, '');
}
