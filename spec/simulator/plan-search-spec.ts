import { expect } from 'chai';
import fc from 'fast-check';
import { scaleOf } from '../../lib/simulator/plan/scaleOf.ts';
import { searchAxes } from '../../lib/simulator/plan/searchAxes.ts';
import type { Axis, Verdict } from '../../lib/simulator/plan/searchAxes.ts';

const least = (size: number): Axis => ({ size, wanted: 'least', start: 0 });
const best = (size: number, start = 0): Axis => ({ size, wanted: 'best', start });

/** Searches where `score` says how far each position is from the targets; counts what was asked. */
async function search(axes: readonly Axis[], score: (at: readonly number[]) => number) {
  const asked = new Map<string, Verdict>();
  const result = await searchAxes(axes, async (at) => {
    for (const [i, position] of at.entries()) expect(position).to.be.within(0, (axes[i]?.size ?? 0) - 1);
    const verdict = { score: score(at), met: score(at) <= 1 };
    asked.set(at.join(), verdict);
    return verdict;
  });
  return { ...result, asked: asked.size };
}

describe('searchAxes', () => {
  it('bisects what can only get better, to the first position that will do', async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 2000 }), fc.nat(), async (size, seed) => {
        const first = seed % size;
        const { at, met, asked } = await search([least(size)], ([position = 0]) => (position >= first ? 0.5 : 2));
        expect({ at, met }).to.deep.equal({ at: [first], met: true });
        expect(asked).to.be.at.most(3 + Math.ceil(Math.log2(size)));
      }),
      { numRuns: 60 },
    );
  });

  it('finds the least of one after the other, none of which can go down any more', async () => {
    const size = fc.integer({ min: 2, max: 60 });
    await fc.assert(
      fc.asyncProperty(size, size, fc.double({ min: 0.2, max: 0.9, noNaN: true }), async (a, b, part) => {
        // What one has more, the other may have less.
        const will = ([x = 0, y = 0]: readonly number[]): number =>
          x / (a - 1) + y / (b - 1) >= 2 * part - 1e-9 ? 1 : 1.5;
        const { at, met } = await search([least(a), least(b)], will);
        expect(met).to.be.true;
        for (const i of [0, 1]) {
          if (at[i] !== 0) expect(will(at.map((position, j) => (i === j ? position - 1 : position)))).to.be.above(1);
        }
      }),
      { numRuns: 60 },
    );
  });

  it('says what came nearest where nothing will do', async () => {
    const { at, met } = await search([least(100)], ([position = 0]) => 10 - position / 12);
    expect({ at, met }).to.deep.equal({ at: [99], met: false });
  });

  it('looks elsewhere where the far end does not do', async () => {
    const will = ([position = 0]: readonly number[]): number => (position >= 40 && position <= 70 ? 0.9 : 2);
    const { at, met } = await search([least(100)], will);
    expect({ at, met }).to.deep.equal({ at: [40], met: true });
  });

  it('finds the best of a valley, wherever it is, without looking everywhere', async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 300 }), fc.nat(), fc.nat(), async (size, low, start) => {
        const bottom = low % size;
        const depth = ([position = 0]: readonly number[]): number => 1 + (10 * Math.abs(position - bottom)) / size;
        const { at, asked } = await search([best(size, start % size)], depth);
        expect(Math.abs((at[0] as number) - bottom)).to.be.at.most(1 + size / 400);
        expect(asked).to.be.at.most(10 + 2 * Math.ceil(Math.log2(size + 1)));
      }),
      { numRuns: 60 },
    );
  });

  it('takes the first of those that are alike', async () => {
    const { at } = await search([best(7, 6)], ([position = 0]) => (position < 2 ? 1.5 : 0.5));
    expect(at).to.deep.equal([2]);
  });

  it('goes on from what is best to what is least, and back', async () => {
    // The better the second one is set, the less of the first is needed.
    const score = ([x = 0, y = 0]: readonly number[]): number => (20 + 4 * Math.abs(y - 13)) / Math.max(1, x);
    const { at, met } = await search([least(100), best(40, 39)], score);
    expect({ at, met }).to.deep.equal({ at: [20, 13], met: true });
  });
});

describe('scaleOf', () => {
  it('goes from one end to the other in steps of about the precision', () => {
    const ends = fc.tuple(fc.integer({ min: 1, max: 100_000 }), fc.integer({ min: 1, max: 10_000_000 }));
    fc.assert(
      fc.property(
        ends,
        fc.double({ min: 0.005, max: 0.3, noNaN: true }),
        fc.boolean(),
        ([from, more], precision, whole) => {
          const to = from + more;
          const scale = scaleOf(from, to, precision, whole);
          expect([scale[0], scale.at(-1)]).to.deep.equal([from, to]);
          for (const [i, value] of scale.entries()) {
            if (whole) expect(Number.isInteger(value)).to.be.true;
            const before = scale[i - 1];
            if (before === undefined) continue;
            expect(value).to.be.above(before);
            // Three digits are kept, and whole numbers are a step of 1 apart.
            if (to / from > 2) expect(value - before).to.be.at.most(before * (precision + 0.02) + 1);
          }
        },
      ),
      { numRuns: 200 },
    );
  });

  it('divides a range that begins at 0, or is narrow, evenly', () => {
    expect(scaleOf(0, 1, 0.25, false)).to.deep.equal([0, 0.25, 0.5, 0.75, 1]);
    expect(scaleOf(100, 110, 0.5, true)).to.deep.equal([100, 105, 110]);
    expect(scaleOf(1, 4, 0.01, true)).to.deep.equal([1, 2, 3, 4]);
  });

  it('is finer for a finer precision', () => {
    expect(scaleOf(100, 10_000, 0.01, true).length).to.be.above(scaleOf(100, 10_000, 0.05, true).length * 3);
  });
});
