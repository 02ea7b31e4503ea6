import type { WireData } from '../core/attempt.ts';
import type { ChunkMould } from '../wire/ChunkMould.ts';

/** A chunk like the one before it, but for its text. Made only for those who ask. */
export class RepeatedData implements WireData {
  readonly kind = 'data';
  readonly event = undefined;
  readonly text: string;
  readonly added: string;
  readonly #mould: ChunkMould | undefined;
  #value: unknown;

  constructor(text: string, added: string, mould: ChunkMould | undefined) {
    this.text = text;
    this.added = added;
    this.#mould = mould;
  }

  get size(): number {
    return this.text.length;
  }

  get value(): unknown {
    return (this.#value ??= this.#mould ? this.#mould.cast(this.text, this.added) : (JSON.parse(this.text) as unknown));
  }
}
