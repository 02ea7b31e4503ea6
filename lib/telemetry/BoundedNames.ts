/** What names beyond the bound are counted under. */
export const OTHER = 'other';

/**
 * Keeps the number of different names small, whatever callers send: the first so many keep their own, all others are one.
 * Nothing is forgotten, as the series of a name stays for good too.
 */
export class BoundedNames {
  readonly #max: number;
  readonly #names = new Set<string>();

  constructor(max: number) {
    this.#max = max;
  }

  of(name: string): string;
  of(name: string | undefined): string | undefined;
  of(name: string | undefined): string | undefined {
    if (name === undefined || this.#names.has(name)) return name;
    if (this.#names.size >= this.#max) return OTHER;
    this.#names.add(name);
    return name;
  }
}
