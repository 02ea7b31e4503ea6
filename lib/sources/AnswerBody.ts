import type { Subscriber } from 'rxjs';
import type { Attempt, WireEvent } from '../core/attempt.ts';
import { SluiceError } from '../core/errors.ts';
import { SseDecoder } from '../wire/SseDecoder.ts';
import { invalidBody } from './failures.ts';
import type { AboutAttempt } from './failures.ts';
import { discard } from './readBounded.ts';
import { asChunk } from './wholeAnswer.ts';

/** Most that is read of a body that is neither an event stream nor JSON. */
const MAX_FOREIGN_BYTES = 64 * 1024;

const [OPEN_BRACE, OPEN_BRACKET, LESS_THAN] = [0x7b, 0x5b, 0x3c];
/** Tab, line feed, carriage return, space, and the three bytes of a byte-order mark. */
const BLANK: ReadonlySet<number> = new Set([0x09, 0x0a, 0x0d, 0x20, 0xef, 0xbb, 0xbf]);

const DONE: WireEvent = Object.freeze({ kind: 'done' });
const COMMENT: WireEvent = Object.freeze({ kind: 'comment' });

/** Events of the Responses API after which nothing comes. */
const TERMINAL: ReadonlySet<unknown> = new Set([
  'response.completed',
  'response.failed',
  'response.incomplete',
  'error',
]);

interface AnswerBodyOptions {
  /** Largest event, or whole answer. */
  readonly maxBytes: number;
  readonly about: AboutAttempt;
  readonly wallNow: () => number;
}

/** The body of an answer with a good status: reads it at the consumer's pace and passes on what it holds. */
export class AnswerBody {
  readonly #attempt: Attempt;
  readonly #subscriber: Subscriber<WireEvent>;
  readonly #response: Response;
  readonly #options: AnswerBodyOptions;
  readonly #reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
  /** Ends a wait for the consumer that has left. */
  #wake: (() => void) | undefined;
  #left = false;
  /** The last event was passed on. */
  #ended = false;

  constructor(response: Response, attempt: Attempt, subscriber: Subscriber<WireEvent>, options: AnswerBodyOptions) {
    this.#response = response;
    this.#attempt = attempt;
    this.#subscriber = subscriber;
    this.#options = options;
    this.#reader = readerOf(response.body);
  }

  /** Passes everything on. Rejects with what breaks the body; resolves at its clean end, or once nobody listens. */
  async read(): Promise<void> {
    let first = await this.#pull();
    // Blank lines keep a connection alive, and say nothing of what follows.
    while (first !== undefined && firstByte(first) === undefined) first = await this.#pull();
    if (first === undefined) return;
    if (!this.#attempt.stream) return this.#wholeAnswer(await this.#rest(first, this.#options.maxBytes));
    switch (firstByte(first)) {
      case OPEN_BRACE:
      case OPEN_BRACKET:
        return this.#wholeAnswer(await this.#rest(first, this.#options.maxBytes));
      case LESS_THAN:
        throw this.#invalid(await this.#rest(first, MAX_FOREIGN_BYTES));
      default:
        return this.#events(first);
    }
  }

  /** Stops passing on. Returns whether the body is about to end by itself. */
  leave(): boolean {
    this.#left = true;
    this.#wake?.();
    return this.#ended;
  }

  cancel(): void {
    this.#left = true;
    this.#wake?.();
    discard(this.#reader);
  }

  async #events(first: Uint8Array): Promise<void> {
    let events = 0;
    const decoder = new SseDecoder(
      {
        event: (data, event) => {
          events++;
          this.#event(data, event);
        },
        comment: () => {
          events++;
          if (!this.#left) this.#subscriber.next(COMMENT);
        },
      },
      { maxEventBytes: this.#options.maxBytes },
    );
    for (let bytes: Uint8Array | undefined = first; bytes !== undefined; bytes = await this.#pull()) {
      if (!this.#left) decoder.push(bytes);
    }
    if (this.#left) return;
    decoder.end();
    const contentType = this.#response.headers.get('content-type');
    // Nothing at all, and not said to be an event stream: it is something else rather than a stream that was cut.
    if (events === 0 && !contentType?.includes('event-stream')) throw this.#invalid('');
  }

  #event(data: string, event: string | undefined): void {
    if (this.#left) return;
    if (data.startsWith('[DONE]')) {
      this.#ended = true;
      this.#subscriber.next(DONE);
      return;
    }
    const value = this.#parsed(data, event);
    if (value === undefined) return;
    if (this.#attempt.api === 'responses') this.#ended = TERMINAL.has((Object(value) as { type?: unknown }).type);
    this.#subscriber.next({ kind: 'data', value, event, size: data.length });
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

  #wholeAnswer(text: string): void {
    if (this.#left) return;
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch {
      throw this.#invalid(text);
    }
    const { api, stream } = this.#attempt;
    if (!stream) identify(value, this.#options.about.requestId);
    const chunk = stream ? asChunk(api, value) : value;
    if (chunk === undefined) throw this.#invalid(text);
    this.#subscriber.next({ kind: 'data', value: chunk, event: undefined, size: text.length });
  }

  /** `undefined` at the end. */
  async #pull(): Promise<Uint8Array | undefined> {
    if (this.#reader === undefined) return undefined;
    const wait = this.#left ? undefined : this.#attempt.demand?.ready();
    if (wait !== undefined) await Promise.race([wait, this.#leaving()]);
    const { done, value } = await this.#reader.read();
    return done ? undefined : value;
  }

  async #rest(first: Uint8Array, maxBytes: number): Promise<string> {
    const decoder = new TextDecoder();
    let size = 0;
    let text = '';
    for (let bytes: Uint8Array | undefined = first; bytes !== undefined; bytes = await this.#pull()) {
      size += bytes.length;
      if (size > maxBytes) {
        throw this.#invalid(text).with({ limit: maxBytes, retryable: false });
      }
      text += decoder.decode(bytes, { stream: true });
    }
    return text + decoder.decode();
  }

  #invalid(text: string): SluiceError {
    return invalidBody(text, this.#response, this.#options.about, this.#options.wallNow());
  }

  #leaving(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }
}

function readerOf(body: unknown): ReadableStreamDefaultReader<Uint8Array> | undefined {
  const stream = body as { getReader?: unknown; [Symbol.asyncIterator]?: unknown } | null | undefined;
  if (typeof stream?.getReader === 'function') return (stream as ReadableStream<Uint8Array>).getReader();
  // A `fetch` that is not of this platform may give a stream of another kind.
  if (typeof stream?.[Symbol.asyncIterator] === 'function') {
    return ReadableStream.from(stream as AsyncIterable<Uint8Array>).getReader();
  }
  return undefined;
}

/** The first that is no white space and not of a byte-order mark. */
function firstByte(bytes: Uint8Array): number | undefined {
  return bytes.find((byte) => !BLANK.has(byte));
}

/** As the SDK does to what it parses. */
function identify(value: unknown, requestId: string | undefined): void {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return;
  Object.defineProperty(value, '_request_id', { value: requestId ?? null, enumerable: false });
}
