import type { LimitStore, SharedSlots } from '../../limits/LimitStore.ts';

/** A ceiling that all processes share, as far as there is one. */
export class Ceiling {
  readonly #name: string;
  readonly #store: LimitStore;
  readonly #changed: () => void;
  #slots: SharedSlots | undefined;
  #used = { taken: 0, wanted: 0 };

  constructor(name: string, store: LimitStore, changed: () => void) {
    this.#name = name;
    this.#store = store;
    this.#changed = changed;
  }

  /** What this process may have taken now. */
  get have(): number {
    return this.#slots?.have ?? Infinity;
  }

  /** Why nobody may have any. */
  get refusing(): string | undefined {
    return this.#slots?.refusing;
  }

  /** `Infinity` for none. */
  reload(limit: number): void {
    if (limit === Infinity) {
      this.close();
    } else if (this.#slots) this.#slots.reload(limit);
    else {
      this.#slots = this.#store.slots(this.#name, limit);
      this.#slots.onChange = this.#changed;
      this.#slots.use(this.#used.taken, this.#used.wanted);
    }
  }

  use(taken: number, wanted: number): void {
    if (this.#used.taken === taken && this.#used.wanted === wanted) return;
    this.#used = { taken, wanted };
    this.#slots?.use(taken, wanted);
  }

  close(): void {
    // Slots keep what is taken until they are told that it is not: nobody would tell them any more.
    this.#slots?.use(0, 0);
    this.#slots?.close();
    this.#slots = undefined;
  }
}
