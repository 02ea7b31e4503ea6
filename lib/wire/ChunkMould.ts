import type { Fields } from './errorBody.ts';
import { ownText } from './ownText.ts';

/** A chunk with nothing in it but a piece of text for the first choice. */
export interface TextChunk extends Fields {
  readonly choices: readonly [Fields & { readonly delta: Fields }];
}

/** Where the padding of a chunk stands in its JSON. */
export interface Padding {
  /** Characters before it, but for those of the text. */
  readonly before: number;
  readonly after: number;
}

/**
 * Makes chunks that differ from one that was parsed in their text and padding alone. Each is an object of its own to its last
 * field, as a parsed one is, for a twentieth of what parsing costs.
 */
export class ChunkMould {
  readonly #chunk: TextChunk;
  readonly #padding: Padding | undefined;

  private constructor(chunk: TextChunk, padding: Padding | undefined) {
    this.#chunk = chunk;
    this.#padding = padding;
  }

  /** Keeps `chunk`. Undefined: something in it has parts of its own, which its copies would share. */
  static of(chunk: TextChunk, padding: Padding | undefined): ChunkMould | undefined {
    const [choice] = chunk.choices;
    const plain = isPlainBut('choices', chunk) && isPlainBut('delta', choice) && isPlainBut('', choice.delta);
    return plain ? new ChunkMould(chunk, padding) : undefined;
  }

  /** The chunk that `json` stands for, with that text. */
  cast(json: string, text: string): unknown {
    const [choice] = this.#chunk.choices;
    // Fields that are written anew stay where they stood.
    const choices = [{ ...choice, delta: { ...choice.delta, content: text } }];
    if (this.#padding === undefined) return { ...this.#chunk, choices };
    const { before, after } = this.#padding;
    const obfuscation = ownText(json, before + text.length, json.length - after);
    return { ...this.#chunk, choices, obfuscation };
  }
}

function isPlainBut(name: string, fields: Fields): boolean {
  for (const key in fields) {
    const value = fields[key];
    if (key !== name && typeof value === 'object' && value !== null) return false;
  }
  return true;
}
