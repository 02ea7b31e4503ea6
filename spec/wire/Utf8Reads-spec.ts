import { expect } from 'chai';
import fc from 'fast-check';
import { Utf8Reads } from '../../lib/wire/Utf8Reads.ts';
import { cut, utf8 } from '../helpers/readSse.ts';

/** First and last characters of each length, and some between whose bytes are at the bounds. */
const CHARACTERS = '\0a\x7f\u0080é\u07ff\u0800\u2000北\ud7ff\ue000\uffff\u{10000}🚀\u{10ffff}';

function decoded(reads: Iterable<Uint8Array>): readonly string[] {
  const utf8Reads = new Utf8Reads();
  const texts: string[] = [];
  for (const read of reads) texts.push(utf8Reads.decode(read));
  return [...texts, utf8Reads.end()];
}

describe('Utf8Reads', () => {
  it('gives each character as soon as its last byte is there', () => {
    for (const character of CHARACTERS) {
      const bytes = utf8(character);
      const waited = Array.from({ length: bytes.length - 1 }, () => '');
      expect(decoded(cut(bytes, 1)), character).to.deep.equal([...waited, character, '']);
      expect(decoded([utf8(`a${character}`), utf8('b')]), character).to.deep.equal([`a${character}`, 'b', '']);
    }
  });

  it('gives all whole characters of a read, and waits for the rest of the last one', () => {
    for (const character of CHARACTERS) {
      const bytes = utf8(`é${character}`);
      for (let at = 3; at < bytes.length; at++) {
        const texts = decoded([bytes.subarray(0, at), bytes.subarray(at)]);
        expect(texts, character).to.deep.equal(['é', character, '']);
      }
    }
  });

  it('gives what can be no part of a character at once', () => {
    for (const bytes of [[0xe2, 0x41], [0xf0, 0x41, 0x42], [0x80], [0x80, 0x80, 0x80, 0x80], [0xc3, 0xa9, 0xa9]]) {
      const text = new TextDecoder().decode(Uint8Array.from(bytes));
      expect(decoded([Uint8Array.from(bytes)]), String(bytes)).to.deep.equal([text, '']);
    }
  });

  it('gives a character that was cut at the end as one that is invalid', () => {
    for (const bytes of [[0xc3], [0xe5, 0x8c], [0xf0, 0x9f, 0x9a]]) {
      expect(decoded([Uint8Array.of(0x61, ...bytes)]), String(bytes)).to.deep.equal(['a', '\ufffd']);
    }
    expect(decoded([])).to.deep.equal(['']);
  });

  it('drops one byte-order mark at the start, and no other', () => {
    for (const size of [1, 2, 3, 4, 100]) {
      expect(decoded(cut(utf8('\ufeff\ufeffa\ufeff'), size)).join(''), String(size)).to.equal('\ufeffa\ufeff');
      expect(decoded(cut(utf8('a\ufeff'), size)).join(''), String(size)).to.equal('a\ufeff');
    }
  });

  it('gives what one TextDecoder gives, however any bytes are cut', () => {
    const near = fc.constantFrom(0x41, 0x80, 0xbf, 0xc0, 0xc2, 0xdf, 0xe0, 0xed, 0xef, 0xf0, 0xf4, 0xf5, 0xff);
    const bytes = fc.uint8Array({ maxLength: 12 });
    const few = fc.array(near, { maxLength: 12 }).map((all) => Uint8Array.from(all));
    fc.assert(
      fc.property(fc.oneof(bytes, few), fc.integer({ min: 1, max: 5 }), (all, size) => {
        expect(decoded(cut(all, size)).join('')).to.equal(new TextDecoder().decode(all));
      }),
    );
  });
});
