import { Document, isMap, isNode, isScalar, isSeq } from 'yaml';
import { plainData } from './plainData.ts';
import type { Plain } from './plainData.ts';
import type { PolicyInput } from './PolicyInput.ts';
import { atOf } from './PolicyProblem.ts';
import type { PolicyPath } from './PolicyProblem.ts';
import { isSecret } from './shown.ts';

export interface PolicyComment {
  readonly path: PolicyPath;
  readonly text: string;
}

const WIDTH = 100;

/**
 * A policy as YAML that reads as the same policy, with comments above the settings that they are about. Keys and addresses are
 * left out, and named at the end, unless they are variables of the environment.
 */
export function policyYaml(policy: PolicyInput, comments: readonly PolicyComment[]): string {
  const { policy: shown, hidden } = printable(policy);
  const document = new Document(shown);
  for (const { path, text } of comments) {
    const parent = path.length === 1 ? document.contents : document.getIn(path.slice(0, -1), true);
    const lines = commentLines(text).map((line) => ` ${line}`);
    if (isMap(parent)) {
      const pair = parent.items.find(({ key }) => isScalar(key) && key.value === path.at(-1));
      if (isNode(pair?.key)) pair.key.commentBefore = lines.join('\n');
    } else if (isSeq(parent)) {
      const item = parent.items[Number(path.at(-1))];
      if (isNode(item)) item.commentBefore = lines.join('\n');
    }
  }
  if (hidden.length > 0)
    document.comment = commentLines(`Not printed: ${hidden.join(', ')}.`)
      .map((line) => ` ${line}`)
      .join('\n');
  return document.toString({ lineWidth: 0 });
}

/** A policy without the keys and addresses that stand in it, and the places of these. */
export function printable(policy: PolicyInput): { readonly policy: Plain; readonly hidden: readonly string[] } {
  const hidden: string[] = [];
  return { policy: withoutSecrets(plainData(policy).data, [], hidden), hidden };
}

/** A text in lines of comments, without their `#`. */
export function commentLines(text: string): readonly string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(/\s+/)) {
    if (line !== '' && line.length + 1 + word.length > WIDTH) {
      lines.push(line);
      line = '';
    }
    line = line === '' ? word : `${line} ${word}`;
  }
  return [...lines, line];
}

function withoutSecrets(value: Plain, path: PolicyPath, hidden: string[]): Plain {
  if (typeof value !== 'object' || value === null) return value;
  const isHidden = (member: Plain, step: string | number): boolean => {
    if (typeof member !== 'string' || !isSecret([...path, step]) || member.startsWith('${')) return false;
    if (step === 'tenant' || step === 'priority') return false;
    hidden.push(atOf([...path, step]));
    return true;
  };
  if (Array.isArray(value)) {
    return (value as readonly Plain[]).flatMap((item, i) => {
      if (isHidden(item, i)) return [];
      const before = hidden.length;
      const kept = withoutSecrets(item, [...path, i], hidden);
      // A key of the gateway without its hash would be none.
      return hidden.length > before ? [] : [kept];
    });
  }
  const members = Object.entries(value).filter(([key, member]) => !isHidden(member as Plain, key));
  return Object.fromEntries(
    members.map(([key, member]) => [key, withoutSecrets(member as Plain, [...path, key], hidden)]),
  );
}
