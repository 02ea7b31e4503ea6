import { ChunkMould } from './ChunkMould.ts';
import type { TextChunk } from './ChunkMould.ts';
import { isFields } from './errorBody.ts';
import { ownText } from './ownText.ts';

/** Where a chunk's own text begins; and a text of random length that OpenAI adds, so that lengths on the wire tell nothing. */
const TEXT = /"content":\s*"/;
const PADDING = /"obfuscation":\s*"/;

const PROBE = 'sluice';
const QUOTE = '"';
const [SPACE, BACKSLASH] = [0x20, 0x5c];

/** Where a provider writes each chunk in a way of its own, looking for what repeats is given up. */
const FREE_LESSONS = 4;

/**
 * Knows chat chunks that are the last one over again, but for their text: nearly all of a stream. Comparing a chunk costs a
 * tenth of parsing it. What it says was proved on the chunk that it learned from, by parsing that with another text in the
 * same place; chunks with escapes in their text are left to the parser.
 */
export class RepeatedChunk {
  /** Up to the text; empty where nothing is known. */
  #head = '';
  /** From the text to the padding; empty where there is none. */
  #middle = '';
  #tail = '';
  #mould: ChunkMould | undefined;
  #lessons = 0;
  #known = 0;

  /** The text of a chunk that is in all else like the last one. Never empty. */
  textOf(data: string): string | undefined {
    const from = this.#head.length;
    if (from === 0) return undefined;
    const to = data.indexOf(QUOTE, from);
    if (to > from && data.slice(0, from) === this.#head && isPlain(data, from, to) && this.#endsAlike(data, to)) {
      this.#known++;
      return ownText(data, from, to);
    }
    // What is like an older chunk is not like the last one.
    this.#head = '';
    return undefined;
  }

  /** Makes the chunks of which the text is known now. Undefined: they are to be parsed. */
  get mould(): ChunkMould | undefined {
    return this.#mould;
  }

  /** `data` was parsed, and is `chunk`. */
  learn(data: string, chunk: unknown): void {
    if (this.#lessons <= FREE_LESSONS + this.#known / 2 && isTextOnly(chunk)) this.#study(data);
  }

  #study(data: string): void {
    const from = endOf(TEXT, data, 0);
    if (from === 0) return;
    const to = endOfString(data, from);
    this.#lessons++;
    const padFrom = endOf(PADDING, data, to);
    const padTo = data.indexOf(QUOTE, padFrom);
    const padded = padFrom > 0 && isPlain(data, padFrom, padTo);
    const middle = padded ? data.slice(to, padFrom) : '';
    const tail = data.slice(padded ? padTo : to);
    const probe = data.slice(0, from) + PROBE + (padded ? middle + PROBE : '') + tail;
    const probed = proved(probe, padded);
    if (probed === undefined) return;
    // Cut from the probe: pieces of `data` would keep all that was read with it.
    this.#head = probe.slice(0, from);
    this.#middle = probe.slice(from + PROBE.length, from + PROBE.length + middle.length);
    this.#tail = probe.slice(probe.length - tail.length);
    const padding = padded ? { before: from + middle.length, after: tail.length } : undefined;
    this.#mould = ChunkMould.of(probed, padding);
  }

  #endsAlike(data: string, to: number): boolean {
    const padFrom = to + this.#middle.length;
    if (data.slice(to, padFrom) !== this.#middle) return false;
    // Without padding this is the end of the text.
    const at = data.indexOf(QUOTE, padFrom);
    return isPlain(data, padFrom, at) && data.slice(at) === this.#tail;
  }
}

/** Behind the first match at or after `at`; 0 where there is none. */
function endOf(pattern: RegExp, data: string, at: number): number {
  const found = pattern.exec(data.slice(at));
  return found === null ? 0 : at + found.index + found[0].length;
}

/** Where the string of JSON ends that goes on at `from`. */
function endOfString(json: string, from: number): number {
  let at = from;
  while (at < json.length && json[at] !== QUOTE) at += json.charCodeAt(at) === BACKSLASH ? 2 : 1;
  return at;
}

/** No escape, and nothing that a string of JSON may not hold. */
function isPlain(data: string, from: number, to: number): boolean {
  for (let at = from; at < to; at++) {
    const code = data.charCodeAt(at);
    if (code < SPACE || code === BACKSLASH) return false;
  }
  return true;
}

/** The chunk, where the places found are those that count: another text there is the text of the chunk. */
function proved(data: string, padded: boolean): TextChunk | undefined {
  const chunk = JSON.parse(data) as TextChunk;
  const counts = chunk.choices[0].delta['content'] === PROBE && (!padded || chunk['obfuscation'] === PROBE);
  return counts ? chunk : undefined;
}

/** Nothing in it but a piece of text for the first choice tells anything new when it comes again. */
function isTextOnly(chunk: unknown): chunk is TextChunk {
  if (!isFields(chunk)) return false;
  const { choices, usage, error, x_groq: vendor } = chunk;
  if (!Array.isArray(choices) || choices.length !== 1 || (usage ?? error ?? vendor ?? null) !== null) return false;
  const choice: unknown = choices[0];
  if (!isFields(choice) || (choice['index'] ?? 0) !== 0) return false;
  const { delta, finish_reason: reason, text, error: failed, usage: counted, message } = choice;
  if ((reason ?? text ?? failed ?? counted ?? message ?? null) !== null || !isFields(delta)) return false;
  for (const key in delta) {
    const value = delta[key];
    if (key !== 'content' && key !== 'role' && value !== null && value !== '') return false;
  }
  return true;
}
