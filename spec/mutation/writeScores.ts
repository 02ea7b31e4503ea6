import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { format, resolveConfig } from 'prettier';
import ts from 'typescript';
import { GROUPS } from './groups.ts';

interface Mutant {
  readonly status: string;
}

interface Report {
  readonly files: Readonly<Record<string, { readonly mutants: readonly Mutant[] }>>;
}

interface Score {
  readonly killed: number;
  readonly survived: number;
  readonly ignored: number;
}

const KILLED = new Set(['Killed', 'Timeout']);
const SURVIVED = new Set(['Survived', 'NoCoverage']);
const GOALS = { limits: 95, wire: 95, operators: 90 } as const;

/** Writes the page of scores from what Stryker has reported so far. */
export async function writeScores(root: string): Promise<void> {
  const scores = new Map<string, Score>();
  for (const [name, group] of Object.entries(GROUPS)) {
    const own = new Set(globSync([...group.files], { cwd: root }));
    for (const [file, { mutants }] of Object.entries(reportOf(join(root, `reports/mutation/${name}.json`)).files)) {
      if (!own.has(file)) continue;
      const count = (test: (status: string) => boolean): number => mutants.filter(({ status }) => test(status)).length;
      const killed = count((status) => KILLED.has(status));
      scores.set(file, {
        killed,
        survived: count((status) => SURVIVED.has(status)),
        ignored: count((status) => status === 'Ignored'),
      });
    }
  }
  const sections = Object.entries(GOALS).map(([part, goal]) => {
    const files = globSync(`lib/${part}/**/*.ts`, { cwd: root }).sort();
    const measured = files.filter((file) => tried(scores.get(file)) > 0);
    const sum = (of: keyof Score): number => measured.reduce((total, file) => total + (scores.get(file)?.[of] ?? 0), 0);
    const all = { killed: sum('killed'), survived: sum('survived'), ignored: sum('ignored') };
    const rows = measured.map((file) => rowOf(file.replace(`lib/${part}/`, ''), scores.get(file) as Score));
    const left = files.filter((file) => scores.get(file) === undefined && hasCode(join(root, file)));
    const missing = left.map((file) => `\`${file.replace(`lib/${part}/`, '')}\``).join(', ');
    return [
      `## lib/${part}`,
      `Goal: ${goal} %. Measured: ${measured.length} files, ${percent(all)} %.`,
      `| file | score | killed | survived | left out |\n| --- | --- | --- | --- | --- |\n${[...rows, rowOf('all measured', all)].join('\n')}`,
      ...(missing === '' ? [] : [`Not measured: ${missing}.`]),
    ].join('\n\n');
  });
  const page = `# Mutation scores

Stryker changes one thing in a file, such as a comparison, a sum or a call, and runs the tests that reach it: a mutant that no test
notices survives. The score is the part of the mutants that were noticed. Properties try fixed cases for at most a second each, so that a busy machine finds fewer than a quiet one, and of each
file only the specs named in \`spec/mutation/groups.ts\` are run. Constants of a module are left out, and what a comment in the file says cannot matter.
Again: \`npm run mutate\`, or a group of it.

${sections.join('\n\n')}
`;
  const file = join(root, 'docs/results/mutation.md');
  writeFileSync(file, await format(page, { ...(await resolveConfig(file)), parser: 'markdown' }));
}

/** Whether there is anything to change: files of types, and those that only pass names on, have nothing. */
function hasCode(file: string): boolean {
  const compilerOptions = { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ESNext, removeComments: true };
  const { outputText } = ts.transpileModule(readFileSync(file, 'utf8'), { compilerOptions });
  return outputText.replace(/^export (?:\*|\{[^}]*\})(?: from '[^']*')?;/gm, '').trim() !== '';
}

function tried(score: Score | undefined): number {
  return score === undefined ? 0 : score.killed + score.survived;
}

function percent(score: Score): string {
  return tried(score) === 0 ? '-' : ((100 * score.killed) / tried(score)).toFixed(1);
}

function rowOf(name: string, score: Score): string {
  return `| ${[name, `${percent(score)} %`, score.killed, score.survived, score.ignored].join(' | ')} |`;
}

function reportOf(file: string): Report {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Report;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return { files: {} };
    throw error;
  }
}
