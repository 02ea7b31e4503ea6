import { isAlias, isMap, isScalar, isSeq, LineCounter, parseAllDocuments, visit, YAMLMap } from 'yaml';
import type { Document, Node, Pair } from 'yaml';
import { problemOf } from './PolicyProblem.ts';
import type { FilePosition, PolicyPath, PolicyProblem } from './PolicyProblem.ts';

export interface PolicyText {
  readonly value: unknown;
  readonly problems: readonly PolicyProblem[];
  /** Where a setting stands, or the nearest thing around it. */
  positionOf(path: PolicyPath): FilePosition | undefined;
}

const MOST_FAULTS = 5;

/** Reads YAML, or JSON, which must then be strict. A setting left blank in YAML is one left out. */
export function policyText(source: string, format: 'yaml' | 'json'): PolicyText {
  const text = source.replace(/^\uFEFF/, '');
  const lines = new LineCounter();
  const documents = parseAllDocuments(text, { lineCounter: lines, merge: true, prettyErrors: false });
  const at = (offset: number): FilePosition => {
    const { line, col } = lines.linePos(offset);
    return { line: Math.max(1, line), column: Math.max(1, col) };
  };
  const wrong = (expected: string, got: string, offset?: number): PolicyProblem =>
    problemOf([], expected, got, { position: offset === undefined ? undefined : at(offset) });
  const nothing = (problems: readonly PolicyProblem[]): PolicyText => ({
    value: undefined,
    problems,
    positionOf: () => undefined,
  });

  const [document, second] = Array.isArray(documents) ? (documents as readonly Document.Parsed[]) : [];
  const faults = [...(document?.errors ?? []), ...(document?.warnings ?? [])];
  if (faults.length > 0) {
    const inBrackets = /[[{,:]\s*\$\{/.test(text);
    return nothing(
      // One fault makes others after it.
      faults
        .slice(0, MOST_FAULTS)
        .map(({ message, pos }) => wrong(expectedOf(format), faultOf(message, inBrackets), pos[0])),
    );
  }
  if (format === 'json') {
    const fault = jsonFault(text);
    const got = text.trim() === '' ? 'nothing' : 'something else';
    if (fault) return nothing([wrong(expectedOf(format), got, fault.offset)]);
  }
  if (second) return nothing([wrong('one document', 'a second one', second.range[0])]);
  if (document === undefined) return nothing([]);
  const keys = oddKeys(document);
  if (keys.length > 0) return nothing(keys.map((offset) => wrong('a name', 'a key that is no text', offset)));
  if (format === 'yaml') leaveOutBlanks(document);
  try {
    return {
      value: document.toJS(),
      problems: [],
      positionOf(path) {
        const offset = offsetOf(document, path);
        return offset === undefined ? undefined : at(offset);
      },
    };
  } catch (error) {
    // Aliases without an anchor, and too many of them.
    return nothing([wrong(expectedOf(format), faultOf(error instanceof Error ? error.message : '', false))]);
  }
}

function expectedOf(format: 'yaml' | 'json'): string {
  return format === 'yaml' ? 'YAML' : 'JSON';
}

/** What a parser quotes of the text may be a key. */
function faultOf(message: string, bracketed: boolean): string {
  const [first = ''] = message.split('\n');
  const sentence = first.replace(/: ?["'].*$/, '').replace(/\.$/, '') || 'something else';
  const told = `${sentence.charAt(0).toLowerCase()}${sentence.slice(1)}`;
  return bracketed && told.startsWith('unexpected')
    ? `${told} (between [ ] and { }, write "\${NAME}" in quotes)`
    : told;
}

function jsonFault(text: string): { readonly offset: number | undefined } | undefined {
  try {
    JSON.parse(text);
    return undefined;
  } catch (error) {
    const position = /position (\d+)/.exec(error instanceof Error ? error.message : '');
    return { offset: position === null ? undefined : Number(position[1]) };
  }
}

/** Offsets of keys that are lists, objects or nothing. */
function oddKeys(document: Document.Parsed): number[] {
  const offsets: number[] = [];
  visit(document, {
    Pair(_, { key }) {
      if (isScalar(key) && key.value !== null) return;
      offsets.push((key as Node | null)?.range?.[0] ?? 0);
    },
  });
  return offsets;
}

/** What names stand in: there a blank means that everything is as usual. */
const OF_NAMES: readonly PolicyPath[] = [
  ['clients'],
  ['models'],
  ['tenants'],
  ['quota', 'clients'],
  ['priorities', 'levels'],
];

function leaveOutBlanks(document: Document.Parsed): void {
  const inMap = (map: YAMLMap, path: PolicyPath): void => {
    const byName = OF_NAMES.some((names) => names.length === path.length && names.every((step, i) => step === path[i]));
    map.items = map.items.filter((pair) => {
      const inner = [...path, nameOf(pair)];
      if (!isBlank(pair.value)) {
        if (isMap(pair.value)) inMap(pair.value, inner);
        return true;
      }
      if (byName) pair.value = new YAMLMap();
      return byName;
    });
  };
  if (isMap(document.contents)) inMap(document.contents, []);
}

function isBlank(value: unknown): boolean {
  return value === null || (isScalar(value) && value.value === null && value.source === '' && !value.anchor);
}

function nameOf(pair: Pair): string {
  return isScalar(pair.key) ? String(pair.key.value) : '';
}

function offsetOf(document: Document.Parsed, path: PolicyPath): number | undefined {
  let node: unknown = document.contents;
  let offset: number | undefined;
  for (const step of path) {
    if (isAlias(node)) node = node.resolve(document);
    if (isMap(node)) {
      const pair = node.items.find((item) => nameOf(item) === String(step));
      if (pair === undefined) break;
      offset = (pair.key as Node).range?.[0] ?? offset;
      node = pair.value;
    } else if (isSeq(node) && typeof step === 'number') {
      node = node.items[step];
      offset = (node as Node | undefined)?.range?.[0] ?? offset;
    } else break;
  }
  return offset;
}
