import type { Attempt, WireEvent } from '../core/attempt.ts';
import { AnswerDecoder } from './AnswerDecoder.ts';
import { END, readerOf } from './bodyReads.ts';
import type { BodyReader, Read } from './bodyReads.ts';
import type { AboutAttempt } from './failures.ts';
import { discard } from './readBounded.ts';

interface AnswerBodyOptions {
  /** Largest event, or whole answer. */
  readonly maxBytes: number;
  readonly about: AboutAttempt;
  readonly wallNow: () => number;
}

/** The body of an answer with a good status: reads it at the consumer's pace and passes on what it holds. */
export class AnswerBody {
  readonly #attempt: Attempt;
  readonly #decoder: AnswerDecoder;
  readonly #reader: BodyReader | undefined;
  /** Ends a wait for the consumer that has left. */
  #wake: (() => void) | undefined;
  #left = false;

  constructor(response: Response, attempt: Attempt, next: (event: WireEvent) => void, options: AnswerBodyOptions) {
    this.#attempt = attempt;
    this.#decoder = new AnswerDecoder(attempt, next, { ...options, headers: response.headers });
    this.#reader = readerOf(response.body);
  }

  /** Passes everything on. Rejects with what breaks the body; resolves at its clean end, also when nobody listens. */
  async read(): Promise<void> {
    for (let read = await this.#pull(); !read.done; read = await this.#pull()) this.#decoder.push(read.value);
    this.#decoder.end();
  }

  /** Stops passing on. Returns whether the body is about to end by itself. */
  leave(): boolean {
    this.#left = true;
    this.#decoder.leave();
    this.#wake?.();
    return this.#decoder.ended;
  }

  cancel(): void {
    this.leave();
    discard(this.#reader);
  }

  /** No async function: a promise of its own for each read would show. */
  #pull(): Promise<Read> {
    const reader = this.#reader;
    if (reader === undefined) return Promise.resolve(END);
    const wait = this.#left ? undefined : this.#attempt.demand?.ready();
    return wait === undefined ? reader.read() : Promise.race([wait, this.#leaving()]).then(() => reader.read());
  }

  #leaving(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }
}
