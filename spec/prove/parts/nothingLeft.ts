import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { startEmulator } from '../../../lib/emulator/index.ts';
import type { Tally } from './MixedCalls.ts';
import { mixedProvider } from './mixedProvider.ts';

/** What is left after the last call has ended. */
export interface Leftovers extends Tally {
  readonly held: Readonly<Record<string, number>>;
  /** On the long-lived signal. */
  readonly listeners: number;
  /** Of the library, and of the whole process. */
  readonly timers: number;
  readonly activeTimers: number;
  /** As the provider sees it, after the idle connections have been closed. */
  readonly sockets: number;
  readonly running: number;
  /** Connections that could not be closed, as a request still held them. */
  readonly busyConnections: number;
  readonly unhandled: readonly string[];
  readonly warnings: readonly string[];
  readonly heapGrowth: number;
}

export interface ProcessEnd {
  readonly code: number | null;
  /** From its last line to its end. */
  readonly endedAfterMs: number;
}

const program = fileURLToPath(new URL('nothingLeftChild.ts', import.meta.url));
/** One that does not end by itself is ended after this. */
const WAITS_MS = 20_000;

/** Makes `calls` mixed calls in a process of their own, and waits until it ends by itself. */
export async function nothingLeft(calls: number): Promise<Leftovers & ProcessEnd> {
  const emulator = await startEmulator({ ...mixedProvider, maxRecords: 1 });
  const child = spawn(process.execPath, [program, emulator.url, String(calls)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let output = '';
  let saidMs = 0;
  let stop: NodeJS.Timeout | undefined;
  child.stdout.setEncoding('utf8').on('data', (part: string) => {
    output += part;
    saidMs = performance.now();
    stop ??= setTimeout(() => child.kill('SIGKILL'), WAITS_MS);
  });
  const [code] = (await once(child, 'close')) as [number | null];
  clearTimeout(stop);
  const endedAfterMs = performance.now() - saidMs;
  await emulator.close();
  return { ...(JSON.parse(output) as Leftovers), code, endedAfterMs };
}
