import { expect } from 'chai';
import { headerOf, headerReader } from '../../lib/wire/headers.ts';

describe('headers', () => {
  describe('headerOf', () => {
    it('gives the value without the blanks around it, and nothing for an empty one', () => {
      const values = new Map([
        ['a', ' 1 2 '],
        ['b', ''],
        ['c', ' \t'],
      ]);
      const headers = { get: (name: string): string | null => values.get(name) ?? null };
      expect(['a', 'b', 'c', 'd'].map((name) => headerOf(headers, name))).to.deep.equal([
        '1 2',
        undefined,
        undefined,
        undefined,
      ]);
    });

    it('takes a value that is no text for none', () => {
      expect(headerOf({ get: () => 5 as unknown as string }, 'a')).to.equal(undefined);
    });
  });

  describe('headerReader', () => {
    it('takes what has a get for a reader as it is', () => {
      for (const headers of [new Headers({ a: '1' }), new Map([['a', '1']])]) {
        expect(headerReader(headers)).to.equal(headers);
      }
    });

    it('reads a plain object by lower-case names: texts, numbers, and the first of several', () => {
      const headers = headerReader({ 'Retry-After': 5, A: 'x', b: ['1', '2'], c: { d: 1 }, e: null, f: true });
      const read = ['retry-after', 'a', 'b', 'c', 'e', 'f'].map((name) => headers.get(name));
      expect(read).to.deep.equal(['5', 'x', '1', null, null, null]);
      const listed: [string, string][] = [];
      headers.forEach?.((value, name) => listed.push([name, value]));
      expect(listed).to.deep.equal([
        ['retry-after', '5'],
        ['a', 'x'],
        ['b', '1'],
      ]);
    });

    it('reads nothing from what are no headers', () => {
      for (const headers of [undefined, null, 'text', 5]) expect(headerReader(headers).get('0')).to.equal(null);
    });
  });
});
