import type { Policy } from './Policy.ts';
import type { PolicyPath } from './PolicyProblem.ts';
import { isSecret } from './shown.ts';

/** The policy as it can be printed: keys and addresses are replaced. */
export function redacted(policy: Policy): Readonly<Record<string, unknown>> {
  return redact(policy, []) as Readonly<Record<string, unknown>>;
}

function redact(value: unknown, path: PolicyPath): unknown {
  if (typeof value === 'string') return isSecret(path) && path.at(-1) !== 'tenant' ? '[redacted]' : value;
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((item: unknown, i) => redact(item, [...path, i]));
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, redact(member, [...path, key])]));
}
