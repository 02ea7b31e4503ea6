import { expect } from 'chai';
import fc from 'fast-check';
import type { Scenario } from '../../lib/simulator/index.ts';
import { confirmed } from '../../lib/simulator/plan/confirmed.ts';
import { Judge } from '../../lib/simulator/plan/Judge.ts';
import { figureOf } from '../../lib/simulator/plan/judged.ts';
import type { Knob } from '../../lib/simulator/plan/Knob.ts';
import { MEASURES, targetsOf } from '../../lib/simulator/plan/targets.ts';
import type { Target, TargetName } from '../../lib/simulator/plan/targets.ts';
import type { StrategyResult } from '../../lib/simulator/SimulationRun.ts';

function target(name: TargetName, limit: number): Target {
  const measure = MEASURES.find((one) => one.name === name);
  if (measure === undefined) throw new Error(name);
  return { measure, limit };
}

describe('figureOf', () => {
  it('is met where the next run would meet it, and not where only these do', () => {
    const even = figureOf(target('firstContentP95Ms', 1000), [950, 951, 949, 950, 950]);
    const uneven = figureOf(target('firstContentP95Ms', 1000), [950, 999, 901, 990, 910]);
    expect(even).to.include({ met: true, mean: 950, worst: 951 });
    expect(uneven).to.include({ met: false, mean: 950, worst: 999 });
    expect(even.bound).to.be.within(951, 953);
    expect(uneven.bound).to.be.above(1000);
  });

  it('has the bound that the tables give', () => {
    // Mean 10, deviation 1, three runs: 10 + 2.92 * sqrt(1 + 1/3).
    expect(figureOf(target('costPerMonth', 20), [9, 10, 11]).bound).to.be.closeTo(10 + 2.92 * Math.sqrt(4 / 3), 1e-9);
  });

  it('never has a bound that one of the runs has passed', () => {
    const values = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 1, maxLength: 30 });
    fc.assert(
      fc.property(values, fc.double({ min: 0, max: 1, noNaN: true }), (shares, limit) => {
        const most = figureOf(target('rateLimitedShare', limit), shares);
        const least = figureOf(target('answeredShare', limit), shares);
        expect(most.bound).to.be.within(Math.max(...shares), 1);
        expect(least.bound).to.be.within(0, Math.min(...shares));
        expect(most.met).to.equal(most.bound <= limit + 1e-12);
        expect(least.met).to.equal(least.bound >= limit - 1e-12);
        expect(most.room >= 0).to.equal(most.met);
      }),
    );
  });

  it('judges a share that is to be high by what is missing of it', () => {
    const { room, side } = figureOf(target('answeredShare', 0.99), [0.995]);
    expect(side).to.equal('at least');
    expect(room).to.be.closeTo(0.5, 1e-9);
    expect(figureOf(target('answeredShare', 1), [1, 1, 1])).to.include({ met: true, room: 1 });
    expect(figureOf(target('answeredShare', 1), [1, 1, 0.999])).to.include({ met: false, room: -Infinity });
    expect(figureOf(target('rateLimitedShare', 0), [0, 0, 0])).to.include({ met: true, room: 1 });
  });

  it('takes no time for short enough where nothing was answered', () => {
    const { measure } = target('firstContentP95Ms', 1);
    const nothing = { firstContentMs: { p50: NaN, p95: NaN, p99: NaN, max: NaN } } as StrategyResult;
    expect(measure.of(nothing)).to.equal(Infinity);
    expect(figureOf(target('firstContentP95Ms', 1), [Infinity])).to.include({ met: false, room: -Infinity });
  });
});

describe('targetsOf', () => {
  it('asks for nearly all answers, unless told how many', () => {
    const limits = (answeredShare?: number): readonly number[] =>
      targetsOf({ totalP95Ms: 9, ...(answeredShare !== undefined && { answeredShare }) }).map(({ limit }) => limit);
    expect(limits()).to.deep.equal([0.99, 9]);
    expect(limits(0.5)).to.deep.equal([0.5, 9]);
  });

  it('asks the same of each tenant that is named, of its own calls', () => {
    const targets = targetsOf({ tenants: { acme: { firstContentP95Ms: 5 }, globex: { answeredShare: 0.5 } } });
    expect(targets.map(({ measure: { label }, limit }) => [label, limit])).to.deep.equal([
      ['answered', 0.99],
      ['acme: time to first content, p95', 5],
      ['acme: answered', 0.99],
      ['globex: answered', 0.5],
    ]);
    const none = { p50: NaN, p95: NaN, p99: NaN, max: NaN };
    const result = { tenants: { acme: { calls: 4, answered: 3, firstContentMs: { ...none, p95: 7 } } } };
    const measured = targets.slice(1).map(({ measure }) => measure.of(result as unknown as StrategyResult));
    expect(measured).to.deep.equal([7, 0.75, 0]);
  });
});

describe('Judge', () => {
  const scenario: Scenario = { name: 'a spec', seed: 3, forMs: 1000, load: [], upstreams: {} };
  const knob: Knob = {
    label: 'a number',
    told: (value) => `${String(value)} of a number`,
    search: 'smallest',
    values: [10, 20, 30],
    start: 0,
    apply: (of, value) => ({ ...of, name: String(value) }),
    places: [],
  };

  function judging(shareOf: (run: number, scenario: Scenario) => number) {
    const seeds: number[] = [];
    const judge = new Judge(scenario, [knob], [target('rateLimitedShare', 0.1)], 4, async (candidate) => {
      seeds.push(candidate.seed ?? 0);
      return { rateLimitedShare: shareOf(seeds.length, candidate) } as StrategyResult;
    });
    return { judge, seeds };
  }

  it('runs what meets the targets with every seed, and each with another', async () => {
    const { judge, seeds } = judging(() => 0.05);
    expect(await judge.judge([1])).to.deep.include({ values: [20], runs: 4, met: true });
    expect(new Set(seeds).size).to.equal(4);
    expect(seeds[0]).to.equal(3);
  });

  it('leaves what misses one at its first run that does', async () => {
    const { judge, seeds } = judging((run) => (run === 2 ? 0.2 : 0.05));
    expect(await judge.judge([0])).to.include({ runs: 2, met: false });
    expect(seeds).to.have.length(2);
  });

  it('remembers what it has judged, in the order of asking', async () => {
    const { judge, seeds } = judging((_, { name }) => (name === '10' ? 0.2 : 0.05));
    for (const at of [2, 0, 2, 0]) await judge.judge([at]);
    expect(seeds).to.have.length(5);
    expect(judge.tried.map(({ values }) => values)).to.deep.equal([[30], [10]]);
  });

  it('confirms with seeds that had no part in the choice, and does not count that as tried', async () => {
    const { judge, seeds } = judging(() => 0.05);
    await judge.judge([1]);
    expect(await judge.confirm([1])).to.include({ runs: 4, met: true });
    expect(new Set(seeds).size).to.equal(8);
    expect(judge.tried).to.have.length(1);
  });

  it('scores by the target that is furthest off', async () => {
    const { judge } = judging(() => 0.02);
    expect((await judge.judge([0])).score).to.be.closeTo(0.2, 1e-9);
  });

  describe('confirmed', () => {
    /** The first four seeds are kinder: they take 10 for enough. */
    const unkind =
      (least: number) =>
      (_: number, { name, seed = 0 }: Scenario) =>
        Number(name) >= (seed > 4_000_000 ? least : 10) ? 0.05 : 0.2;

    it('takes what other seeds agree to', async () => {
      const { judge } = judging(unkind(10));
      expect(await confirmed(judge, [knob], [0])).to.deep.include({ at: [0], met: true });
    });

    it('goes on until they agree, and says so where they never do', async () => {
      expect(await confirmed(judging(unkind(20)).judge, [knob], [0])).to.deep.include({ at: [1], met: true });
      expect(await confirmed(judging(unkind(30)).judge, [knob], [0])).to.deep.include({ at: [2], met: true });
      expect(await confirmed(judging(unkind(99)).judge, [knob], [0])).to.deep.include({ at: [0], met: false });
      const best = { ...knob, search: 'best' as const };
      expect(await confirmed(judging(unkind(20)).judge, [best], [0])).to.deep.include({ at: [0], met: false });
    });
  });
});
