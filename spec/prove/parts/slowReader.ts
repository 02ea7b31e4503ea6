import type OpenAI from 'openai';
import { chat, text, toAsyncIterable } from '../../../lib/index.ts';
import type { Demand } from '../../../lib/index.ts';
import type { EmulatorReport, FaultRule } from '../../../lib/emulator/index.ts';

export interface Floodable {
  script(faults: readonly FaultRule[]): void | Promise<void>;
  reset(): void | Promise<void>;
  report(): EmulatorReport | Promise<EmulatorReport>;
}

export interface SlowReading {
  readonly bodyBytes: number;
  /** What the consumer had taken when it stopped. */
  readonly takenBytes: number;
  /** What the provider had got rid of by then, and could not get rid of more. */
  readonly writtenBytes: number;
  readonly stoppedMs: number;
  /** Pieces of content that came in all, and those that were not the next in order and whole. */
  readonly pieces: number;
  readonly wrong: number;
  readonly failure: unknown;
}

/** 64 KiB, less what stands around it. */
const PIECE = 65_536;
/** Far shorter than the consumer stops for: time in which it does not want more must not count. */
const IDLE_MS = 250;
const STOPS_MS = 1000;

const FILLER = 'x'.repeat(PIECE);

/** A whole answer of numbered pieces, each of {@link PIECE} characters. */
function numberedBody(pieces: number): FaultRule {
  const chunks = Array.from({ length: pieces }, (_, at) => [
    `data: {"choices":[{"index":0,"delta":{"content":"${at}:`,
    FILLER.slice(`${at}:`.length),
    '"}}]}\n\n',
  ]).flat();
  const last = 'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n';
  return { kind: 'bytes', chunks: [...chunks, last], headers: { 'content-type': 'text/event-stream' } };
}

/** How the consumer reads: `read` the next piece, and nothing is wanted until the next `read`. */
interface Reading {
  read(): Promise<string | undefined>;
}

export type Reader = (openai: OpenAI) => Reading;

const request = { model: 'm', messages: [{ role: 'user' as const, content: 'Hello' }] };
const timeouts = { idleMs: IDLE_MS };

/** A loop. */
export const looping: Reader = (openai) => {
  const iterator = toAsyncIterable(chat(openai, request, { timeouts }).pipe(text()), { bufferSize: 8 });
  return { read: async () => (await iterator.next()).value };
};

/** A subscriber that paces the body by hand. */
export const demanding: Reader = (openai) => {
  const held: string[] = [];
  let ended = false;
  let wake = (): void => {};
  let more = (): void => {};
  let failure: Error | undefined;
  let wanted = false;
  const demand: Demand = {
    ready: () => (wanted && held.length < 8 ? undefined : new Promise<void>((resolve) => (more = resolve))),
  };
  chat(openai, request, { timeouts, demand })
    .pipe(text())
    .subscribe({
      next(piece) {
        held.push(piece);
        wake();
      },
      error(error: Error) {
        failure = error;
        ended = true;
        wake();
      },
      complete() {
        ended = true;
        wake();
      },
    });
  return {
    async read() {
      while (held.length === 0 && !ended) {
        wanted = true;
        const woken = new Promise<void>((resolve) => (wake = resolve));
        more();
        await woken;
      }
      wanted = false;
      if (held.length === 0 && failure !== undefined) throw failure;
      return held.shift();
    },
  };
};

/** Takes a few pieces of a large answer, stops until the provider can write no more, and then takes the rest. */
export async function readSlowly(
  reader: Reader,
  openai: OpenAI,
  emulator: Floodable,
  bytes: number,
): Promise<SlowReading> {
  const count = Math.ceil(bytes / PIECE);
  await emulator.reset();
  await emulator.script([numberedBody(count)]);
  const reading = reader(openai);
  let pieces = 0;
  let wrong = 0;
  let takenBytes = 0;
  const take = async (): Promise<boolean> => {
    const piece = await reading.read();
    if (piece === undefined) return false;
    const right = piece.length === PIECE && piece.startsWith(`${pieces}:`);
    if (!right) wrong++;
    pieces++;
    takenBytes += piece.length;
    return true;
  };
  let failure: unknown;
  try {
    for (let i = 0; i < 10; i++) await take();
    const takenThen = takenBytes;
    const stoppedAtMs = performance.now();
    let written = -1;
    let stillSinceMs = stoppedAtMs;
    // Still for a while, whatever a busy machine takes for that.
    while (performance.now() - stillSinceMs < STOPS_MS / 2 || performance.now() - stoppedAtMs < STOPS_MS) {
      await new Promise((resolve) => setTimeout(resolve, 50));
      const { bytes: now } = await emulator.report();
      if (now !== written) stillSinceMs = performance.now();
      written = now;
    }
    const stoppedMs = performance.now() - stoppedAtMs;
    while (await take());
    const { bytes: bodyBytes } = await emulator.report();
    return { bodyBytes, takenBytes: takenThen, writtenBytes: written, stoppedMs, pieces, wrong, failure };
  } catch (error) {
    failure = error;
  }
  return { bodyBytes: NaN, takenBytes, writtenBytes: NaN, stoppedMs: NaN, pieces, wrong, failure };
}
