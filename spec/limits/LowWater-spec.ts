import { expect } from 'chai';
import fc from 'fast-check';
import { LowWater } from '../../lib/limits/LowWater.ts';

describe('LowWater', () => {
  it('knows the lowest debt after each charge, as if it had kept them all', () => {
    const step = fc.record({ debt: fc.nat(6), undo: fc.option(fc.tuple(fc.nat(30), fc.integer({ min: 1, max: 3 }))) });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
        const lows = new LowWater();
        const all: { mark: number; low: number }[] = [];
        steps.forEach(({ debt, undo }, at) => {
          lows.record(at + 1, debt, 0);
          all.push({ mark: at + 1, low: debt });
          if (undo) {
            const [mark, amount] = undo;
            lows.lower(mark, amount);
            for (const entry of all) if (entry.mark > mark) entry.low = Math.max(0, entry.low - amount);
          }
          for (let mark = 0; mark <= at + 2; mark++) {
            const after = all.filter((entry) => entry.mark > mark).map(({ low }) => low);
            expect(lows.since(mark), `after ${mark}`).to.equal(Math.min(Infinity, ...after));
          }
        });
      }),
      { numRuns: 200 },
    );
  });

  it('tells lows apart that are as far apart as its grain, and takes the lower of those that are closer', () => {
    const lows = new LowWater();
    lows.record(1, 10, 0.5);
    lows.record(2, 10.4, 0.5);
    expect([lows.since(0), lows.since(1), lows.since(2)]).to.deep.equal([10, 10, Infinity]);
    lows.record(3, 10.5, 0.5);
    expect([lows.since(1), lows.since(2)]).to.deep.equal([10, 10.5]);
  });
});
