import type { Attempt, WireEvent } from '../core/attempt.ts';
import { SluiceError } from '../core/errors.ts';
import type { Runtime } from '../core/runtime.ts';
import { headerOf } from '../wire/headers.ts';
import type { HeaderReader } from '../wire/headers.ts';
import { RepeatedChunk } from '../wire/RepeatedChunk.ts';
import { SseDecoder } from '../wire/SseDecoder.ts';
import type { SseHandlers } from '../wire/SseDecoder.ts';
import { Utf8Reads } from '../wire/Utf8Reads.ts';
import { firstByte } from './bodyReads.ts';
import { isUsageReport } from './chunkFacts.ts';
import { invalidBody } from './failures.ts';
import type { AboutAttempt } from './failures.ts';
import { RepeatedData } from './RepeatedData.ts';
import { asChunk } from './wholeAnswer.ts';

/** Most that is read of a page that stands where the answer should. */
const MAX_PAGE_BYTES = 64 * 1024;

const [OPEN_BRACE, OPEN_BRACKET, LESS_THAN] = [0x7b, 0x5b, 0x3c];

const DONE: WireEvent = Object.freeze({ kind: 'done' });
const COMMENT: WireEvent = Object.freeze({ kind: 'comment' });

/** Events of the Responses API after which nothing comes. */
const TERMINAL: ReadonlySet<unknown> = new Set([
  'response.completed',
  'response.failed',
  'response.incomplete',
  'error',
]);

export interface AnswerDecoderOptions {
  /** Largest event, or whole answer. */
  readonly maxBytes: number;
  readonly about: AboutAttempt;
  readonly headers: HeaderReader;
  readonly runtime: Runtime;
}

/** Who hears what an answer holds. */
export interface AnswerReceiver {
  next(event: WireEvent): void;
}

/**
 * Turns the bytes of an answer with a good status into what they hold. `push` and `end` throw SluiceError
 * `upstream_body_invalid` where that is no answer; it is of no further use then.
 */
export class AnswerDecoder implements SseHandlers {
  readonly #api: Attempt['api'];
  readonly #stream: boolean;
  /** Undefined where nobody is there any more. */
  #receiver: AnswerReceiver | undefined;
  readonly #options: AnswerDecoderOptions;
  #holds: 'nothing' | 'events' | 'json' | 'page' = 'nothing';
  #sse: SseDecoder | undefined;
  readonly #repeated: RepeatedChunk | undefined;
  #events = 0;
  /** Of a text that is no event stream. */
  #utf8: Utf8Reads | undefined;
  #text = '';
  #size = 0;
  #ended = false;

  constructor(
    { api, stream }: Pick<Attempt, 'api' | 'stream'>,
    receiver: AnswerReceiver | undefined,
    options: AnswerDecoderOptions,
  ) {
    this.#api = api;
    this.#stream = stream;
    this.#repeated = api === 'chat' ? new RepeatedChunk() : undefined;
    this.#receiver = receiver;
    this.#options = options;
  }

  /** Passes on nothing more, whatever still comes. Returns whether what was passed on last may be the last event. */
  leave(): boolean {
    this.#receiver = undefined;
    return this.#ended;
  }

  push(bytes: Uint8Array): void {
    if (this.#receiver === undefined) return;
    if (this.#holds === 'nothing') {
      // Blank lines keep a connection alive, and say nothing of what follows.
      const byte = firstByte(bytes);
      if (byte === undefined) return;
      this.#begin(byte);
    }
    if (this.#sse !== undefined) this.#sse.push(bytes);
    else this.#keep(bytes);
  }

  /** The body came to its clean end. */
  end(): void {
    if (this.#receiver === undefined) return;
    switch (this.#holds) {
      case 'events':
        return this.#endEvents();
      case 'json':
        return this.#whole(this.#endText());
      case 'page':
        throw this.#invalid(this.#endText());
      case 'nothing':
    }
  }

  #begin(byte: number): void {
    const stream = this.#stream;
    if (stream && byte === LESS_THAN) this.#holds = 'page';
    else if (!stream || byte === OPEN_BRACE || byte === OPEN_BRACKET) this.#holds = 'json';
    else {
      this.#holds = 'events';
      this.#sse = new SseDecoder(this, { maxEventBytes: this.#options.maxBytes });
    }
  }

  /** For the decoder of the event stream. */
  comment(): void {
    this.#events++;
    this.#receiver?.next(COMMENT);
  }

  /** For the decoder of the event stream. */
  event(data: string, event: string | undefined): void {
    this.#events++;
    const receiver = this.#receiver;
    if (receiver === undefined) return;
    const added = event === undefined ? this.#repeated?.textOf(data) : undefined;
    if (added !== undefined) {
      this.#ended = false;
      receiver.next(new RepeatedData(data, added, this.#repeated?.mould));
      return;
    }
    if (data.startsWith('[DONE]')) {
      this.#ended = true;
      receiver.next(DONE);
      return;
    }
    const value = this.#parsed(data, event);
    if (value === undefined) return;
    if (event === undefined) this.#repeated?.learn(data, value);
    this.#ended = this.#api === 'chat' ? isUsageReport(value) : isTerminal(value);
    receiver.next({ kind: 'data', value, event, size: data.length, text: data });
  }

  #parsed(data: string, event: string | undefined): unknown {
    try {
      return JSON.parse(data);
    } catch {
      if (event === 'error') return { error: { message: data } };
      if (event === 'ping') return undefined;
      const { status, requestId } = this.#options.about;
      throw new SluiceError('upstream_body_invalid', 'an event of the stream is not JSON', { status, requestId });
    }
  }

  #endEvents(): void {
    this.#sse?.end();
    // Nothing at all, and not said to be an event stream: it is something else rather than a stream that was cut.
    if (this.#events === 0 && !headerOf(this.#options.headers, 'content-type')?.includes('event-stream')) {
      throw this.#invalid('');
    }
  }

  #keep(bytes: Uint8Array): void {
    const { maxBytes, about } = this.#options;
    this.#size += bytes.length;
    if (this.#holds === 'page' && this.#size > MAX_PAGE_BYTES) throw this.#invalid(this.#endText());
    if (this.#size > maxBytes) {
      const { status, requestId } = about;
      const fields = { status, requestId, limit: maxBytes };
      throw new SluiceError('upstream_body_invalid', `the answer is above ${maxBytes} bytes`, fields);
    }
    this.#text += (this.#utf8 ??= new Utf8Reads()).decode(bytes);
  }

  #endText(): string {
    return this.#text + (this.#utf8?.end() ?? '');
  }

  #whole(text: string): void {
    const value = this.#wholeValue(text);
    if (value === undefined) throw this.#invalid(text);
    // What was made into a chunk is not what came.
    const kept = this.#stream ? undefined : text;
    this.#receiver?.next({ kind: 'data', value, event: undefined, size: text.length, text: kept });
  }

  #wholeValue(text: string): unknown {
    try {
      const value: unknown = JSON.parse(text);
      return this.#stream ? asChunk(this.#api, value) : identified(value, this.#options.about.requestId);
    } catch {
      return undefined;
    }
  }

  #invalid(text: string): SluiceError {
    const { about, headers, runtime } = this.#options;
    return invalidBody(text, { status: about.status ?? 200, headers }, about, runtime.clock.wallNow());
  }
}

function isTerminal(value: unknown): boolean {
  return TERMINAL.has((Object(value) as { readonly type?: unknown }).type);
}

/** As the SDK does to what it parses. */
function identified(value: unknown, requestId: string | undefined): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.defineProperty(value, '_request_id', { value: requestId ?? null, enumerable: false });
}
