import type { WireData } from '../core/attempt.ts';

/** A chunk like the one before it, but for its text. Parsed only for those who ask. */
export class RepeatedData implements WireData {
  readonly kind = 'data';
  readonly event = undefined;
  readonly text: string;
  readonly added: string;
  #value: unknown;

  constructor(text: string, added: string) {
    this.text = text;
    this.added = added;
  }

  get size(): number {
    return this.text.length;
  }

  get value(): unknown {
    return (this.#value ??= JSON.parse(this.text) as unknown);
  }
}
