import { nonEmpty, wholeNumber } from '../core/checks.ts';

/** Something that can be forgotten while nobody uses it. */
export interface Forgettable {
  readonly idle: boolean;
}

/** One `T` a key, made when first used. Beyond `maxKeys`, those used least recently are forgotten once they are idle. */
export class Keyed<T extends Forgettable> {
  readonly #make: (key: string) => T;
  readonly #maxKeys: number;
  /** The least recently used first. */
  readonly #entries = new Map<string, T>();

  constructor(make: (key: string) => T, maxKeys: number) {
    this.#make = make;
    this.#maxKeys = wholeNumber('maxKeys', maxKeys);
  }

  /** Finds the entry anew each time it is called, so that what is kept is never a forgotten one. */
  at(key: string): () => T {
    nonEmpty('key', key);
    return () => this.#use(key);
  }

  #use(key: string): T {
    const known = this.#entries.get(key);
    this.#entries.delete(key);
    const entry = known ?? this.#make(key);
    // Stryker disable next-line ConditionalExpression: it would only look for idle ones sooner
    if (known === undefined) this.#forget();
    this.#entries.set(key, entry);
    return entry;
  }

  #forget(): void {
    if (this.#entries.size < this.#maxKeys) return;
    for (const [key, { idle }] of this.#entries) {
      if (idle) this.#entries.delete(key);
      if (this.#entries.size < this.#maxKeys) return;
    }
  }
}
