import { quoted } from './PolicyProblem.ts';
import type { PolicyPath } from './PolicyProblem.ts';

const SECRET_NAME = /(?:key|keys|secret|password|token|authorization|url|headers)$/i;
const SECRET_LOOK = /^(?:sk|pk|rk|gsk|xai|aiza|bearer|basic)\b/i;
const LONGEST_SHOWN = 40;

/** Whether what stands at `path` may be a key or an address. */
export function isSecret(path: PolicyPath): boolean {
  return path.some((step) => typeof step === 'string' && SECRET_NAME.test(step));
}

/** A value for a message: short texts as they are, unless they may be secret; of everything else kind and size. */
export function shown(value: unknown, secret: boolean): string {
  if (typeof value === 'string') {
    if (value === '') return 'an empty string';
    const hidden = secret || value.length > LONGEST_SHOWN || SECRET_LOOK.test(value) || value.includes('://');
    return hidden ? `a string of ${value.length} characters` : quoted(value);
  }
  if (value === undefined) return 'nothing';
  if (value === null || typeof value === 'number' || typeof value === 'boolean') return String(value);
  if (Array.isArray(value)) return `a list of ${value.length}`;
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

/** Whether the name of a setting may be a key that stands in the wrong place. */
export function looksSecret(name: string): boolean {
  return SECRET_LOOK.test(name) || name.length > LONGEST_SHOWN;
}

/** A name that is not known here, for a message. */
export function shownName(name: string, secret: boolean): string {
  return secret || looksSecret(name) ? `a name of ${name.length} characters` : quoted(name);
}
