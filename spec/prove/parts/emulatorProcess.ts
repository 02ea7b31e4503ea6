import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { EmulatorOptions, EmulatorReport, FaultRule, QuotaChange } from '../../../lib/emulator/index.ts';

const program = fileURLToPath(new URL('emulatorChild.ts', import.meta.url));

/** A fake provider with an event loop of its own: what the client's loop does, or fails to do, it does not share. */
export interface EmulatorProcess {
  readonly baseURL: string;
  report(): Promise<EmulatorReport>;
  script(faults: readonly FaultRule[]): Promise<void>;
  setQuota(change: QuotaChange): Promise<void>;
  /** Full buckets, the first script, an empty report. */
  reset(): Promise<void>;
  close(): Promise<void>;
}

export async function startEmulatorProcess(options: EmulatorOptions): Promise<EmulatorProcess> {
  const child = fork(program, [JSON.stringify(options)], { execArgv: [] });
  const exited = once(child, 'exit');
  const first = await Promise.race([once(child, 'message'), exited]);
  const [url] = first as [unknown];
  if (typeof url !== 'string') throw new Error(`the emulator did not start: exit code ${String(url)}`);

  /** Not kept alive: connections of the control must not be among those that are counted. */
  const control = async (path: string, body?: unknown): Promise<unknown> => {
    const method = body === undefined ? 'GET' : 'POST';
    const headers = { connection: 'close', 'content-type': 'application/json' };
    const response = await fetch(url + path, {
      method,
      headers,
      body: body === undefined ? null : JSON.stringify(body),
    });
    if (!response.ok) throw new Error(`${path}: ${await response.text()}`);
    return response.json();
  };
  return {
    baseURL: `${url}/v1`,
    report: () => control('/report') as Promise<EmulatorReport>,
    async script(faults) {
      await control('/script', { faults });
    },
    async setQuota(change) {
      await control('/quota', change);
    },
    async reset() {
      await control('/reset', {});
    },
    async close() {
      child.disconnect();
      await exited;
    },
  };
}
