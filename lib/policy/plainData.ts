import { problemOf, quoted } from './PolicyProblem.ts';
import type { PolicyPath, PolicyProblem } from './PolicyProblem.ts';
import { shown } from './shown.ts';

const DEEPEST = 64;
const MOST_VALUES = 200_000;

export type Plain = null | boolean | number | string | readonly Plain[] | { readonly [key: string]: Plain };

/** A copy of `value` that JSON could carry, but for NaN; `undefined` is left out and `Infinity` becomes `null`. */
export function plainData(value: unknown): { readonly data: Plain; readonly problems: readonly PolicyProblem[] } {
  const copier = new Copier();
  return { data: copier.copy(value, []) ?? null, problems: copier.problems };
}

class Copier {
  readonly problems: PolicyProblem[] = [];
  /** Objects that are being copied: whoever holds one of them holds itself. */
  readonly #open = new Set<object>();
  #values = 0;

  copy(value: unknown, path: PolicyPath): Plain | undefined {
    // JSON knows neither.
    if (typeof value === 'number') return value === Infinity ? null : value === 0 ? 0 : value;
    if (value === undefined || value === null || typeof value === 'boolean' || typeof value === 'string') return value;
    if (typeof value !== 'object') return this.#wrong(path, 'plain data', shown(value, false));
    if (this.#open.has(value)) return this.#wrong(path, 'plain data', 'an object that holds itself');
    if (path.length >= DEEPEST) return this.#wrong(path, `at most ${DEEPEST} levels`, 'more');
    this.#open.add(value);
    try {
      return this.#members(value, path);
    } catch {
      // A getter, or a proxy, that throws.
      return this.#wrong(path, 'plain data', 'an object that cannot be read');
    } finally {
      this.#open.delete(value);
    }
  }

  #members(value: object, path: PolicyPath): Plain | undefined {
    if (Array.isArray(value)) {
      return Array.from(value, (item: unknown, i) =>
        this.#full(path) ? null : (this.copy(item, [...path, i]) ?? null),
      );
    }
    if (Object.prototype.toString.call(value) !== '[object Object]') {
      return this.#wrong(path, 'plain data', 'an object of a class');
    }
    const members: [string, Plain][] = [];
    for (const [key, member] of Object.entries(value)) {
      if (this.#full(path)) break;
      if (key === '__proto__') {
        this.#wrong([...path, key], 'another name', quoted(key));
        continue;
      }
      const copied = this.copy(member, [...path, key]);
      if (copied !== undefined) members.push([key, copied]);
    }
    return Object.fromEntries(members);
  }

  /** Shared members, such as aliases of YAML, can make a small text a very large tree. */
  #full(path: PolicyPath): boolean {
    this.#values++;
    if (this.#values === MOST_VALUES) this.#wrong(path, `at most ${MOST_VALUES} values`, 'more');
    return this.#values >= MOST_VALUES;
  }

  #wrong(path: PolicyPath, expected: string, got: string): undefined {
    this.problems.push(problemOf(path, expected, got));
  }
}
