import { restOf } from './Delivered.ts';
import type { Delivered } from './Delivered.ts';

/**
 * Reads an answer that was started over against what was delivered of the one before. What was is passed over, in whatever
 * pieces it comes; what is new is held back until all of it has come again.
 */
export class Resumption {
  readonly #delivered: Delivered;
  /** What is still to come again, by place. */
  readonly #expected: Map<string, string>;
  #held: unknown[] = [];
  #differs = false;

  constructor(delivered: Delivered) {
    this.#delivered = delivered;
    this.#expected = new Map(delivered.texts);
  }

  /** Whether all that was delivered has come again. */
  get caughtUp(): boolean {
    return this.#expected.size === 0 && !this.#differs;
  }

  /** What may be delivered now; `undefined` where this is another answer. */
  take(value: unknown): readonly unknown[] | undefined {
    const rest = restOf(this.#delivered.api, value, (place, text, kind) => this.#restOf(place, text, kind));
    if (this.#differs) return undefined;
    if (rest !== undefined) this.#held.push(rest);
    if (!this.caughtUp) return [];
    const held = this.#held;
    this.#held = [];
    return held;
  }

  #restOf(place: string, text: string, kind: 'text' | 'whole'): string {
    const expected = this.#expected.get(place);
    if (expected === undefined) return text;
    const length = Math.min(expected.length, text.length);
    const fits = kind === 'text' ? expected.slice(0, length) === text.slice(0, length) : expected.startsWith(text);
    if (!fits) this.#differs = true;
    if (expected.length === length) this.#expected.delete(place);
    else this.#expected.set(place, expected.slice(length));
    return text.slice(length);
  }
}
