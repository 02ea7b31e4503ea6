import { expect } from 'chai';
import fc from 'fast-check';
import { headerReader } from '../../lib/wire/headers.ts';
import type { HeaderReader } from '../../lib/wire/headers.ts';
import { readLimits, tightest } from '../../lib/wire/limitHeaders.ts';
import type { NamedReading } from '../../lib/wire/limitHeaders.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;

/** Reset values are plain seconds here. */
const read = (headers: Record<string, string>): readonly NamedReading[] =>
  readLimits(headerReader(headers), (value) => (value === '' ? undefined : Number(value) * 1_000));

function only(headers: Record<string, string>): NamedReading {
  const readings = read(headers);
  expect(readings).to.have.length(1);
  return readings[0]!;
}

describe('limitHeaders', () => {
  describe('readLimits', () => {
    it('reads nothing where no header names a limit', () => {
      expect(read({})).to.deep.equal([]);
      expect(read({ 'x-ratelimit-hint': '1' })).to.deep.equal([]);
    });

    it('reads a limit of which only one thing is told', () => {
      const nothing = { limit: undefined, remaining: undefined, resetMs: undefined, windowMs: MINUTE_MS };
      expect(read({ 'x-ratelimit-limit-tokens': '5' })).to.deep.equal([{ ...nothing, kind: 'tokens', limit: 5 }]);
      expect(read({ 'x-ratelimit-remaining-tokens': '5' })).to.deep.equal([
        { ...nothing, kind: 'tokens', remaining: 5 },
      ]);
      expect(read({ 'x-ratelimit-reset-tokens': '5' })).to.deep.equal([{ ...nothing, kind: 'tokens', resetMs: 5_000 }]);
    });

    it('reads the same of headers that list themselves, in any letter case, and of those that have to be asked', () => {
      const headers = {
        ratelimit: 'limit=10, remaining=0, reset=5',
        'X-RateLimit-Remaining-Requests': ' 3 ',
        'x-ratelimit-limit-tokens': '500',
        'x-ratelimit-limit-requests': '9',
        'x-ratelimit-reset-tokens': ' ',
        date: 'x',
      };
      const listed = read(headers);
      const asked = { get: headerReader(headers).get };
      const failing = {
        get: asked.get,
        forEach(each: (value: string, name: string) => void): void {
          each('1', 'ratelimit-limit');
          throw new Error('mine');
        },
      };
      expect(listed.map(({ kind, limit, remaining }) => [kind, limit, remaining])).to.deep.equal([
        ['requests', 9, 3],
        ['tokens', 500, undefined],
        ['requests', 10, 0],
      ]);
      for (const reader of [asked, failing]) {
        expect(readLimits(reader, (value) => Number(value) * 1_000)).to.deep.equal(listed);
      }
    });

    it('reads the same in whichever order headers list themselves, without asking for any', () => {
      const headers = [
        ['x-ratelimit-limit-requests', '60'],
        ['X-RateLimit-Remaining-Requests', '3'],
        ['x-ratelimit-reset-requests', '5'],
        ['content-type', 'text/plain'],
        ['x-ratelimit-limit-tokens', '500'],
        ['x-ratelimit-remaining-tokens', ' '],
        ['anthropic-ratelimit-requests-remaining', '7'],
        ['anthropic-ratelimit-requests-limit', '50'],
        ['X-RATELIMIT-RESET', '9'],
        ['ratelimit', 'limit=10, remaining=0, reset=5'],
      ] as const;
      const seconds = (value: string): number => Number(value) * 1_000;
      const expected = readLimits(
        { get: (name) => new Headers(headers.map(([key, value]) => [key, value])).get(name) },
        seconds,
      );
      expect(expected).to.have.length(5);
      fc.assert(
        fc.property(fc.shuffledSubarray([...headers], { minLength: headers.length }), (listed) => {
          const reader: HeaderReader = {
            get: () => null,
            forEach: (each) => listed.forEach(([name, value]) => each(value, name)),
          };
          expect(readLimits(reader, seconds)).to.deep.equal(expected);
        }),
      );
    });

    it('reads nothing from headers that are there and empty', () => {
      for (const name of ['ratelimit', 'x-ratelimit-limit-tokens']) {
        expect(read({ [name]: ' ' })).to.deep.equal([]);
        expect(readLimits(new Headers({ [name]: '' }), Number)).to.deep.equal([]);
      }
    });

    it('reads no limit from values that are none', () => {
      expect(read({ 'x-ratelimit-remaining-tokens': 'many' })).to.deep.equal([]);
      expect(read({ 'x-ratelimit-limit-tokens': 'many', 'x-ratelimit-remaining-tokens': '3' })).to.deep.equal([]);
    });

    it('reads counts with separators, as far as a number holds them exactly', () => {
      const remaining = (text: string): number | undefined => read({ 'x-ratelimit-remaining': text })[0]?.remaining;
      expect(['150,000', '1_000_000', '9007199254740991'].map(remaining)).to.deep.equal([
        150_000,
        1_000_000,
        Number.MAX_SAFE_INTEGER,
      ]);
      expect(remaining('9007199254740992')).to.equal(undefined);
    });

    it('counts requests by the day where either header of Groq is there', () => {
      const limit = { 'x-ratelimit-limit-requests': '100' };
      expect(only(limit).windowMs).to.equal(MINUTE_MS);
      for (const name of ['x-groq-id', 'x-groq-region']) {
        expect(only({ ...limit, [name]: 'x' }).windowMs, name).to.equal(DAY_MS);
      }
    });

    describe('tells the window by the reset', () => {
      const windowOf = (told: { limit?: string; remaining?: string; reset?: string }): number | undefined =>
        only(Object.fromEntries(Object.entries(told).map(([field, value]) => [`x-ratelimit-${field}`, value])))
          .windowMs;

      it('as a minute where no reset is told, or one of up to a minute and a half', () => {
        expect(windowOf({ limit: '100', remaining: '50' })).to.equal(MINUTE_MS);
        expect(windowOf({ limit: '100', remaining: '0', reset: '90' })).to.equal(MINUTE_MS);
        expect(windowOf({ limit: '100', remaining: '0', reset: '91' })).to.equal(91_000);
      });

      it('as the reset itself where it is not told how much of the limit is used, or none is', () => {
        expect(windowOf({ limit: '100', reset: '300' })).to.equal(300_000);
        expect(windowOf({ remaining: '100', reset: '300' })).to.equal(300_000);
        expect(windowOf({ limit: '100', remaining: '100', reset: '300' })).to.equal(300_000);
        expect(windowOf({ limit: '100', remaining: '200', reset: '300' })).to.equal(300_000);
      });

      it('as an hour or a day where it is within 15 % of one', () => {
        expect(windowOf({ limit: '100', remaining: '0', reset: '4104' })).to.equal(HOUR_MS);
        expect(windowOf({ limit: '100', remaining: '0', reset: '4176' })).to.equal(4_176_000);
        expect(windowOf({ limit: '100', remaining: '0', reset: '3096' })).to.equal(HOUR_MS);
        expect(windowOf({ limit: '100', remaining: '0', reset: '3024' })).to.equal(3_024_000);
        expect(windowOf({ limit: '100', remaining: '99', reset: '800' })).to.equal(DAY_MS);
      });

      it('as at most a day, or the reset where that is longer', () => {
        expect(windowOf({ limit: '100', remaining: '99', reset: '86400' })).to.equal(DAY_MS);
        expect(windowOf({ limit: '100', remaining: '50', reset: '200000' })).to.equal(200_000_000);
      });
    });

    describe('reads the RateLimit header of the IETF draft', () => {
      it('old and new', () => {
        const whole = { kind: 'requests', limit: 120, remaining: 60, resetMs: 1_800_000, windowMs: HOUR_MS };
        expect(read({ ratelimit: 'limit=120, remaining=60, reset=1800' })).to.deep.equal([whole]);
        expect(read({ ratelimit: '"default";r=60;t=45' })).to.deep.equal([
          { kind: 'requests', limit: undefined, remaining: 60, resetMs: 45_000, windowMs: MINUTE_MS },
        ]);
      });

      it('with one thing told', () => {
        expect(only({ ratelimit: 'remaining=12' })).to.include({ remaining: 12, resetMs: undefined });
        expect(only({ ratelimit: 'reset=12' })).to.include({ remaining: undefined, resetMs: 12_000 });
        expect(read({ ratelimit: 'limit=10' })).to.deep.equal([]);
      });

      it('by whole names only, and no further than its first 500 characters', () => {
        expect(read({ ratelimit: 'unlimit=10, left=3, at=5' })).to.deep.equal([]);
        expect(read({ ratelimit: `${'x'.repeat(500)} remaining=1` })).to.deep.equal([]);
      });

      it('with a reset that a timer can hold', () => {
        expect(only({ ratelimit: 'reset=999999999' }).resetMs).to.equal(2_147_483_647);
      });
    });
  });

  describe('tightest', () => {
    const reading = (told: Partial<NamedReading>): NamedReading => ({
      kind: 'tokens',
      limit: undefined,
      remaining: undefined,
      resetMs: undefined,
      windowMs: MINUTE_MS,
      ...told,
    });

    /** The one that binds, whichever comes first. */
    function binding(one: Partial<NamedReading>, other: Partial<NamedReading>): void {
      const [first, second] = [reading(one), reading(other)];
      const { kind: _, ...expected } = first;
      expect(tightest([first, second], 'tokens')).to.deep.equal(expected);
      expect(tightest([second, first], 'tokens')).to.deep.equal(expected);
    }

    it('is nothing where nothing of its kind was read', () => {
      expect(tightest([], 'tokens')).to.equal(undefined);
      expect(tightest([reading({ kind: 'requests', remaining: 0 })], 'tokens')).to.equal(undefined);
    });

    it('is the one with the smallest share left, however much that is', () => {
      binding({ limit: 1_000, remaining: 100 }, { limit: 10, remaining: 9 });
    });

    it('is one that is used up, its limit told or not', () => {
      binding({ remaining: 0 }, { limit: 1_000, remaining: 1 });
    });

    it('is one of which is told what is left, before one of which is not', () => {
      binding({ limit: 10, remaining: 10 }, { limit: 10, resetMs: 5_000 });
      binding({ remaining: 7 }, { limit: 10, resetMs: 5_000 });
    });

    it('is among equals the one that takes longer to come back, and otherwise the first', () => {
      binding({ limit: 10, remaining: 5, resetMs: 2_000 }, { limit: 20, remaining: 10, resetMs: 1_000 });
      binding({ limit: 10, remaining: 5, resetMs: 2_000 }, { limit: 20, remaining: 10 });
      const equals = [10, 20].map((limit) => reading({ limit, remaining: limit / 2, resetMs: 1_000 }));
      expect(tightest(equals, 'tokens')?.limit).to.equal(10);
    });

    it('does not let a later reset outweigh a smaller share', () => {
      binding({ limit: 10, remaining: 1, resetMs: 1_000 }, { limit: 10, remaining: 5, resetMs: 9_000 });
    });
  });
});
