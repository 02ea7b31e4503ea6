/** The newest `most` of a series of things that are numbered from 1. */
export class Recent<T> {
  readonly #most: number;
  readonly #items: T[] = [];
  #start = 0;
  #added = 0;

  constructor(most: number) {
    this.#most = most;
  }

  /** How many were ever added. */
  get added(): number {
    return this.#added;
  }

  /** Returns what fell out. */
  push(item: T): T | undefined {
    this.#added++;
    if (this.#items.length < this.#most) {
      this.#items.push(item);
      return undefined;
    }
    const gone = this.#items[this.#start];
    this.#items[this.#start] = item;
    this.#start = (this.#start + 1) % this.#most;
    return gone;
  }

  /** Those added after the first `added`, at most `most` of them; the newest last. */
  since(added: number, most: number = this.#most): readonly T[] {
    const { length } = this.#items;
    const wanted = Math.min(this.#added - added, most, length);
    return Array.from(
      { length: Math.max(0, wanted) },
      (_, i) => this.#items[(this.#start + length - wanted + i) % this.#most] as T,
    );
  }
}
