import type { Runtime } from '../../core/runtime.ts';
import type { Emulator } from '../../emulator/index.ts';
import type { Terminal } from '../Command.ts';
import type { Asker } from './askers.ts';
import type { DemoCall } from './load.ts';
import { showProgress } from './progress.ts';
import { Scoreboard } from './Scoreboard.ts';
import type { DemoResult } from './table.ts';

/** Makes all calls at once, on an emulator with full buckets, and waits until each has ended. */
export async function runLoad(
  name: string,
  ask: Asker,
  load: readonly DemoCall[],
  emulator: Emulator,
  terminal: Terminal,
  runtime: Runtime,
  signal: AbortSignal,
): Promise<DemoResult> {
  emulator.reset();
  const board = new Scoreboard(runtime.clock);
  const stopProgress = showProgress(terminal, runtime, name, load.length, board);
  await Promise.all(
    load.map(async (call) => {
      const mark = board.asked(call);
      try {
        await ask(call, signal, () => mark.content());
        mark.answered();
      } catch {
        // Counted: what failed, and how often, is what the table shows.
        mark.failed();
      }
    }),
  );
  stopProgress();
  const { requests, rateLimited } = emulator.report();
  return { name, ...board.score(), requests, rateLimited: rateLimited.total };
}
