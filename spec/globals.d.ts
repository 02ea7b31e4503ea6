import type { TextDecoder as Decoder } from 'node:util';

declare global {
  /** The types of gpt-tokenizer name it, and only those of browsers declare it. */
  type TextDecoder = Decoder;
}
