import { expect } from 'chai';
import fc from 'fast-check';
import { SlidingHistogram } from '../../../lib/http/live/SlidingHistogram.ts';

describe('SlidingHistogram', () => {
  it('knows nothing of nothing', () => {
    expect(new SlidingHistogram(1_000, 3).quantiles(0, 3, [0.5, 0.95])).to.deep.equal([undefined, undefined]);
  });

  it('gives quantiles to within 5 %, from 1 ms to 17 minutes', () => {
    fc.assert(
      fc.property(
        fc.array(fc.double({ min: 1, max: 1_000_000, noNaN: true }), { minLength: 1, maxLength: 200 }),
        fc.double({ min: 0.01, max: 1, noNaN: true }),
        (values, share) => {
          const histogram = new SlidingHistogram(1_000, 1);
          for (const value of values) histogram.add(0, value);
          const [quantile = NaN] = histogram.quantiles(0, 1, [share]);
          const exact = values.toSorted((a, b) => a - b)[Math.max(1, Math.ceil(share * values.length)) - 1] ?? NaN;
          expect(quantile / exact).to.be.within(0.95, 1.05);
        },
      ),
      { numRuns: 200 },
    );
  });

  it('forgets what is older than the slots that are asked for', () => {
    const histogram = new SlidingHistogram(1_000, 5);
    histogram.add(0, 100);
    histogram.add(1_500, 800);
    expect(histogram.quantiles(1_500, 2, [0])[0]).to.be.closeTo(100, 5);
    expect(histogram.quantiles(1_500, 1, [0])[0]).to.be.closeTo(800, 40);
    expect(histogram.quantiles(2_000, 2, [0])[0]).to.be.closeTo(800, 40);
    expect(histogram.quantiles(9_000, 5, [0])).to.deep.equal([undefined]);
  });

  it('takes what comes late for new, and what is out of range for the nearest', () => {
    const histogram = new SlidingHistogram(1_000, 2);
    histogram.add(5_000, 50_000_000);
    histogram.add(4_000, 0);
    const [least = NaN, most = NaN] = histogram.quantiles(5_000, 1, [0, 1]);
    expect(least).to.equal(1);
    expect(most).to.be.closeTo(1_048_576, 60_000);
  });
});
