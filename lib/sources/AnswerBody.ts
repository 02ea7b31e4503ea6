import type { Subscriber } from 'rxjs';
import type { Attempt, WireEvent } from '../core/attempt.ts';
import { SluiceError } from '../core/errors.ts';
import { SseDecoder } from '../wire/SseDecoder.ts';
import { END, firstByte, readerOf } from './bodyReads.ts';
import type { BodyReader, Read } from './bodyReads.ts';
import { isUsageReport } from './chunkFacts.ts';
import { invalidBody } from './failures.ts';
import type { AboutAttempt } from './failures.ts';
import { discard } from './readBounded.ts';
import { asChunk } from './wholeAnswer.ts';

/** Most that is read of a body that is neither an event stream nor JSON. */
const MAX_FOREIGN_BYTES = 64 * 1024;

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
  readonly #reader: BodyReader | undefined;
  /** Ends a wait for the consumer that has left. */
  #wake: (() => void) | undefined;
  #left = false;
  /** What was passed on last may be the last event. */
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
    while (!first.done && firstByte(first.value) === undefined) first = await this.#pull();
    if (first.done) return;
    const byte = firstByte(first.value);
    if (this.#attempt.stream && byte === LESS_THAN) throw this.#invalid(await this.#page(first));
    if (!this.#attempt.stream || byte === OPEN_BRACE || byte === OPEN_BRACKET) return this.#json(first);
    return this.#events(first);
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

  async #events(first: Read): Promise<void> {
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
    for (let read = first; !read.done; read = await this.#pull()) {
      if (!this.#left) decoder.push(read.value);
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
    this.#ended = this.#attempt.api === 'chat' ? isUsageReport(value) : isTerminal(value);
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

  async #json(first: Read): Promise<void> {
    const { maxBytes, about } = this.#options;
    const text = await this.#text(first, maxBytes);
    if (this.#left) return;
    if (text === undefined) {
      const { status, requestId } = about;
      const fields = { status, requestId, limit: maxBytes };
      throw new SluiceError('upstream_body_invalid', `the answer is above ${maxBytes} bytes`, fields);
    }
    const value = this.#whole(text);
    if (value === undefined) throw this.#invalid(text);
    this.#subscriber.next({ kind: 'data', value, event: undefined, size: text.length });
  }

  #whole(text: string): unknown {
    const { api, stream } = this.#attempt;
    try {
      const value: unknown = JSON.parse(text);
      return stream ? asChunk(api, value) : identified(value, this.#options.about.requestId);
    } catch {
      return undefined;
    }
  }

  /** A page that stands where the answer should: as much of it as helps to tell what it is. */
  async #page(first: Read): Promise<string> {
    return (await this.#text(first, MAX_FOREIGN_BYTES)) ?? new TextDecoder().decode(first.value);
  }

  /** `undefined` where it is larger than `maxBytes`. */
  async #text(first: Read, maxBytes: number): Promise<string | undefined> {
    const decoder = new TextDecoder();
    let size = 0;
    let text = '';
    for (let read = first; !read.done; read = await this.#pull()) {
      size += read.value.length;
      if (size > maxBytes) return undefined;
      text += decoder.decode(read.value, { stream: true });
    }
    return text + decoder.decode();
  }

  /** No async function: a promise of its own for each read would show. */
  #pull(): Promise<Read> {
    const reader = this.#reader;
    if (reader === undefined) return Promise.resolve(END);
    const wait = this.#left ? undefined : this.#attempt.demand?.ready();
    return wait === undefined ? reader.read() : Promise.race([wait, this.#leaving()]).then(() => reader.read());
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

function isTerminal(value: unknown): boolean {
  return TERMINAL.has((Object(value) as { readonly type?: unknown }).type);
}

/** As the SDK does to what it parses. */
function identified(value: unknown, requestId: string | undefined): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.defineProperty(value, '_request_id', { value: requestId ?? null, enumerable: false });
}
