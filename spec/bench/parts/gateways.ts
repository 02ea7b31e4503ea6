import { fork, spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { freePort } from '../../helpers/freePort.ts';

/** Something that requests can be sent to. */
export interface Way {
  readonly name: string;
  readonly origin: string;
  readonly headers: Readonly<Record<string, string>>;
  close(): Promise<void>;
}

const here = (file: string): string => fileURLToPath(new URL(file, import.meta.url));
const PORTKEY = here('../node_modules/@portkey-ai/gateway/build/start-server.js');

/** Sluice's gateway in a process of its own. `flags` go to Node, such as `--cpu-prof`. */
export function startSluice(baseURL: string, flags: readonly string[] = []): Promise<Way> {
  return startChild('Sluice', 'gatewayChild.ts', baseURL, flags);
}

/** A proxy of the same parts that does nothing else. */
export function startBareProxy(baseURL: string): Promise<Way> {
  return startChild('bare proxy', 'bareProxyChild.ts', baseURL, []);
}

async function startChild(name: string, file: string, baseURL: string, flags: readonly string[]): Promise<Way> {
  const child = fork(here(file), [baseURL], { execArgv: [...flags] });
  const [url] = (await Promise.race([once(child, 'message'), once(child, 'exit')])) as [unknown];
  if (typeof url !== 'string') throw new Error(`${name} did not start: exit code ${String(url)}`);
  const exited = once(child, 'exit');
  return {
    name,
    origin: url,
    headers: {},
    close: async () => {
      child.disconnect();
      await exited;
    },
  };
}

/** @portkey-ai/gateway in a process of its own, as its package starts it. */
export async function startPortkey(baseURL: string): Promise<Way> {
  if (!existsSync(PORTKEY)) throw new Error('needs `npm ci` in spec/bench');
  const port = await freePort();
  const child = spawn(process.execPath, [PORTKEY, `--port=${port}`, '--headless'], { stdio: 'ignore' });
  const origin = `http://127.0.0.1:${port}`;
  await listening(origin, child);
  return {
    name: 'Portkey',
    origin,
    headers: { 'x-portkey-provider': 'openai', 'x-portkey-custom-host': baseURL },
    close: async () => {
      const exited = once(child, 'exit');
      child.kill();
      await exited;
    },
  };
}

async function listening(origin: string, child: ChildProcess): Promise<void> {
  for (let at = 0; at < 300 && child.exitCode === null; at++) {
    try {
      await fetch(origin);
      return;
    } catch {
      await sleep(100);
    }
  }
  child.kill();
  throw new Error('the other gateway did not start');
}
