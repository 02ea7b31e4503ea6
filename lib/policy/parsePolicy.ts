import { SluiceError } from '../core/errors.ts';
import { contradictions } from './contradictions.ts';
import { plainData } from './plainData.ts';
import type { Policy, PolicyOptions } from './Policy.ts';
import type { PolicyInput } from './PolicyInput.ts';
import { problemOf } from './PolicyProblem.ts';
import type { PolicyPath, PolicyProblem } from './PolicyProblem.ts';
import { resolvePolicy } from './resolvePolicy.ts';
import { policySchema } from './schema/policySchema.ts';
import { schemaProblems } from './schemaProblems.ts';

/** What became of a policy: `policy` is there where `problems` is empty. */
export interface PolicyReading {
  readonly problems: readonly PolicyProblem[];
  readonly policy: Policy | undefined;
}

/**
 * Checks a policy and fills in everything that was left out. What it returns is plain data and frozen, and can itself be
 * parsed again, also after a way through JSON.
 *
 * @param value - A {@link PolicyInput}, a {@link Policy}, or anything else: it need not be type-checked. `undefined`
 * stands for an empty policy.
 * @param options - See {@link PolicyOptions}.
 * @throws SluiceError `invalid_policy` that names everything that is wrong, one thing a line: where it stands, what was
 * expected and what came. Keys and addresses are not shown.
 *
 * @example
 * ```ts
 * import { parsePolicy } from 'sluice';
 *
 * const policy = parsePolicy({
 *   quota: { account: { requestsPerMinute: 600 } },
 *   models: { 'gpt-5.5': { retry: { attempts: 3 }, fallback: ['deepseek-v3.2'] }, default: {} },
 * });
 * console.log(policy.quota.account.burstRequests); // => 10
 * ```
 *
 * @example Everything that is wrong at once
 * ```ts
 * import { isSluiceError, parsePolicy } from 'sluice';
 *
 * try {
 *   parsePolicy({ deadlineMs: -1, models: { 'gpt-5.5': { retyr: { attempts: 3 } } } });
 * } catch (error) {
 *   if (isSluiceError(error)) console.error(error.message);
 * }
 * ```
 */
export function parsePolicy(value: unknown, options: PolicyOptions = {}): Policy {
  const { policy, problems } = readPolicy(value, options);
  if (policy) return policy;
  throw invalidPolicy('the policy', problems);
}

/**
 * What is wrong with a policy, as data; empty where nothing is. {@link parsePolicy} says the same in its error.
 *
 * @example
 * ```ts
 * import { policyProblems } from 'sluice';
 *
 * const [problem] = policyProblems({ models: { default: { retry: { attempt: 3 } } } });
 * console.log(problem?.at); // => models.default.retry.attempt
 * console.log(problem?.suggestion); // => attempts
 * ```
 */
export function policyProblems(value: unknown, options: PolicyOptions = {}): readonly PolicyProblem[] {
  return readPolicy(value, options).problems;
}

/** What is known of a value before it is looked at. */
export interface PolicyPreface {
  /** Places that have a problem already, of which no other is to be told. */
  readonly problems: readonly PolicyProblem[];
  /** Texts that are not to be shown. */
  readonly hidden: readonly PolicyPath[];
}

export function readPolicy(
  value: unknown,
  options: PolicyOptions,
  { problems: settled, hidden }: PolicyPreface = { problems: [], hidden: [] },
): PolicyReading {
  const { data, problems: unreadable } = plainData(value);
  const found = [...settled, ...unreadable];
  const { problems: misfits, rest, removed, misnamed } = schemaProblems(policySchema, data ?? {}, value);
  for (const misfit of misfits) {
    const settles = misnamed.has(misfit) ? isWithin : touches;
    if (found.some(({ path }) => settles(misfit.path, path))) continue;
    found.push(hidden.some((path) => isSame(path, misfit.path)) ? withoutValue(misfit) : misfit);
  }
  if (rest === undefined) return { problems: found, policy: undefined };
  const clients = options.clients ?? namesOf(rest.clients);
  const policy = resolvePolicy(rest, clients);
  const gone = [...removed, ...settled.map(({ path }) => path)];
  for (const { problem, from } of contradictions(rest, policy, clients)) {
    const sources = [problem.path, ...from];
    // What comes of a setting that is wrong itself need not be true.
    if (sources.some((source) => gone.some((lost) => touches(lost, source)))) continue;
    found.push(
      hidden.some((text) => sources.some((source) => touches(text, source))) ? withoutValue(problem) : problem,
    );
  }
  return found.length > 0 ? { problems: found, policy: undefined } : { problems: [], policy: frozen(policy) };
}

function withoutValue({ path, expected, suggestion, belongsAt }: PolicyProblem): PolicyProblem {
  return problemOf(path, expected, 'a text from the environment', { suggestion, belongsAt });
}

/** A policy that names no client leaves it to others which there are. */
function namesOf(clients: PolicyInput['clients']): readonly string[] | undefined {
  const names = Object.keys(clients ?? {});
  return names.length > 0 ? names : undefined;
}

const MOST_TOLD = 100;

/** `what`: the policy, or its file. */
export function invalidPolicy(what: string, problems: readonly PolicyProblem[]): SluiceError {
  const lines = problems.slice(0, MOST_TOLD).map(({ message }) => `  ${message}`);
  if (problems.length > MOST_TOLD) lines.push(`  and ${problems.length - MOST_TOLD} more`);
  const count = problems.length === 1 ? '1 problem' : `${problems.length} problems`;
  return new SluiceError('invalid_policy', [`${what} has ${count}:`, ...lines].join('\n'));
}

function isSame(a: PolicyPath, b: PolicyPath): boolean {
  return a.length === b.length && touches(a, b);
}

/** Whether one is the other, or lies within it. */
function touches(a: PolicyPath, b: PolicyPath): boolean {
  const [short, long] = a.length < b.length ? [a, b] : [b, a];
  return short.every((step, i) => long[i] === step);
}

/** Whether the first is the second, or lies within it. */
function isWithin(inner: PolicyPath, outer: PolicyPath): boolean {
  return inner.length >= outer.length && touches(inner, outer);
}

function frozen<T>(value: T): T {
  if (typeof value !== 'object' || value === null) return value;
  for (const member of Object.values(value)) frozen(member);
  return Object.freeze(value);
}
