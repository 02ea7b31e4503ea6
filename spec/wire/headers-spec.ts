import { expect } from 'chai';
import { headerOf, headerReader, headersNamed } from '../../lib/wire/headers.ts';

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

  describe('headersNamed', () => {
    it('keeps those with a part in their names, in any letter case, and no others', () => {
      const all = new Map([
        ['X-RateLimit-Limit', '5'],
        ['Retry-After', '3'],
        ['Content-Type', 'text'],
      ]);
      const named = headersNamed(headerReader(all), 'ratelimit', 'retry');
      expect(named?.get('x-ratelimit-limit')).to.equal('5');
      expect(named?.get('retry-after')).to.equal('3');
      expect(named?.get('content-type')).to.equal(null);
    });

    it('gives nothing where no name has a part', () => {
      expect(headersNamed(new Headers({ date: 'x' }), 'ratelimit')).to.equal(undefined);
    });

    it('gives the reader itself where it cannot list its headers, or fails half way', () => {
      const unlisted = { get: (): string => 'x' };
      expect(headersNamed(unlisted, 'a')).to.equal(unlisted);
      const failing = {
        get: (): string => 'x',
        forEach(each: (value: string, name: string) => void): void {
          each('1', 'a');
          throw new Error('mine');
        },
      };
      expect(headersNamed(failing, 'a')).to.equal(failing);
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
