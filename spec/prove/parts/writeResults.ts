import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism, getPriority, loadavg } from 'node:os';
import { fileURLToPath } from 'node:url';
import { format, resolveConfig } from 'prettier';

const folder = new URL('../../../docs/results/', import.meta.url);

export interface ResultsTable {
  readonly title: string;
  readonly text: string;
  readonly rows: readonly (readonly (string | number)[])[];
}

export interface Results {
  /** File name without its ending. */
  readonly name: string;
  readonly title: string;
  /** What was done, and what each column means. */
  readonly text: string;
  readonly rows: readonly (readonly (string | number)[])[];
  /** What must hold: a sentence, and whether it did. */
  readonly claims: readonly (readonly [string, boolean])[];
  /** The script that runs the program. Default: `prove`. */
  readonly script?: 'prove' | 'bench';
  /** What to type to run it again. Default: the script, with the name. */
  readonly command?: string;
  /** Further tables, each under a heading of its own. */
  readonly more?: readonly ResultsTable[];
}

/** How much other work there was when the program started. */
const [load = 0] = loadavg();

/** Prints the results and writes them to docs/results. A claim that does not hold makes the program fail. */
export async function writeResults(results: Results): Promise<void> {
  const { name, title, text, rows, claims, script = 'prove', more = [] } = results;
  const { command = `npm run ${script} ${name}` } = results;
  const table = [
    tableOf(rows),
    ...more.map((other) => `## ${other.title}\n\n${other.text.trim()}\n\n${tableOf(other.rows)}`),
  ].join('\n\n');
  const kept = claims.map(([claim, holds]) => `- ${holds ? 'holds' : '**does not hold**'}: ${claim}`).join('\n');
  const { node } = process.versions;
  const machine = `${availableParallelism()} cores, Node ${node}, load average ${load.toFixed(1)} at the start${priority()}`;
  const page = `# ${title}\n\n${text.trim()}\n\nMachine: ${machine}. Run again with \`${command}\`.\n\n${table}\n\n${kept}\n`;
  const file = fileURLToPath(new URL(`${name}.md`, folder));
  mkdirSync(folder, { recursive: true });
  writeFileSync(file, await format(page, { ...(await resolveConfig(file)), parser: 'markdown' }));
  console.log(`${table}\n\n${kept}`);
  if (claims.some(([, holds]) => !holds)) process.exitCode = 1;
}

function tableOf([head = [], ...body]: Results['rows']): string {
  return [head, head.map(() => '---'), ...body].map((row) => `| ${row.join(' | ')} |`).join('\n');
}

function priority(): string {
  try {
    // The 41st field, of which two come before the name in parentheses.
    const policy = readFileSync('/proc/self/stat', 'utf8').split(') ').at(-1)?.split(' ')[38];
    if (policy === '1' || policy === '2') return ', run before all other work';
  } catch {
    // No Linux.
  }
  return getPriority() < 0 ? ', run before most other work' : '';
}

export function ms(value: number): string {
  return Number.isFinite(value) ? `${value < 100 ? value.toFixed(1) : Math.round(value)} ms` : '-';
}
