import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { root } from '../../.ci/entryPoints.ts';

export interface Ended {
  readonly stdout: string;
  readonly stderr: string;
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/**
 * Runs JavaScript as a module of its own process; imports are relative to the root of the project. `onLine` hears each
 * line that it prints, and may send it signals.
 */
export async function runModule(
  code: string,
  env: Readonly<Record<string, string>> = {},
  onLine: (line: string, kill: (signal: NodeJS.Signals) => void) => void = () => {},
): Promise<Ended> {
  const child = spawn(process.execPath, ['--input-type=module', '--eval', code], {
    cwd: root,
    env: { PATH: process.env['PATH'], ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: 30_000,
  });
  let unread = '';
  child.stdout.setEncoding('utf8').on('data', (part: string) => {
    const lines = (unread + part).split('\n');
    unread = lines.pop() ?? '';
    for (const line of lines) onLine(line, (signal) => void child.kill(signal));
  });
  const [[exitCode, signal], stdout, stderr] = await Promise.all([
    once(child, 'close') as Promise<[number | null, NodeJS.Signals | null]>,
    text(child.stdout),
    text(child.stderr),
  ]);
  return { stdout, stderr, code: exitCode, signal };
}
