import { z } from 'zod';
import { closest } from './closest.ts';
import { elsewhere } from './elsewhere.ts';
import { problemOf } from './PolicyProblem.ts';
import type { PolicyPath, PolicyProblem } from './PolicyProblem.ts';
import { isSecret, looksSecret, shown, shownName } from './shown.ts';

type Issue = z.core.$ZodIssue;

/**
 * What does not fit the schema, each by its path, and what is left when it is taken away, if that fits: so that faults
 * between settings are found in the same run.
 */
export interface SchemaProblems<T> {
  readonly problems: readonly PolicyProblem[];
  readonly rest: T | undefined;
  /** What was taken away. */
  readonly removed: readonly PolicyPath[];
  /** Those of names that there are not: what they hold can have no part in it. */
  readonly misnamed: ReadonlySet<PolicyProblem>;
}

/** A setting may hide others: an object that has lost a setting it needs is taken away in the next round. */
const ROUNDS = 4;

/** `raw`: what `data` was made of, of which problems show what came. */
export function schemaProblems<T>(schema: z.ZodType<T>, data: unknown, raw: unknown): SchemaProblems<T> {
  const problems: PolicyProblem[] = [];
  const removed: PolicyPath[] = [];
  const misnamed = new Set<PolicyProblem>();
  let rest = data;
  for (let round = 0; round < ROUNDS; round++) {
    const parsed = schema.safeParse(rest);
    if (parsed.success) return { problems, rest: parsed.data, removed, misnamed };
    const found = parsed.error.issues.flatMap((issue) => problemsOf(issue, [], { schema, raw, misnamed }));
    if (round === 0) problems.push(...found);
    for (const { path } of found) {
      const gone = removable(rest, path);
      removed.push(gone);
      rest = without(rest, gone);
    }
  }
  return { problems, rest: undefined, removed, misnamed };
}

interface Reading {
  readonly schema: z.ZodType;
  readonly raw: unknown;
  readonly misnamed: Set<PolicyProblem>;
}

function problemsOf(issue: Issue, outer: PolicyPath, reading: Reading): PolicyProblem[] {
  const path = [...outer, ...issue.path] as PolicyPath;
  const secret = isSecret(path);
  if (issue.code === 'unrecognized_keys') {
    const known = issue.message.split(', ');
    return issue.keys.map((key) => {
      const hidden = secret || looksSecret(key);
      const suggestion = closest(key, known);
      const problem = problemOf(hidden ? path : [...path, key], `one of ${known.join(', ')}`, shownName(key, secret), {
        suggestion,
        belongsAt: hidden || suggestion !== undefined ? undefined : placeOf(key, path, reading.schema),
      });
      reading.misnamed.add(problem);
      return problem;
    });
  }
  if (issue.code === 'invalid_union') {
    // Of the forms that are accepted, the one that it is of the right kind for tells more.
    const near = issue.errors.find((issues) => issues.every((inner) => inner.path.length > 0 || hasKeys(inner)));
    if (near) return near.flatMap((inner) => problemsOf(inner, path, reading));
  }
  const value = at(reading.raw, path);
  const suggestion = typeof value === 'string' ? closest(value, valuesOf(issue)) : undefined;
  const expected = issue.code === 'invalid_key' ? (issue.issues[0]?.message ?? issue.message) : issue.message;
  const got = issue.code === 'invalid_key' ? shownName(String(path.at(-1)), secret) : shown(value, secret);
  return [problemOf(path, expected, got, { suggestion })];
}

const plainSchemas = new WeakMap<z.ZodType, object>();

/** Where a setting belongs that was written at the wrong place. */
function placeOf(key: string, holder: PolicyPath, schema: z.ZodType): string | undefined {
  const plain = plainSchemas.get(schema) ?? z.toJSONSchema(schema, { io: 'input' });
  plainSchemas.set(schema, plain);
  return elsewhere(plain, holder, key);
}

/** All that may stand there, where that is a list of words. */
function valuesOf(issue: Issue): readonly string[] {
  if (issue.code === 'invalid_value') return issue.values.map(String);
  // By the word that tells the forms apart.
  if (issue.code === 'invalid_union' && 'options' in issue) return (issue.options ?? []).map(String);
  return [];
}

function hasKeys(issue: Issue): boolean {
  return issue.code === 'unrecognized_keys';
}

/** What stands at `path`; `undefined` where nothing does. */
export function at(value: unknown, path: PolicyPath): unknown {
  let found = value;
  for (const step of path) {
    if (typeof found !== 'object' || found === null || !Object.hasOwn(found, step)) return undefined;
    found = (found as Record<string | number, unknown>)[step];
  }
  return found;
}

/** The path, or the nearest thing around it that can be left out: a list is one setting, and nothing cannot be. */
function removable(value: unknown, path: PolicyPath): PolicyPath {
  const inner = path.at(-1);
  if (inner === undefined) return path;
  if (typeof inner === 'number' || at(value, path) === undefined) return removable(value, path.slice(0, -1));
  return path;
}

function without(value: unknown, [step, ...rest]: PolicyPath): unknown {
  if (step === undefined) return {};
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((item: unknown, i) => (i === step ? without(item, rest) : item));
  const entries = Object.entries(value);
  if (rest.length === 0) return Object.fromEntries(entries.filter(([key]) => key !== step));
  return Object.fromEntries(entries.map(([key, member]) => [key, key === step ? without(member, rest) : member]));
}
