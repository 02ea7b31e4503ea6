import type { Attempt, WireHead } from '../core/attempt.ts';
import type { ChunkReader, ReaderContext } from '../wire/ChunkReader.ts';
import { ChatReader } from '../wire/ChatReader.ts';
import { ResponsesReader } from '../wire/ResponsesReader.ts';
import type { AboutAttempt } from './failures.ts';

/** What to ask, and by which API. */
export interface AttemptCall {
  readonly api: Attempt['api'];
  /** The body, as the caller wrote it. */
  readonly request: Readonly<Record<string, unknown>>;
  readonly stream: boolean;
  /** Stands for who answers, where what it refuses is to be remembered: for as long as this object lives. */
  readonly provider?: object | undefined;
  /** Emits what came off the wire (`WireData`) in place of the values in it, for those who pass it on. Default: false. */
  readonly wire?: boolean | undefined;
  /** Hears the head of each answer. */
  readonly onHead?: ((head: WireHead) => void) | undefined;
}

/** Reads the answer to `call`. */
export function chunkReader(call: AttemptCall, { model, status = 200, requestId }: AboutAttempt): ChunkReader {
  const { n } = call.request;
  const choices = typeof n === 'number' && n >= 1 ? n : 1;
  const context: ReaderContext = { model, status, requestId, choices };
  return call.api === 'chat' ? new ChatReader(context) : new ResponsesReader(context);
}
