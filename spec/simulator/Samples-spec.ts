import { expect } from 'chai';
import fc from 'fast-check';
import { seededRandom } from '../../lib/core/seededRandom.ts';
import { Samples } from '../../lib/simulator/Samples.ts';

const MOST_KEPT = 65_536;
const samplesOf = (values: Iterable<number>): Samples => {
  const samples = new Samples();
  for (const value of values) samples.add(value);
  return samples;
};
function* drawn(count: number, draw: (random: () => number) => number): Generator<number> {
  const random = seededRandom(5);
  for (let i = 0; i < count; i++) yield draw(random);
}
/** By the definition: the smallest that so many percent are not above. */
const nearestRank = (values: readonly number[], percent: number): number =>
  [...values].sort((a, b) => a - b)[Math.max(0, Math.ceil((percent / 100) * values.length) - 1)] as number;

describe('Samples', () => {
  it('have no percentile where there are none', () => {
    const samples = new Samples();
    expect(samples.size).to.equal(0);
    expect(Object.values(samples.percentiles())).to.deep.equal([NaN, NaN, NaN, NaN]);
  });

  it('give the nearest rank, in whatever order they came', () => {
    const durations = fc.array(fc.double({ min: 0, max: 1e7, noNaN: true }), { minLength: 1, maxLength: 60 });
    fc.assert(
      fc.property(durations, fc.integer({ min: 1, max: 100 }), (values, percent) => {
        expect(samplesOf(values).percentile(percent)).to.equal(nearestRank(values, percent));
      }),
    );
  });

  it('can be asked between two that are added', () => {
    const samples = samplesOf([3, 1]);
    expect(samples.percentile(50)).to.equal(1);
    samples.add(0.5);
    expect(samples.percentile(1)).to.equal(0.5);
    expect(samples.percentile(100)).to.equal(3);
  });

  for (const [name, draw] of [
    ['even', (random: () => number) => random() * 10_000],
    ['steep', (random: () => number) => Math.exp(random() * 20 - 6)],
    ['partly 0', (random: () => number) => (random() < 0.9 ? 0 : random() * 50)],
  ] as const) {
    it(`stay within a thousandth once there are many: ${name}`, () => {
      const values = [...drawn(MOST_KEPT + 40_000, draw)];
      const samples = samplesOf(values);
      expect(samples.size).to.equal(values.length);
      for (const percent of [1, 50, 95, 99]) {
        const exact = nearestRank(values, percent);
        expect(samples.percentile(percent), String(percent)).to.be.closeTo(exact, exact / 1000 + 0.001);
      }
      expect(samples.percentile(100)).to.equal(values.reduce((a, b) => Math.max(a, b)));
    });
  }

  it('stay exact where all are the same, and beyond what has ranges', () => {
    for (const value of [0, 240, 1e12, 1e-9]) {
      const { p50, max } = samplesOf(drawn(MOST_KEPT + 1, () => value)).percentiles();
      expect(p50 / (value || 1)).to.be.closeTo(value === 0 ? 0 : 1, 1e-9);
      expect(max).to.equal(value);
    }
  });
});
