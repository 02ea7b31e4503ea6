import ts from 'typescript';

/** What c8 reports of a file: statements are its lines. */
export interface FileCoverage {
  readonly statementMap: Readonly<Record<string, { readonly start: { readonly line: number } }>>;
  readonly s: Readonly<Record<string, number>>;
}

export interface Missing {
  readonly from: number;
  readonly to: number;
  readonly why: string;
}

const IGNORED = /\/\* (?:[cv]8|node:coverage) ignore (?<what>next|start)(?: \d+)?(?<rest>.*?)\*\//;
/** `-- reason`, in a few words at least. */
const REASON = /^ -- \S.{9,} $/;

/** Whether a file has anything of its own to run. One of types only is never loaded, and so is in no report. */
export function hasCode(source: string): boolean {
  const { module, target } = { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ESNext };
  const compilerOptions = { module, target, removeComments: true, verbatimModuleSyntax: true };
  const { outputText } = ts.transpileModule(source, { compilerOptions });
  return outputText.replace(/export \{[^}]*\}(?: from '[^']+')?;/g, '').trim() !== '';
}

/** How many places are left out. */
export function leftOut(source: string): number {
  return source.split('\n').filter((text) => IGNORED.test(text)).length;
}

/** Lines that no test reached, and those left out without a reason: `/* c8 ignore next 2 -- reason *\/`. */
export function linesWithoutReason({ statementMap, s }: FileCoverage, source: string): Missing[] {
  const found: Missing[] = [];
  const lines = Object.entries(statementMap)
    .filter(([id]) => s[id] === 0)
    .map(([, { start }]) => start.line)
    .sort((a, b) => a - b);
  for (const line of lines) {
    const last = found.at(-1);
    if (last?.to === line - 1) found[found.length - 1] = { ...last, to: line };
    else found.push({ from: line, to: line, why: 'is not covered' });
  }
  source.split('\n').forEach((text, at) => {
    const rest = IGNORED.exec(text)?.groups?.['rest'];
    if (rest === undefined || REASON.test(rest)) return;
    found.push({ from: at + 1, to: at + 1, why: 'is left out without `-- reason`' });
  });
  return found;
}
