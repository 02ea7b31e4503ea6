import { once } from 'node:events';
import { createServer } from 'node:http';
import type { Server } from 'node:http';
import { connect } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import OpenAI from 'openai';
import { finalize } from 'rxjs';
import type { FaultRule } from '../../../lib/emulator/index.ts';
import { pipeToResponse } from '../../../lib/http/index.ts';
import { chat } from '../../../lib/index.ts';
import { heapInUse } from '../../helpers/heap.ts';
import { countingRuntime } from './countingRuntime.ts';
import { startEmulatorProcess } from './emulatorProcess.ts';
import type { EmulatorProcess } from './emulatorProcess.ts';

/** Of each answer that is not read. */
const BODY_BYTES = 32_000_000;
const PIECE = 65_536;
const STALLED_MS = 5000;

const pieces = Array.from({ length: Math.ceil(BODY_BYTES / PIECE) }, () => 'x'.repeat(PIECE));
/** A body that is too long to end while nobody reads it. */
const LONG: FaultRule = {
  kind: 'bytes',
  model: 'long',
  times: 'always',
  headers: { 'content-type': 'text/event-stream' },
  chunks: [
    ...pieces.map((piece) => `data: {"choices":[{"index":0,"delta":{"content":"${piece}"}}]}\n\n`),
    'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n',
  ],
};

interface Bench {
  readonly emulator: EmulatorProcess;
  readonly server: Server;
  readonly port: number;
  /** How the streams ended, and how many run. */
  readonly outcomes: Record<string, number>;
  readonly running: () => number;
  readonly timers: () => number;
  close(): Promise<void>;
}

/** A server that answers `/<model>` from the emulator. */
async function bench(tokens: number): Promise<Bench> {
  const emulator = await startEmulatorProcess({ tokens, tokenMs: 20, maxRecords: 1, maxBodyBytes: 2 * BODY_BYTES });
  await emulator.script([LONG]);
  const openai = new OpenAI({ baseURL: emulator.baseURL, apiKey: 'none', maxRetries: 0 });
  const runtime = countingRuntime();
  const outcomes: Record<string, number> = {};
  let running = 0;
  const server = createServer((request, response) => {
    const model = request.url?.slice(1) ?? '';
    running++;
    chat(openai, { model, messages: [{ role: 'user', content: 'Hello' }] }, { runtime })
      .pipe(
        finalize(() => running--),
        pipeToResponse(response, { runtime, maxStalledMs: STALLED_MS }),
      )
      .subscribe(({ outcome }) => (outcomes[outcome] = (outcomes[outcome] ?? 0) + 1));
  });
  server.listen(0, '127.0.0.1', 4096);
  await once(server, 'listening');
  return {
    emulator,
    server,
    port: (server.address() as AddressInfo).port,
    outcomes,
    running: () => running,
    timers: () => runtime.pending,
    async close() {
      server.closeAllConnections();
      server.close();
      await emulator.close();
    },
  };
}

/** A client by hand, which shows what its socket does; settled when the first event has come. */
async function reader(port: number, model: string): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => {});
  socket.write(`GET /${model} HTTP/1.1\r\nhost: localhost\r\n\r\n`);
  let text = '';
  while (!text.includes('event: delta')) text += String((await once(socket, 'data'))[0]);
  return socket;
}

async function until(done: () => boolean | Promise<boolean>, withinMs: number): Promise<void> {
  const giveUpAtMs = performance.now() + withinMs;
  while (!(await done()) && performance.now() < giveUpAtMs) await new Promise((resolve) => setTimeout(resolve, 50));
}

export interface Leaving {
  readonly clients: number;
  readonly outcomes: Readonly<Record<string, number>>;
  readonly running: number;
  readonly timers: number;
  /** As the provider sees it. */
  readonly upstreamRunning: number;
  readonly upstreamAborts: number;
  readonly connections: number;
  /** Bytes of heap for each client, against the state after as many others. */
  readonly heapPerClient: number;
}

/** `clients` readers that leave in mid-stream, some at a time, and what is left then. */
export async function leaving(clients: number, atOnce = 50): Promise<Leaving> {
  const { emulator, server, port, outcomes, running, timers, close } = await bench(500);
  const round = async (): Promise<void> => {
    for (let done = 0; done < clients; done += atOnce) {
      const count = Math.min(atOnce, clients - done);
      const sockets = await Promise.all(Array.from({ length: count }, () => reader(port, 'm')));
      for (const socket of sockets) socket.destroy();
    }
    await until(async () => running() === 0 && (await emulator.report()).running === 0, 10_000);
  };
  try {
    await round();
    const before = await heapInUse();
    await round();
    const heapPerClient = ((await heapInUse()) - before) / clients;
    const { running: upstreamRunning, aborts: upstreamAborts } = await emulator.report();
    const connections = await new Promise<number>((resolve) => server.getConnections((_, count) => resolve(count)));
    return {
      clients: 2 * clients,
      outcomes,
      running: running(),
      timers: timers(),
      upstreamRunning,
      upstreamAborts,
      connections,
      heapPerClient,
    };
  } finally {
    await close();
  }
}

export interface Stalling {
  readonly clients: number;
  readonly bodyBytes: number;
  /** Bytes of memory for each client that does not read: heap and buffers of the server, the answer so far included. */
  readonly memoryPerClient: number;
  /** What the provider could get rid of for each. */
  readonly takenPerClient: number;
  /** Milliseconds for the answers of others: without any that stall, and beside them. Medians. */
  readonly aloneMs: number;
  readonly besideMs: number;
  readonly outcomes: Readonly<Record<string, number>>;
  readonly running: number;
  readonly upstreamRunning: number;
  readonly timers: number;
}

/** `clients` readers that stop after the first event, beside others that read. */
export async function stalling(clients: number, others = 20): Promise<Stalling> {
  const { emulator, port, outcomes, running, timers, close } = await bench(20);
  const readOthers = async (): Promise<number> => {
    const times = Array.from({ length: others }, async () => {
      const startMs = performance.now();
      await (await fetch(`http://127.0.0.1:${port}/m`)).text();
      return performance.now() - startMs;
    });
    return (await Promise.all(times)).sort((a, b) => a - b)[Math.floor(others / 2)] as number;
  };
  try {
    await readOthers();
    const aloneMs = await readOthers();
    const before = await memoryInUse();
    const stopped: Socket[] = [];
    for (let at = 0; at < clients; at += 25) {
      const sockets = await Promise.all(
        Array.from({ length: Math.min(25, clients - at) }, async () => {
          const socket = await reader(port, 'long');
          return socket.pause();
        }),
      );
      stopped.push(...sockets);
    }
    const bytesBefore = (await emulator.report()).bytes;
    const besideMs = await readOthers();
    const memoryPerClient = ((await memoryInUse()) - before) / clients;
    const takenPerClient = bytesBefore / clients;
    await until(async () => running() === 0 && (await emulator.report()).running === 0, 6 * STALLED_MS);
    const { running: upstreamRunning } = await emulator.report();
    for (const socket of stopped) socket.destroy();
    return {
      clients,
      bodyBytes: BODY_BYTES,
      memoryPerClient,
      takenPerClient,
      aloneMs,
      besideMs,
      outcomes,
      running: running(),
      upstreamRunning,
      timers: timers(),
    };
  } finally {
    await close();
  }
}

async function memoryInUse(): Promise<number> {
  const heap = await heapInUse();
  return heap + process.memoryUsage().external;
}
