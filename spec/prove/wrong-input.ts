import OpenAI from 'openai';
import { startEmulator } from '../../lib/emulator/index.ts';
import { answerOf, wrongInputs } from './parts/wrongInputs.ts';
import { writeResults } from './parts/writeResults.ts';

const emulator = await startEmulator();
const openai = new OpenAI({ baseURL: emulator.baseURL, apiKey: 'none' });
const rows: string[][] = [];
let good = 0;
for (const wrong of wrongInputs) {
  const { error, when } = await answerOf(wrong, openai);
  const names = error !== undefined && wrong.names.every((name) => error.message.includes(name));
  if (names && error.code === wrong.code && when === wrong.when) good++;
  rows.push([wrong.input, when ?? 'never', error?.code ?? '', error?.message ?? '']);
}
const { requests } = emulator.report();
await emulator.close();

await writeResults({
  name: 'wrong-input',
  title: 'What wrong input is answered with',
  text: `
One error for each, with the field, what is accepted and what came; the content of texts is never shown. *Made*: the factory or operator throws it. *Emitted*: the call
fails with it, before anything is sent.`,
  rows: [['input', 'when', 'code', 'message'], ...rows],
  claims: [
    ['every one is answered by one error that names field, rule and value', good === wrongInputs.length],
    ['nothing was sent', requests === 0],
  ],
});
