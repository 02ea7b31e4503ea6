import type { Answer } from '../../lib/core/answer.ts';
import type { SluiceError } from '../../lib/core/errors.ts';
import { ChatReader } from '../../lib/wire/ChatReader.ts';
import type { ChunkReader, ReaderContext } from '../../lib/wire/ChunkReader.ts';
import { SseDecoder } from '../../lib/wire/SseDecoder.ts';
import type { SseDecoderOptions } from '../../lib/wire/SseDecoder.ts';

export const CONTEXT: ReaderContext = { model: 'm1', status: 200, requestId: undefined, choices: 1 };

export interface SseEvents {
  readonly events: readonly (readonly [data: string, event: string | undefined])[];
  readonly comments: number;
}

/** Every event that comes out of `reads`. */
export function decode(reads: Iterable<Uint8Array>, options?: SseDecoderOptions): SseEvents {
  const events: [string, string | undefined][] = [];
  let comments = 0;
  const handlers = {
    event: (data: string, name: string | undefined) => void events.push([data, name]),
    comment: () => void comments++,
  };
  const decoder = new SseDecoder(handlers, options);
  for (const read of reads) decoder.push(read);
  decoder.end();
  return { events, comments };
}

export interface SseReading {
  readonly events: number;
  readonly answer: Answer;
  readonly reader: ChunkReader;
  readonly error: SluiceError | undefined;
  /** For each event that is JSON, whether it held content. */
  readonly verdicts: readonly string[];
}

/** Decodes and reads a whole stream, as a source does. */
export function readSse(reads: Iterable<Uint8Array>, reader: ChunkReader = new ChatReader(CONTEXT)): SseReading {
  const { events } = decode(reads);
  const verdicts: string[] = [];
  let error: SluiceError | undefined;
  for (const [data, name] of events) {
    if (data === '[DONE]') {
      reader.readDone();
      continue;
    }
    const verdict = reader.read(JSON.parse(data), name);
    if (typeof verdict !== 'string') error ??= verdict;
    verdicts.push(typeof verdict === 'string' ? verdict : verdict.code);
  }
  return { events: events.length, answer: reader.partial(), reader, error, verdicts };
}

/** `bytes` cut after every `size` bytes. */
export function* cut(bytes: Uint8Array, size: number): Generator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

export function utf8(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

/** An event stream of chat chunks, ended by `[DONE]`. */
export function sseOf(...chunks: readonly unknown[]): Uint8Array {
  return utf8([...chunks.map((chunk) => JSON.stringify(chunk)), '[DONE]'].map((data) => `data: ${data}\n\n`).join(''));
}
