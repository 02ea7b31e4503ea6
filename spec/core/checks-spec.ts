import { expect } from 'chai';
import {
  nonEmpty,
  oneOf,
  positive,
  positiveOrInfinity,
  ratio,
  wholeNumber,
  zeroOrInfinity,
  zeroOrMore,
} from '../../lib/core/checks.ts';
import { isSluiceError } from '../../lib/core/errors.ts';

interface Case {
  readonly check: (option: string, value: number) => number;
  readonly accepts: readonly number[];
  readonly rejects: readonly number[];
  readonly rule: string;
}

const TINY = Number.MIN_VALUE;

const CASES: readonly Case[] = [
  {
    check: positive,
    accepts: [TINY, 1, 1e300],
    rejects: [0, -0, -1, Infinity, -Infinity, NaN],
    rule: 'finite and above 0',
  },
  {
    check: positiveOrInfinity,
    accepts: [TINY, 1, Infinity],
    rejects: [0, -0, -1, -Infinity, NaN],
    rule: 'above 0, or Infinity',
  },
  { check: zeroOrMore, accepts: [0, TINY, 1e300], rejects: [-TINY, Infinity, NaN], rule: 'finite and 0 or more' },
  { check: zeroOrInfinity, accepts: [0, 1, Infinity], rejects: [-1, -Infinity, NaN], rule: '0 or more, or Infinity' },
  {
    check: wholeNumber,
    accepts: [1, 2, Number.MAX_SAFE_INTEGER],
    rejects: [0, 1.5, -1, 2 ** 53, Infinity, NaN],
    rule: 'a whole number of at least 1',
  },
  { check: ratio, accepts: [0, 0.5, 1], rejects: [-TINY, 1.000001, Infinity, NaN], rule: 'from 0 to 1' },
];

describe('checks', () => {
  for (const { check, accepts, rejects, rule } of CASES) {
    for (const value of accepts) {
      it(`${check.name} passes ${value} on`, () => {
        expect(check('option', value)).to.equal(value);
      });
    }
    for (const value of rejects) {
      it(`${check.name} rejects ${Object.is(value, -0) ? '-0' : value}, naming option, rule and value`, () => {
        expect(thrownBy(() => check('burst', value))).to.equal(
          `invalid_option: burst must be ${rule}, got ${String(value)}`,
        );
      });
    }
    it(`${check.name} rejects what is no number`, () => {
      for (const value of [undefined, null, '1', Symbol('1'), true]) {
        expect(() => check('option', value as never), String(value)).to.throw();
      }
    });
  }

  it('wholeNumber takes another least', () => {
    expect(wholeNumber('attempts', 0, 0)).to.equal(0);
    expect(thrownBy(() => wholeNumber('attempts', 1, 2))).to.equal(
      'invalid_option: attempts must be a whole number of at least 2, got 1',
    );
  });

  it('oneOf passes what is listed and names the list otherwise', () => {
    expect(oneOf('jitter', 'full', ['full', 'none'])).to.equal('full');
    expect(thrownBy(() => oneOf<string>('jitter', 'half', ['full', 'none']))).to.equal(
      'invalid_option: jitter must be one of full, none, got a string of 4 characters',
    );
  });

  it('nonEmpty passes a string with something in it', () => {
    expect(nonEmpty('conversation', ' ')).to.equal(' ');
    for (const value of ['', undefined, 7]) {
      expect(thrownBy(() => nonEmpty('conversation', value as string))).to.include(
        'conversation must be a string that is not empty',
      );
    }
  });
});

function thrownBy(work: () => unknown): string {
  try {
    work();
  } catch (error) {
    return isSluiceError(error) ? `${error.code}: ${error.message}` : `not ours: ${String(error)}`;
  }
  return 'nothing';
}
