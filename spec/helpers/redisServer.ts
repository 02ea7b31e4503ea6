import { spawn, spawnSync } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A `redis-server` of a test's own, on loopback, with nothing kept on disk. */
export interface RedisServer {
  readonly port: number;
  /** Ends the process; what it held is gone. */
  stop(): Promise<void>;
  /** Starts it again, on the same port and empty. */
  start(): Promise<void>;
  /** Keeps connections open and answers nothing. */
  pause(): void;
  resume(): void;
  close(): Promise<void>;
}

const COMMAND = 'redis-server';
let found: boolean | undefined;

export function hasRedisServer(): boolean {
  return (found ??= spawnSync(COMMAND, ['--version']).status === 0);
}

/** `describe` for specs of the store. Where no server is installed they are skipped with a notice, and fail in CI. */
export function describeWithRedis(title: string, specs: (this: Mocha.Suite) => void): void {
  if (hasRedisServer()) {
    describe(title, specs);
    return;
  }
  const missing = `needs ${COMMAND}, which is not installed (Debian: apt install redis-server)`;
  describe(title, () => {
    if (process.env['CI'] === undefined) it.skip(missing);
    else {
      it(missing, () => {
        throw new Error(missing);
      });
    }
  });
}

export async function startRedisServer(): Promise<RedisServer> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-redis-'));
  const port = await freePort();
  let child: ChildProcess | undefined;
  const end = (): void => void child?.kill('SIGKILL');
  process.on('exit', end);

  const server: RedisServer = {
    port,
    async start() {
      const args = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--dir', folder];
      child = spawn(COMMAND, args, { stdio: 'ignore' });
      child.unref();
      await answering(port);
    },
    async stop() {
      if (!child) return;
      const ended = once(child, 'exit');
      // Also ends one that is paused.
      child.kill('SIGKILL');
      child.ref();
      child = undefined;
      await ended;
    },
    pause: () => void child?.kill('SIGSTOP'),
    resume: () => void child?.kill('SIGCONT'),
    async close() {
      process.off('exit', end);
      await server.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
  await server.start();
  return server;
}

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address() as AddressInfo;
  probe.close();
  await once(probe, 'close');
  return port;
}

async function answering(port: number): Promise<void> {
  for (let left = 200; left > 0; left--) {
    if (await answers(port)) return;
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  throw new Error(`${COMMAND} does not answer on port ${port}`);
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => socket.write('PING\r\n'));
    const settle = (answered: boolean): void => {
      socket.destroy();
      resolve(answered);
    };
    socket.on('data', () => settle(true));
    socket.on('error', () => settle(false));
  });
}
