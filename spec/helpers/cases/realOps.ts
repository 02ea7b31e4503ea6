import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import OpenAI from 'openai';
import { tap } from 'rxjs';
import type { Observable } from 'rxjs';
import type { ChatCompletionChunk } from 'openai/resources/chat/completions';
import { toAsyncIterable } from '../../../lib/operators/toAsyncIterable.ts';
import { withSignal } from '../../../lib/operators/withSignal.ts';
import { chat } from '../../../lib/sources/chat.ts';
import { rawServer } from '../rawServer.ts';
import type { RawExchange } from '../rawServer.ts';
import type { Op } from './bulkOps.ts';
import type { Step } from './callsCase.ts';

const MB = 1024 * 1024;

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Answers the only request by `answer` while `work` runs, over real sockets and in real time. */
async function answered<R>(
  answer: (exchange: RawExchange) => void,
  work: (stream$: Observable<ChatCompletionChunk>, exchange: () => RawExchange) => Promise<R>,
): Promise<R> {
  const server = await rawServer(answer);
  const unhandled: unknown[] = [];
  const onUnhandled = (reason: unknown): void => void unhandled.push(reason);
  process.on('unhandledRejection', onUnhandled);
  try {
    const client = new OpenAI({ apiKey: 'sk-case', baseURL: server.baseURL });
    const stream$ = chat(client, { model: 'm1', messages: [{ role: 'user', content: 'Hello' }] });
    const result = await work(stream$, () => server.exchanges[0] as RawExchange);
    await sleep(50);
    return { ...result, unhandledRejections: unhandled.length };
  } finally {
    process.off('unhandledRejection', onUnhandled);
    await server.close();
  }
}

const piece = (content: string): string =>
  `data: ${JSON.stringify({ id: 'c1', choices: [{ index: 0, delta: { content } }] })}\n\n`;

const endless = (exchange: RawExchange): void => {
  exchange.head();
  for (let at = 0; at < 5; at++) exchange.write(piece(`part ${at} `));
};

/** As much as the client takes, as fast as it does. */
async function pour(exchange: RawExchange, chunks: number, make: (at: number) => string): Promise<void> {
  exchange.head();
  let over = false;
  void exchange.closed.then(() => (over = true));
  for (let at = 0; at < chunks && !over; at++) {
    if (!exchange.write(make(at))) await Promise.race([exchange.drained(), exchange.closed]);
  }
  if (!over) exchange.end();
}

const abortStep = (steps: readonly Step[]): Step | undefined => steps.find(({ op }) => op === 'abort_stream');

/** Steps whose point is a real socket, a real clock or another process. */
export const realOps: Readonly<Record<string, Op>> = {
  async stream(_world, _step, { steps }) {
    const after = steps.find(({ after_chunks: chunks }) => chunks !== undefined) ?? abortStep(steps);
    return answered(endless, async (stream$, exchange) => {
      const controller = new AbortController();
      let chunks = 0;
      let errors = 0;
      await new Promise<void>((resolve) => {
        stream$.pipe(withSignal(controller.signal)).subscribe({
          next: () => ++chunks === (after?.after_chunks ?? 1) && controller.abort(),
          error: () => {
            errors++;
            resolve();
          },
        });
      });
      const { aborted } = await exchange().closed;
      return { errorNotifications: errors, upstreamAborted: aborted };
    });
  },

  async for_await_stream(_world, step, { upstream }) {
    if (step.delay_per_chunk_ms !== undefined) return slowLoop(step, upstream?.chunks ?? 1_000);
    return answered(endless, async (stream$, exchange) => {
      const chunks: unknown[] = [];
      for await (const chunk of toAsyncIterable(stream$)) {
        if (chunks.push(chunk) === step.break_after) break;
      }
      const { aborted } = await exchange().closed;
      return { upstreamAborted: aborted, errorNotifications: 0 };
    });
  },

  async gateway_stream(_world, _step, { upstream, steps }) {
    const { bytes = MB, chunk_bytes: chunkBytes = 1_024 } = upstream ?? {};
    const pauseMs = steps.find(({ op }) => op === 'wait_ms')?.ms ?? 1_000;
    const event = piece('x'.repeat(chunkBytes - piece('').length));
    return answered(
      (exchange) => void pour(exchange, bytes / chunkBytes, () => event),
      async (stream$, exchange) => {
        // A reader at its own pace stands for the gateway's client.
        const loop = toAsyncIterable(stream$);
        await loop.next();
        const before = process.memoryUsage.rss();
        await sleep(pauseMs);
        const rssGrowthMb = (process.memoryUsage.rss() - before) / MB;
        const upstreamBytes = exchange().written;
        await loop.return?.();
        return { rssGrowthMb, upstreamBytes };
      },
    );
  },

  // Part of the step before it.
  async client_pause_reading() {
    return {};
  },

  async child_process(_world, step) {
    const file = String((step as { readonly script?: string }).script).includes('drain') ? 'waitForQuota' : 'callOnce';
    const path = fileURLToPath(new URL(`../../fixtures/cases/${file}.ts`, import.meta.url));
    const child = spawn(process.execPath, [path], { stdio: ['ignore', 'pipe', 'inherit'] });
    let stdout = '';
    let saidAtMs = NaN;
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text;
      saidAtMs = performance.now();
    });
    const [exitCode] = (await once(child, 'close')) as [number];
    return { stdout: stdout.trim(), exitCode, exitWithinMs: performance.now() - saidAtMs };
  },
};

/** A loop slower than its stream: what waits for it, and whether anything is lost. */
async function slowLoop(step: Step, chunks: number): Promise<Record<string, unknown>> {
  const { delay_per_chunk_ms: delayMs = 1, stop_after_ms: stopMs = 500 } = step;
  return answered(
    (exchange) => void pour(exchange, chunks, (at) => piece(`${at} `)),
    async (stream$) => {
      let emitted = 0;
      let buffered = 0;
      const got: number[] = [];
      const startedAtMs = performance.now();
      for await (const chunk of toAsyncIterable(stream$.pipe(tap(() => emitted++)))) {
        got.push(Number(chunk.choices[0]?.delta.content));
        buffered = Math.max(buffered, emitted - got.length);
        if (performance.now() - startedAtMs > stopMs) break;
        await sleep(delayMs);
      }
      return { buffered, lost: got.filter((value, at) => value !== at).length };
    },
  );
}
