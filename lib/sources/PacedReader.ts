import type { Demand } from '../core/attempt.ts';
import { END, readerOf } from './bodyReads.ts';
import type { BodyReader, Read } from './bodyReads.ts';
import { discard } from './readBounded.ts';

/** Reads a body at the consumer's pace. */
export class PacedReader {
  readonly #reader: BodyReader | undefined;
  #demand: Demand | undefined;
  /** Ends a wait for the consumer that has left. */
  #wake: (() => void) | undefined;

  constructor(body: unknown, demand: Demand | undefined) {
    this.#reader = readerOf(body);
    this.#demand = demand;
  }

  /** No async function: a promise of its own for each read would show. */
  read(): Promise<Read> {
    const reader = this.#reader;
    if (reader === undefined) return Promise.resolve(END);
    const wait = this.#demand?.ready();
    return wait === undefined ? reader.read() : Promise.race([wait, this.#leaving()]).then(() => reader.read());
  }

  /** Reads on without waiting for anybody. */
  leave(): void {
    this.#demand = undefined;
    this.#wake?.();
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
