import type { Demand } from '../core/attempt.ts';
import type { AnswerDecoder } from './AnswerDecoder.ts';
import { END, readerOf } from './bodyReads.ts';
import type { BodyReader, Read } from './bodyReads.ts';
import { discard } from './readBounded.ts';

/** The body of an answer with a good status: read at the consumer's pace, and passed on to what decodes it. */
export class AnswerBody {
  readonly #decoder: AnswerDecoder;
  readonly #reader: BodyReader | undefined;
  readonly #demand: Demand | undefined;
  /** Ends a wait for the consumer that has left. */
  #wake: (() => void) | undefined;
  #left = false;

  constructor(body: unknown, decoder: AnswerDecoder, demand: Demand | undefined) {
    this.#decoder = decoder;
    this.#reader = readerOf(body);
    this.#demand = demand;
  }

  /** The next read; also when nobody listens. No async function: a promise of its own for each read would show. */
  pull(): Promise<Read> {
    const reader = this.#reader;
    if (reader === undefined) return Promise.resolve(END);
    const wait = this.#left ? undefined : this.#demand?.ready();
    return wait === undefined ? reader.read() : Promise.race([wait, this.#leaving()]).then(() => reader.read());
  }

  /** Passes on what was read. Returns whether more may come. */
  take({ done, value }: Read): boolean {
    if (done) this.#decoder.end();
    else this.#decoder.push(value);
    return !done;
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

  #leaving(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }
}
