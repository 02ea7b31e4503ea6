import type { StoreLink } from './StoreLink.ts';

/** Among how many processes a limit is divided while the store is lost. */
export class Sharers {
  readonly #link: StoreLink;
  readonly #processes: number | undefined;
  readonly #memberMs: number;
  #counted = 0;
  #countedAtMs = -Infinity;

  /** `processes`: how many there are at most, if that is known. A number that was heard is good for `memberMs`. */
  constructor(link: StoreLink, processes: number | undefined, memberMs: number) {
    this.#link = link;
    this.#processes = processes;
    this.#memberMs = memberMs;
  }

  /** The store has counted them. */
  heard(processes: number): void {
    this.#counted = processes;
    this.#countedAtMs = this.#link.runtime.clock.now();
  }

  /** Undefined: nobody knows, or none may take a share. */
  get count(): number | undefined {
    if (this.#link.loss === 'refuse') return undefined;
    const recent = this.#counted > 0 && this.#link.runtime.clock.now() - this.#countedAtMs < this.#memberMs;
    return recent ? Math.max(this.#processes ?? 1, this.#counted) : this.#processes;
  }
}
