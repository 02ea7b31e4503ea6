import { ownText } from './ownText.ts';

type Fields = Readonly<Record<string, unknown>>;

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
  readonly #chunk: Fields;
  readonly #choice: Fields;
  readonly #delta: Fields;
  readonly #padding: Padding | undefined;

  private constructor(chunk: Fields, choice: Fields, delta: Fields, padding: Padding | undefined) {
    // Copies: what was parsed belongs to whoever got it.
    this.#chunk = { ...chunk };
    this.#choice = { ...choice };
    this.#delta = { ...delta };
    this.#padding = padding;
  }

  /** Undefined: something in it has parts of its own, which its copies would share. */
  static of(chunk: Fields, choice: Fields, delta: Fields, padding: Padding | undefined): ChunkMould | undefined {
    const plain = isPlainBut('choices', chunk) && isPlainBut('delta', choice) && isPlainBut('', delta);
    return plain ? new ChunkMould(chunk, choice, delta, padding) : undefined;
  }

  /** The chunk that `json` stands for, with that text. */
  cast(json: string, text: string): unknown {
    // Fields that are written anew stay where they stood.
    const delta = { ...this.#delta, content: text };
    const choices = [{ ...this.#choice, delta }];
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
