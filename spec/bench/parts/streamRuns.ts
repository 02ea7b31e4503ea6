import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { startEmulatorProcess } from '../../prove/parts/emulatorProcess.ts';

const program = fileURLToPath(new URL('streamsChild.ts', import.meta.url));

export type StreamsWay = 'bare' | 'chat' | 'policy';

export interface StreamsResult {
  readonly failed: number;
  /** Had ended before all were open: the rest was then weighed, and is not what is shown. */
  readonly early: number;
  /** In use for each open stream: on the heap and beside it, after a collection. */
  readonly heapBytes: number;
  /** The same, as the system sees the process. */
  readonly residentBytes: number;
}

/** So many streams open at one time, in a process of their own; the provider goes on with them only after `holdMs`. */
export async function runStreams(way: StreamsWay, streams: number, holdMs: number): Promise<StreamsResult> {
  const emulator = await startEmulatorProcess({ firstTokenMs: 20, tokens: 2, tokenMs: holdMs, maxRecords: 1 });
  const child = fork(program, [emulator.baseURL, way, String(streams)], { execArgv: ['--expose-gc'] });
  try {
    const [result] = (await Promise.race([once(child, 'message'), once(child, 'exit')])) as [unknown];
    if (typeof result !== 'object') throw new Error(`${way} ended without a result: exit code ${String(result)}`);
    return result as StreamsResult;
  } finally {
    child.kill();
    await emulator.close();
  }
}
