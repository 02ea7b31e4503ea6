import { systemRuntime } from '../../lib/index.ts';
import { openaiVersions } from '../helpers/openaiVersions.ts';
import { percentile } from '../helpers/ProviderBucket.ts';
import { leaveInPhase, phases, promptAbortEmulator } from './parts/promptAbort.ts';
import { ms, writeResults } from './parts/writeResults.ts';

const ROUNDS = 50;
const fixture = await promptAbortEmulator(systemRuntime);
const rows: (string | number)[][] = [];
const all: number[] = [];
let sentLater = 0;
const wrong: string[] = [];

for (const { name, OpenAI } of openaiVersions) {
  const openai = new OpenAI({ baseURL: fixture.emulator.baseURL, apiKey: 'none' });
  for (const phase of phases) {
    const left = await leaveInPhase(phase, openai, fixture, ROUNDS);
    sentLater += left.sentLater;
    wrong.push(...left.wrong);
    all.push(...left.closedAfterMs);
    const closed = left.closedAfterMs;
    const times = closed.length === 0 ? ['-', '-'] : [ms(percentile(closed, 0.5)), ms(Math.max(...closed))];
    rows.push([name, phase.name, ...times, left.sentLater]);
  }
}
await fixture.emulator.close();
for (const what of wrong.slice(0, 20)) console.log(what);

await writeResults({
  name: 'prompt-abort',
  title: 'Unsubscribing closes the connection',
  text: `
Calls that are left in one phase, ${ROUNDS} times each, one after another: from the unsubscription to the moment at which the emulator, in the
same process, sees that the connection is closed. A call that still waits for a quota must send nothing.`,
  rows: [['SDK', 'phase', 'median', 'longest', 'sent afterwards'], ...rows],
  claims: [
    ['nothing was sent after the unsubscription', sentLater === 0],
    ['the emulator saw each call end in its phase, left by the client', wrong.length === 0],
    ['every connection was seen to be closed within 50 ms', all.every((closedAfterMs) => closedAfterMs <= 50)],
  ],
});
