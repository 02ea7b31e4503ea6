import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { format, resolveConfig } from 'prettier';
import { simulate } from '../../../lib/simulator/index.ts';
import type { SimulationProgress } from '../../../lib/simulator/index.ts';
import { FIELD_NOTES } from './fieldNoteMarks.ts';
import type { FieldNote } from './fieldNoteMarks.ts';
import { figureRows, scenarioOf, smaller } from './fieldNotes.ts';
import type { Claim, Rows } from './fieldNotes.ts';

const results = new URL('../../../docs/results/', import.meta.url);

export const SMALL_PAGE = 'field-notes-small.md';

/** Runs a note at its full length and writes its page: figures, and which of its marks are met. */
export async function proveNote(note: FieldNote, onProgress: (progress: SimulationProgress) => void): Promise<boolean> {
  const { file, marks } = note;
  const scenario = scenarioOf(file);
  const result = simulate(scenario, { onProgress });
  const claims = marks(result);
  const text = `# Field note ${scenario.name}

The scenario [${file}.yaml](../../examples/scenarios/${file}.yaml) at full length, in virtual time: what is given in it and what is free
stands at its top. _Best possible_ knows all limits beforehand. [Five reports from production](../guide/field-notes.md) says
what each strategy does, and why it comes out so. The same on every machine; run again with \`npm run prove field-notes\`.

${tableOf(figureRows(result))}

${claims.map(claimLine).join('\n')}
`;
  await writePage(`${file}.md`, text);
  console.log(text);
  return claims.every(([, holds]) => holds);
}

/** All notes, made small: what a change of behaviour shows in. */
export async function smallPage(): Promise<string> {
  const parts = FIELD_NOTES.map(({ file, small: { rate = 1, time = 1, forMs } }) => {
    const scenario = smaller(scenarioOf(file), rate, time);
    const result = simulate(forMs === undefined ? scenario : { ...scenario, forMs });
    return `## ${scenario.name}\n\n${tableOf(figureRows(result))}\n`;
  });
  const text = `# Field notes, made small

Each scenario of the [field notes](../guide/field-notes.md) with a part of its load or of its time. The figures say little by
themselves; they are here so that a change of behaviour shows. \`npm test\` compares them; \`npm run prove field-notes-small\`
writes them anew.

${parts.join('\n')}`;
  return formatted(SMALL_PAGE, text);
}

export async function writePage(name: string, text: string): Promise<void> {
  writeFileSync(pathOf(name), await formatted(name, text));
}

export function pathOf(name: string): string {
  return fileURLToPath(new URL(name, results));
}

async function formatted(name: string, text: string): Promise<string> {
  return format(text, { ...(await resolveConfig(pathOf(name))), parser: 'markdown' });
}

function tableOf([head = [], ...body]: Rows): string {
  return [head, head.map(() => '---'), ...body].map((row) => `| ${row.join(' | ')} |`).join('\n');
}

function claimLine([sentence, holds]: Claim): string {
  return `- ${holds ? 'holds' : '**does not hold**'}: ${sentence}`;
}
