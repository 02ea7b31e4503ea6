import { problemOf } from './PolicyProblem.ts';
import type { PolicyPath, PolicyProblem } from './PolicyProblem.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

export interface FilledIn {
  readonly value: unknown;
  readonly problems: readonly PolicyProblem[];
  /** Texts that hold something of the environment: not to be shown. */
  readonly filled: readonly PolicyPath[];
}

/** `$${` is a literal `${`; then `${NAME}` and `${NAME:-default}`; then what was meant to be one of them. */
const REFERENCE = /\$\$\{|\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}|\$\{/g;

/** Puts variables into all texts that `value` holds. Names of settings are left as they are. */
export function fillIn(value: unknown, env: Environment): FilledIn {
  const problems: PolicyProblem[] = [];
  const filled: PolicyPath[] = [];

  const inText = (text: string, path: PolicyPath): string => {
    let found = false;
    const result = text.replace(REFERENCE, (whole, name: string | undefined, standard: string | undefined) => {
      if (whole === '$${') return '${';
      found = true;
      if (name === undefined) {
        problems.push(problemOf(path, '${NAME} or ${NAME:-default}, or $${ for the characters themselves', '"${"'));
        return '';
      }
      const set = env[name];
      // As in a shell: the default stands in for an empty variable too.
      const text = standard === undefined ? set : set === undefined || set === '' ? standard : set;
      if (text === undefined) problems.push(problemOf(path, `the environment variable ${name} to be set`, 'nothing'));
      return text ?? '';
    });
    if (found) filled.push(path);
    return result;
  };
  const inValue = (inner: unknown, path: PolicyPath): unknown => {
    if (typeof inner === 'string') return inText(inner, path);
    if (typeof inner !== 'object' || inner === null) return inner;
    if (Array.isArray(inner)) return inner.map((item: unknown, i) => inValue(item, [...path, i]));
    return Object.fromEntries(Object.entries(inner).map(([key, member]) => [key, inValue(member, [...path, key])]));
  };
  return { value: inValue(value, []), problems, filled };
}
