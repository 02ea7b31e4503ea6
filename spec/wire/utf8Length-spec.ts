import { expect } from 'chai';
import fc from 'fast-check';
import { utf8Length } from '../../lib/wire/utf8Length.ts';

describe('utf8Length', () => {
  it('counts bytes at every border between one length and the next', () => {
    for (const code of [0, 0x7e, 0x7f, 0x80, 0x7fe, 0x7ff, 0x800, 0xd7ff, 0xe000, 0xfffe, 0xffff, 0x10000, 0x10ffff]) {
      const text = String.fromCodePoint(code);
      expect(utf8Length(text), code.toString(16)).to.equal(Buffer.byteLength(text));
    }
  });

  it('counts what an encoder would write, for every text', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 40 }), (text) => {
        expect(utf8Length(text)).to.equal(Buffer.byteLength(text));
      }),
    );
  });
});
