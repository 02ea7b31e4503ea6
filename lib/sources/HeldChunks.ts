/** Chunks without content, kept until it is known that the attempt leads to something. Bounded in number and size. */
export class HeldChunks<T> {
  readonly #maxChunks: number;
  readonly #maxSize: number;
  #chunks: T[] = [];
  #size = 0;
  holding = true;

  constructor(maxChunks: number, maxSize: number) {
    this.#maxChunks = maxChunks;
    this.#maxSize = maxSize;
  }

  /** Returns whether more may be held; if not, take them. */
  push(chunk: T, size = 0): boolean {
    this.#size += size;
    return this.#chunks.push(chunk) <= this.#maxChunks && this.#size <= this.#maxSize;
  }

  /** Ends the holding back. */
  take(): readonly T[] {
    const chunks = this.#chunks;
    this.#chunks = [];
    this.holding = false;
    return chunks;
  }
}
