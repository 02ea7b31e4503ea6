import { startTimer } from '../../core/runtime.ts';
import type { Runtime } from '../../core/runtime.ts';
import type { Terminal } from '../Command.ts';
import type { Scoreboard } from './Scoreboard.ts';

const EVERY_MS = 100;
const CLEAR_LINE = '\r\u001b[2K';

/**
 * Shows how a run is getting on: on a terminal one line that is written over, in a pipe a plain line for every quarter.
 * Returns what ends it.
 */
export function showProgress(
  terminal: Terminal,
  runtime: Runtime,
  title: string,
  calls: number,
  board: Scoreboard,
): () => void {
  const { live } = terminal;
  let shownQuarter = 0;
  let cancel = (): void => {};
  const line = (): string => {
    const failed = board.failed === 0 ? '' : `, ${board.failed} failed`;
    return `${title}: ${board.answered} of ${calls} answered${failed}, ${(board.elapsedMs / 1000).toFixed(1)} s`;
  };
  const show = (): void => {
    if (live) {
      terminal.write(CLEAR_LINE + line().slice(0, live.columns - 1));
      return;
    }
    const quarter = Math.floor((4 * (board.answered + board.failed)) / calls);
    if (quarter > shownQuarter) terminal.print(line());
    shownQuarter = quarter;
  };
  const tick = (): void => {
    show();
    cancel = startTimer(runtime, EVERY_MS, tick);
  };
  tick();
  return () => {
    cancel();
    if (live) terminal.write(CLEAR_LINE);
    terminal.print(line());
  };
}
