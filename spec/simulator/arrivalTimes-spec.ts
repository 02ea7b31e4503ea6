import { expect } from 'chai';
import fc from 'fast-check';
import { seededRandom } from '../../lib/core/seededRandom.ts';
import { arrivalTimes } from '../../lib/simulator/load/arrivalTimes.ts';
import type { OpenArrivals } from '../../lib/simulator/load/arrivalTimes.ts';

const timesOf = (arrivals: OpenArrivals, untilMs: number, seed = 1): number[] => [
  ...arrivalTimes(arrivals, untilMs, seededRandom(seed)),
];

describe('arrivalTimes', () => {
  it('spaces calls evenly', () => {
    expect(timesOf({ kind: 'constant', perMinute: 120 }, 2000)).to.deep.equal([0, 500, 1000, 1500]);
  });

  it('makes bursts at one instant, again and again', () => {
    expect(timesOf({ kind: 'bursts', size: 3, everyMs: 1000 }, 1001)).to.deep.equal([0, 0, 0, 1000, 1000, 1000]);
  });

  it('draws calls that are independent of each other: gaps vary as much as they are long', () => {
    const times = timesOf({ kind: 'poisson', perMinute: 6000 }, 600_000);
    expect(times.length).to.be.within(58_500, 61_500);
    const gaps = times.slice(1).map((atMs, i) => atMs - (times[i] as number));
    const mean = gaps.reduce((sum, gapMs) => sum + gapMs, 0) / gaps.length;
    const deviation = Math.sqrt(gaps.reduce((sum, gapMs) => sum + (gapMs - mean) ** 2, 0) / gaps.length);
    expect(deviation / mean).to.be.closeTo(1, 0.05);
  });

  it('swings around the mean once a period, with the peak where it is said', () => {
    const periodMs = 100_000;
    const arrivals = { kind: 'daily', perMinute: 6000, peak: 1.8, peakAtMs: 30_000, periodMs } as const;
    const times = timesOf(arrivals, periodMs * 10);
    expect(times.length).to.be.within(97_000, 103_000);
    const near = (centreMs: number): number =>
      times.filter((atMs) => Math.abs((atMs % periodMs) - centreMs) < 5000).length / 10_000;
    expect(near(30_000)).to.be.closeTo(1.8, 0.1);
    expect(near(80_000)).to.be.closeTo(0.2, 0.1);
  });

  it('makes no call more than its rate in a time that is a whole part of it', () => {
    for (const perMinute of [7, 49, 700, 1300]) {
      expect(timesOf({ kind: 'constant', perMinute }, 60_000)).to.have.length(perMinute);
    }
  });

  it('ascends, ends in time, and is the same for the same seed only', () => {
    const kinds = fc.constantFrom<OpenArrivals>(
      { kind: 'constant', perMinute: 700 },
      { kind: 'poisson', perMinute: 700 },
      { kind: 'daily', perMinute: 700 },
      { kind: 'bursts', size: 5, everyMs: 700 },
    );
    fc.assert(
      fc.property(kinds, fc.integer({ min: 1, max: 60_000 }), fc.nat(1000), (arrivals, untilMs, seed) => {
        const times = timesOf(arrivals, untilMs, seed);
        for (const [i, atMs] of times.entries()) expect(atMs).to.be.within(times[i - 1] ?? 0, untilMs - 1e-9);
        expect(timesOf(arrivals, untilMs, seed)).to.deep.equal(times);
      }),
      { numRuns: 50 },
    );
    expect(timesOf({ kind: 'poisson', perMinute: 700 }, 60_000, 2)).to.not.deep.equal(
      timesOf({ kind: 'poisson', perMinute: 700 }, 60_000, 3),
    );
  });
});
