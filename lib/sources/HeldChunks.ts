/** Chunks without content, kept until it is known that the attempt leads to something. Bounded in number and size. */
export class HeldChunks<T> {
  readonly chunks: T[] = [];
  readonly #maxChunks: number;
  readonly #maxSize: number;
  #size = 0;

  constructor(maxChunks: number, maxSize: number) {
    this.#maxChunks = maxChunks;
    this.#maxSize = maxSize;
  }

  /** Returns whether more may be held. */
  push(chunk: T, size = 0): boolean {
    this.#size += size;
    return this.chunks.push(chunk) <= this.#maxChunks && this.#size <= this.#maxSize;
  }
}
