import { readFileSync } from 'node:fs';
import { SluiceError } from '../core/errors.ts';
import { fillIn } from './environment.ts';
import { invalidPolicy, readPolicy } from './parsePolicy.ts';
import type { PolicyReading } from './parsePolicy.ts';
import type { LoadPolicyOptions, Policy } from './Policy.ts';
import { problemOf } from './PolicyProblem.ts';
import { policyText } from './policyText.ts';

/**
 * Reads a policy from a file: JSON where its name ends in `.json`, else YAML.
 *
 * In texts `${NAME}` stands for a variable of the environment, and `${NAME:-default}` for one that may be unset or empty;
 * `$${` stands for `${` itself. They give text, never numbers.
 *
 * Synchronous, since it is done once, before anything else can be.
 *
 * @param path - As for `readFileSync`.
 * @param options - See {@link LoadPolicyOptions}.
 * @throws SluiceError `invalid_policy`: the file cannot be read; or everything that is wrong with it, one thing a line,
 * with line and column. Keys, addresses and what came from the environment are not shown.
 *
 * @example
 * ```ts
 * import OpenAI from 'openai';
 * import { loadPolicy } from 'sluice';
 *
 * const policy = loadPolicy('policy.yaml', { clients: ['main'] });
 * const openai = new OpenAI({ ...policy.clients['main'], maxRetries: 0 });
 * console.log(openai.baseURL, policy.deadlineMs);
 * ```
 */
export function loadPolicy(path: string, options: LoadPolicyOptions = {}): Policy {
  const { policy, problems } = readPolicyFile(path, options);
  if (policy) return policy;
  throw invalidPolicy(path, problems);
}

/** @throws SluiceError `invalid_policy` if the file cannot be read. */
export function readPolicyFile(path: string, options: LoadPolicyOptions): PolicyReading {
  const { env = process.env } = options;
  const text = policyText(contentOf(path), path.toLowerCase().endsWith('.json') ? 'json' : 'yaml');
  if (text.problems.length > 0) return { problems: text.problems, policy: undefined };
  const { value, problems: unset, filled } = fillIn(text.value, env);
  const { policy, problems } = readPolicy(value, options, { problems: unset, hidden: filled });
  return {
    policy,
    problems: problems.map((problem) =>
      problemOf(problem.path, problem.expected, problem.got, {
        ...problem,
        position: text.positionOf(problem.path),
      }),
    ),
  };
}

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  EACCES: 'this process may not read it',
  EISDIR: 'it is a directory',
  ENOTDIR: 'a part of its path is no directory',
};

function contentOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? 'unknown';
    throw new SluiceError('invalid_policy', `${path} cannot be read: ${REASONS[code] ?? code}`);
  }
}
