import { problemOf } from './PolicyProblem.ts';
import type { PolicyPath, PolicyProblem } from './PolicyProblem.ts';

/** A fault between settings that are right one by one. */
export interface Contradiction {
  readonly problem: PolicyProblem;
  /** Settings that it comes from, besides the one that it names. */
  readonly from: readonly PolicyPath[];
}

export function contradiction(
  path: PolicyPath,
  expected: string,
  got: string,
  more: { readonly suggestion?: string | undefined; readonly from?: readonly PolicyPath[] } = {},
): Contradiction {
  const { suggestion, from = [] } = more;
  return { problem: problemOf(path, expected, got, { suggestion }), from };
}
