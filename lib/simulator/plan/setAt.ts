import type { PolicyPath } from '../../policy/PolicyProblem.ts';

type Fields = Readonly<Record<string, unknown>>;

/** A copy of `value` with `member` at `path`; objects that are not there are made, and members that are `undefined` go. */
export function setAt<T>(value: T, path: PolicyPath, member: unknown): T {
  return set(value, path, member) as T;
}

function set(value: unknown, [step, ...rest]: PolicyPath, member: unknown): unknown {
  if (step === undefined) return member;
  if (Array.isArray(value)) {
    return (value as readonly unknown[]).map((item, i) => (i === step ? set(item, rest, member) : item));
  }
  const fields: Fields = typeof value === 'object' && value !== null ? (value as Fields) : {};
  const inner = set(Object.hasOwn(fields, step) ? fields[step] : undefined, rest, member);
  if (inner === undefined) return Object.fromEntries(Object.entries(fields).filter(([key]) => key !== String(step)));
  return { ...fields, [step]: inner };
}
