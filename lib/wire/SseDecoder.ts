import { wholeNumber } from '../core/checks.ts';
import { SluiceError } from '../core/errors.ts';
import { Utf8Reads } from './Utf8Reads.ts';
import { utf8Length } from './utf8Length.ts';

/** Hears what an {@link SseDecoder} finds. What a handler throws leaves `push` as it is. */
export interface SseHandlers {
  /** `event` is the event's name, `undefined` where it has none. */
  event(data: string, event: string | undefined): void;
  comment(): void;
}

export interface SseDecoderOptions {
  /** Largest event, in UTF-8 bytes of its data and name together. Default: 8 MiB. */
  readonly maxEventBytes?: number;
}

export const SSE_DEFAULTS: { readonly maxEventBytes: number } = Object.freeze({ maxEventBytes: 8 * 1024 * 1024 });

const LF = 10;
const SPACE = 32;
const COLON = 58;

/** Pieces of a line are joined in blocks: one string a read would cost far more memory than the text in tiny reads. */
const PIECES_PER_BLOCK = 1024;

/**
 * Turns the raw bytes of an event stream into events, in linear time however they are split. CR, LF and CRLF end lines,
 * one byte-order mark at the start is dropped, ids, retry times and unknown fields are ignored, and an event without
 * data is not reported.
 *
 * `push` and `end` throw {@link SluiceError} `upstream_body_invalid` when an event, or any one line, is larger than
 * `maxEventBytes`; the decoder is of no further use then.
 *
 * Source of the grammar: https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream, with
 * one difference: a whole event left at the end of input counts, since some servers leave out the last blank line.
 */
export class SseDecoder {
  readonly #handlers: SseHandlers;
  readonly #maxEventBytes: number;
  readonly #maxLineLength: number;
  readonly #utf8 = new Utf8Reads();
  /** The start of a line whose end has not come: what has been joined, then the pieces of the block being filled. */
  // Stryker disable next-line StringLiteral: written before it is read
  #block = '';
  #pieces: string[] | undefined;
  #tailLength = 0;
  /** The last character was CR: a LF that comes first belongs to it. */
  // Stryker disable next-line BooleanLiteral: an empty line at the start means nothing
  #skipLf = false;
  #data: string | undefined;
  #name: string | undefined;

  /** @throws SluiceError `invalid_option` unless `maxEventBytes` is a whole number of at least 1. */
  constructor(handlers: SseHandlers, options: SseDecoderOptions = {}) {
    const { maxEventBytes = SSE_DEFAULTS.maxEventBytes } = options;
    this.#handlers = handlers;
    this.#maxEventBytes = wholeNumber('maxEventBytes', maxEventBytes);
    this.#maxLineLength = maxEventBytes + 'event: '.length;
  }

  push(bytes: Uint8Array): void {
    const text = this.#utf8.decode(bytes);
    if (text !== '') this.#feed(text);
  }

  /** The body ended. What is left is reported if it is a whole event, and dropped if it was cut. */
  end(): void {
    this.#feed(this.#utf8.end());
    if (this.#tailLength > 0) {
      const line = this.#takeTail();
      this.#line(line, 0, line.length);
    }
    if (this.#data !== undefined && isWhole(this.#data)) this.#dispatch();
  }

  #feed(text: string): void {
    let start = this.#skipLf && text.charCodeAt(0) === LF ? 1 : 0;
    this.#skipLf = false;
    let lf = text.indexOf('\n', start);
    let cr = text.indexOf('\r', start);
    for (;;) {
      // Stryker disable next-line EqualityOperator: no character is both
      const end = cr === -1 || (lf !== -1 && lf < cr) ? lf : cr;
      if (end === -1) break;
      // Stryker disable next-line ConditionalExpression,EqualityOperator: without a tail, a line that is cut out only takes longer
      if (this.#tailLength > 0) {
        const line = this.#takeTail() + text.slice(start, end);
        this.#line(line, 0, line.length);
      } else {
        this.#line(text, start, end);
      }
      start = end + 1;
      if (end === cr) {
        if (start === text.length) this.#skipLf = true;
        else if (text.charCodeAt(start) === LF) start++;
        cr = text.indexOf('\r', start);
      }
      // Searched again only when passed: a search for what is not there costs the whole rest of the text.
      // Stryker disable next-line ConditionalExpression,LogicalOperator,EqualityOperator: as said, it only takes longer
      if (lf !== -1 && lf < start) lf = text.indexOf('\n', start);
    }
    // Stryker disable next-line ConditionalExpression,EqualityOperator: to keep nothing only takes longer
    if (start < text.length) this.#keep(text.slice(start));
  }

  #line(text: string, start: number, end: number): void {
    if (start === end) return this.#dispatch();
    if (end - start > this.#maxLineLength) throw this.#tooLarge();
    switch (text.charCodeAt(start)) {
      case COLON:
        return this.#handlers.comment();
      case 100: // 'd'
        if (text.startsWith('data', start)) {
          const value = valueOf(text, start + 4, end);
          if (value !== undefined) this.#append(value);
        }
        return;
      case 101: // 'e'
        if (text.startsWith('event', start)) {
          const value = valueOf(text, start + 5, end);
          if (value !== undefined) this.#name = value === '' ? undefined : value;
        }
    }
  }

  #append(value: string): void {
    this.#data = this.#data === undefined ? value : `${this.#data}\n${value}`;
    if (this.#data.length > this.#maxEventBytes) throw this.#tooLarge();
  }

  #dispatch(): void {
    const data = this.#data;
    const name = this.#name;
    this.#data = undefined;
    this.#name = undefined;
    if (data === undefined || data === '') return;
    // A code unit is at most three bytes, so only what comes near the limit needs counting.
    // Stryker disable next-line ConditionalExpression,EqualityOperator: to count always only takes longer
    if ((data.length + (name?.length ?? 0)) * 3 > this.#maxEventBytes) {
      if (utf8Length(data) + utf8Length(name ?? '') > this.#maxEventBytes) throw this.#tooLarge();
    }
    this.#handlers.event(data, name);
  }

  #keep(piece: string): void {
    // Stryker disable next-line ConditionalExpression: both ways the text is the same
    if (this.#tailLength === 0) this.#block = piece;
    else this.#addPiece(piece);
    this.#tailLength += piece.length;
    if (this.#tailLength > this.#maxLineLength) throw this.#tooLarge();
  }

  #addPiece(piece: string): void {
    this.#pieces ??= [];
    // Stryker disable next-line ConditionalExpression,EqualityOperator,BlockStatement: however many are joined at once, the text is the same
    if (this.#pieces.push(piece) === PIECES_PER_BLOCK) {
      this.#block += this.#pieces.join('');
      this.#pieces.length = 0;
    }
  }

  #takeTail(): string {
    const tail = this.#pieces === undefined ? this.#block : this.#block + this.#pieces.join('');
    // Stryker disable next-line StringLiteral: as above; what it held is let go
    this.#block = '';
    this.#pieces = undefined;
    this.#tailLength = 0;
    return tail;
  }

  #tooLarge(): SluiceError {
    const limit = this.#maxEventBytes;
    return new SluiceError('upstream_body_invalid', `an event of the stream is larger than ${limit} bytes`, { limit });
  }
}

/** The value after a field name that ends at `at`; `undefined` where the name goes on and so is another one. */
function valueOf(text: string, at: number, end: number): string | undefined {
  if (at === end) return '';
  if (text.charCodeAt(at) !== COLON) return undefined;
  return text.slice(text.charCodeAt(at + 1) === SPACE ? at + 2 : at + 1, end);
}

function isWhole(data: string): boolean {
  if (data === '[DONE]') return true;
  let value: unknown;
  try {
    value = JSON.parse(data);
  } catch {
    // It was cut.
  }
  return typeof value === 'object';
}
