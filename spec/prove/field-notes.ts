import { proveNote } from './parts/fieldNotePages.ts';
import { FIELD_NOTES } from './parts/fieldNoteMarks.ts';

// All of them, or those that are named: `npx node spec/prove/field-notes.ts field-note-a`.
const chosen = process.argv.slice(2);
const { stderr } = process;

for (const note of FIELD_NOTES) {
  if (chosen.length > 0 && !chosen.includes(note.file)) continue;
  const met = await proveNote(note, ({ strategy, atMs, forMs, calls }) => {
    if (!stderr.isTTY) return;
    const share = Math.round((100 * atMs) / forMs);
    stderr.write(`\r\u001b[2K${note.file}, ${strategy}: ${calls.toLocaleString('en-US')} calls, ${share} %`);
  });
  if (!met) process.exitCode = 1;
}
