/** Keys and positions in lists, from the top. */
export type PolicyPath = readonly (string | number)[];

/** Where something stands in a file, both from 1. */
export interface FilePosition {
  readonly line: number;
  readonly column: number;
}

/** One thing that is wrong with a policy. Holds no key, address or text that may be secret. */
export interface PolicyProblem {
  readonly path: PolicyPath;
  /** `path` as text, such as `models.gpt-5.5.deployments[0].client`; empty for the policy as a whole. */
  readonly at: string;
  readonly expected: string;
  /** What came instead: a short value, or its kind and size. */
  readonly got: string;
  /** The name that was probably meant. */
  readonly suggestion?: string | undefined;
  /** The path at which a setting belongs that stands at the wrong place. */
  readonly belongsAt?: string | undefined;
  /** Where it stands, for policies from a file. */
  readonly position?: FilePosition | undefined;
  /** All of this in one line. */
  readonly message: string;
}

/** Something that is allowed and cannot work well. */
export interface PolicyWarning {
  readonly path: PolicyPath;
  readonly at: string;
  readonly message: string;
}

const PLAIN_NAME = /^[\w@./:+-]{1,64}$/;

export function atOf(path: PolicyPath): string {
  let at = '';
  for (const step of path) {
    if (typeof step === 'string' && PLAIN_NAME.test(step)) at += at === '' ? step : `.${step}`;
    else at += `[${typeof step === 'number' ? step : quoted(step)}]`;
  }
  return at;
}

/** On one line, and never long. */
export function quoted(text: string): string {
  return JSON.stringify(text.length > 64 ? `${text.slice(0, 60)}...` : text);
}

export function problemOf(
  path: PolicyPath,
  expected: string,
  got: string,
  more: Partial<Pick<PolicyProblem, 'suggestion' | 'belongsAt' | 'position'>> = {},
): PolicyProblem {
  const { suggestion, belongsAt, position } = more;
  const at = atOf(path);
  const where = [position && `line ${position.line}, column ${position.column}`, at].filter(Boolean).join(': ');
  const meant = suggestion === undefined ? '' : `; did you mean ${quoted(suggestion)}?`;
  const place = belongsAt === undefined ? '' : `; it belongs at ${belongsAt}`;
  const sentence = `expected ${expected}, got ${got}${meant}${place}`;
  return {
    path,
    at,
    expected,
    got,
    ...(suggestion !== undefined && { suggestion }),
    ...(belongsAt !== undefined && { belongsAt }),
    ...(position && { position }),
    message: where === '' ? sentence : `${where}: ${sentence}`,
  };
}
