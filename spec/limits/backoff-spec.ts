import { expect } from 'chai';
import fc from 'fast-check';
import { backoff, BACKOFF_DEFAULTS, JITTERS, notBefore } from '../../lib/limits/backoff.ts';
import { seededRandom } from '../../lib/testing/seededRandom.ts';
import { thrown } from '../helpers/scripted.ts';

const least = () => 0;
const half = () => 0.5;
const most = () => 1 - Number.EPSILON / 2;

describe('backoff', () => {
  it('doubles the ceiling with each retry, up to the cap', () => {
    const waits = [1, 2, 3, 4, 5, 6, 7].map((retry) =>
      backoff(retry, { baseMs: 250, capMs: 8000, jitter: 'none' }, most),
    );
    expect(waits).to.deep.equal([250, 500, 1000, 2000, 4000, 8000, 8000]);
  });

  it('draws a full jitter from 0 to the ceiling', () => {
    const options = { baseMs: 100, capMs: 8000, jitter: 'full' } as const;
    expect([least, half, most].map((random) => Math.round(backoff(3, options, random)))).to.deep.equal([0, 200, 400]);
  });

  it('draws an equal jitter from half the ceiling to all of it', () => {
    const options = { baseMs: 100, capMs: 8000, jitter: 'equal' } as const;
    expect([least, half, most].map((random) => Math.round(backoff(3, options, random)))).to.deep.equal([200, 300, 400]);
  });

  it('draws a decorrelated jitter from the base to three times the wait before', () => {
    const options = { baseMs: 100, capMs: 8000, jitter: 'decorrelated' } as const;
    expect([least, half, most].map((random) => Math.round(backoff(9, options, random, 500)))).to.deep.equal([
      100, 800, 1500,
    ]);
    expect(Math.round(backoff(1, options, most))).to.equal(300);
  });

  it('caps before the jitter, so that long outages do not bunch up at the cap', () => {
    for (const jitter of ['full', 'decorrelated'] as const) {
      const random = seededRandom(7);
      const waits = Array.from({ length: 200 }, () => backoff(30, { baseMs: 100, capMs: 1000, jitter }, random, 1000));
      expect(new Set(waits).size, jitter).to.equal(200);
      expect(waits.filter((wait) => wait > 900).length, jitter).to.be.below(40);
    }
  });

  it('uses the defaults where an option is absent', () => {
    expect(backoff(2, {}, half)).to.equal(BACKOFF_DEFAULTS.baseMs);
    expect(backoff(50, {}, half)).to.equal(BACKOFF_DEFAULTS.capMs / 2);
  });

  it('is finite and within the cap for every attempt number and every option', () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.integer({ min: 1, max: 3000 }), fc.constantFrom(1100, 2000, Number.MAX_SAFE_INTEGER)),
        fc.constantFrom(0, 1, 250, 1e300),
        fc.constantFrom(0, 1, 8000, 1e300),
        fc.constantFrom(...JITTERS),
        fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
        fc.option(fc.double({ min: 0, max: 1e300, noNaN: true }), { nil: undefined }),
        (retry, baseMs, capMs, jitter, drawn, previousMs) => {
          const waitMs = backoff(retry, { baseMs, capMs, jitter }, () => drawn, previousMs);
          expect(waitMs).to.be.within(0, capMs);
        },
      ),
      { numRuns: 300 },
    );
  });

  for (const [name, work, message] of [
    [
      'a base that is no number',
      () => backoff(1, { baseMs: NaN }, half),
      'baseMs must be finite and 0 or more, got NaN',
    ],
    [
      'a cap without end',
      () => backoff(1, { capMs: Infinity }, half),
      'capMs must be finite and 0 or more, got Infinity',
    ],
    [
      'a jitter of another name',
      () => backoff(1, { jitter: 'half' as 'full' }, half),
      'jitter must be one of full, equal, decorrelated, none, got a string of 4 characters',
    ],
    ['a retry before the first', () => backoff(0, {}, half), 'retry must be a whole number of at least 1, got 0'],
  ] as const) {
    it(`refuses ${name}`, () => {
      expect(thrown(work)).to.include({ code: 'invalid_option', message });
    });
  }
});

describe('notBefore', () => {
  const options = { baseMs: 250, capMs: 8000 };

  it('keeps an own wait that is longer, and adds to it', () => {
    expect(notBefore(5000, 1000, options, least)).to.equal(5000);
    expect(notBefore(5000, 1000, options, half)).to.equal(5125);
  });

  it('adds up to a tenth of the hint, at least the base and at most the cap', () => {
    expect(Math.round(notBefore(0, 1000, options, most))).to.equal(1250);
    expect(Math.round(notBefore(0, 10_000, options, most))).to.equal(11_000);
    expect(Math.round(notBefore(0, 1_000_000, options, most))).to.equal(1_008_000);
  });

  it('takes a hint of 0 for none', () => {
    expect(notBefore(120, 0, options, most)).to.equal(120);
  });

  it('adds nothing without jitter', () => {
    expect(notBefore(100, 3000, { ...options, jitter: 'none' }, most)).to.equal(3000);
  });

  it('rounds a hint up, since timers cut fractions off', () => {
    expect(notBefore(0, 10.2, options, least)).to.equal(11);
  });

  it('brings callers with one hint back at instants of their own, and none early', () => {
    const random = seededRandom(3);
    const waits = Array.from({ length: 30 }, () => notBefore(backoff(1, options, random), 10_000, options, random));
    expect(new Set(waits).size).to.equal(30);
    expect(Math.min(...waits)).to.be.at.least(10_000);
    expect(Math.max(...waits) - Math.min(...waits)).to.be.at.least(200);
  });

  it('is never below the hint or the own wait, and finite', () => {
    fc.assert(
      fc.property(
        fc.double({ min: 0, max: 1e6, noNaN: true }),
        fc.double({ min: 0, max: 1e12, noNaN: true }),
        fc.constantFrom(...JITTERS),
        fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
        (ownMs, hintMs, jitter, drawn) => {
          const waitMs = notBefore(ownMs, hintMs, { jitter }, () => drawn);
          expect(waitMs).to.be.at.least(Math.max(ownMs, hintMs)).and.below(Infinity);
        },
      ),
      { numRuns: 200 },
    );
  });
});
