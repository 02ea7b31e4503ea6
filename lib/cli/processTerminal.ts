import type { Terminal } from './Command.ts';

const UNKNOWN_COLUMNS = 80;

/** The terminal, or the pipes, that this process was started with. */
export const processTerminal: Terminal = {
  print(line) {
    process.stdout.write(`${line}\n`);
  },
  complain(line) {
    process.stderr.write(`${line}\n`);
  },
  write(text) {
    process.stdout.write(text);
  },
  get live() {
    return process.stdout.isTTY ? { columns: process.stdout.columns } : undefined;
  },
  get status() {
    const { stderr } = process;
    if (!stderr.isTTY) return undefined;
    // A terminal that does not say how wide it is says 0.
    return { columns: stderr.columns || UNKNOWN_COLUMNS, write: (text: string) => void stderr.write(text) };
  },
  interrupted() {
    return new Promise((resolve) => {
      const end = (): void => {
        // A second signal ends the process in the usual way.
        process.off('SIGINT', end);
        process.off('SIGTERM', end);
        resolve();
      };
      process.on('SIGINT', end);
      process.on('SIGTERM', end);
    });
  },
  onReload(work) {
    process.on('SIGHUP', work);
    return () => process.off('SIGHUP', work);
  },
};
