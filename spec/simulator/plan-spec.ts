import { expect } from 'chai';
import { isSluiceError } from '../../lib/core/errors.ts';
import { simulate } from '../../lib/simulator/index.ts';
import type { Scenario } from '../../lib/simulator/index.ts';
import { plan } from '../../lib/simulator/plan/plan.ts';
import type { PlanProgress, PlanResult } from '../../lib/simulator/plan/plan.ts';
import type { PlanInput } from '../../lib/simulator/plan/PlanInput.ts';
import { before, input, loaded, quota, run, scenario } from './smallPlan.ts';

const code = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => undefined,
    (error: unknown) => (isSluiceError(error) ? error.code : error),
  );
const values = ({ found }: PlanResult): unknown[] => found.map(({ value }) => value);

describe('plan', () => {
  it('finds the smallest quota that will do, and sets it in the policy', async () => {
    const { reached, found, figures, policy, tried } = await run({});
    const value = found[0]?.value as number;
    expect(reached).to.be.true;
    expect(policy.quota?.account).to.deep.equal({ ...quota, requestsPerMinute: value });
    expect(figures.every(({ met }) => met)).to.be.true;
    const below = Math.max(...tried.map((one) => one.values[0] as number).filter((other) => other < value));
    expect(below).to.be.within(value / 1.25, value - 1);
    expect(tried.find((one) => one.values[0] === below)).to.include({ met: false });

    const p95 = (requestsPerMinute: number): number => {
      const limits = { ...quota, requestsPerMinute };
      const seeds = [901, 902, 903].map((seed) => {
        const at = { ...before(limits), seed, policy: { quota: { account: limits } } };
        return simulate({ ...at, strategies: [{ kind: 'sluice' }] }).strategies[0]?.firstContentMs.p95 ?? 0;
      });
      return Math.max(...seeds);
    };
    expect(p95(value)).to.be.below(1500);
    expect(p95(value * 0.6)).to.be.above(1500);
  });

  it('gives the same result for the same plan, and another for another seed', async () => {
    const few = { precision: 0.5 };
    const text = async (seed: number): Promise<string> =>
      JSON.stringify(await run({ ...few, scenario: { ...scenario, seed } }));
    expect(await text(1)).to.equal(await text(1));
    expect(await text(1)).to.not.equal(await text(2));
  });

  it('says that the model itself is too slow, and how slow', async () => {
    const { reached, reasons } = await run({ scenario: before({ firstTokenMs: 2500 }) });
    expect(reached).to.be.false;
    expect(reasons).to.have.length(1);
    expect(reasons[0]).to.match(
      /^time to first content, p95: 2\.\d+ s is the nearest, at \d+ requests a minute of main/,
    );
    expect(reasons[0]).to.contain('Even without any limit, fault or wait it is 2.54 s');
  });

  it('says to look further up where only the range is too short', async () => {
    const { reached, reasons } = await run({ find: [{ kind: 'quota', rate: 'requestsPerMinute', from: 50, to: 110 }] });
    expect(reached).to.be.false;
    expect(reasons[0]).to.match(/without these limits it is 2\d\d ms: look further up/);
  });

  it('says which failures there are, what 429s come from, and what tokens cost', async () => {
    const price = { inputPerMTok: 10, outputPerMTok: 10 };
    const { reasons } = await run({
      scenario: {
        ...before({ noiseShare: 0.5, randomFaults: [{ kind: 'error', error: 'server_error', probability: 0.5 }] }),
        policy: { quota: { account: quota }, models: { default: { price, retry: { attempts: 1 } } } },
      },
      target: { rateLimitedShare: 0, answeredShare: 0.99, costPerMonth: 10 },
      find: [{ kind: 'policy', path: 'maxInFlight', values: [8, 16] }],
    });
    const of = (target: string): string | undefined => reasons.find((reason) => reason.startsWith(`${target}: `));
    expect(reasons).to.have.length(3);
    expect(of('429s per request sent')).to.match(/since others use a part of the quota of main and main has faults\.$/);
    expect(of('answered')).to.match(/Of all calls: .*server_error [\d.]+ %/);
    expect(of('cost a month')).to.match(
      /The tokens that are asked for cost [\d,]+ by themselves: no quota makes them cheaper\.$/,
    );
  });

  it('asks for more where a target is closer, whichever it is', async () => {
    const price = { price: { inputPerMTok: 10, outputPerMTok: 10 } };
    const of: Scenario = {
      ...scenario,
      policy: { quota: { account: quota }, deadlineMs: 4000, models: { default: price } },
    };
    const find: PlanInput['find'] = [{ kind: 'quota', rate: 'requestsPerMinute', from: 90, to: 1400 }];
    const needed = async (target: PlanInput['target']): Promise<unknown> =>
      values(await run({ scenario: of, precision: 0.9, find, target }))[0];
    const loose = { firstContentP50Ms: 9000, firstContentP95Ms: 9000, firstContentP99Ms: 9000, totalP95Ms: 9000 };
    const little = await needed({ ...loose, answeredShare: 0 });
    for (const close of [
      { firstContentP50Ms: 241 },
      { firstContentP95Ms: 300 },
      { firstContentP99Ms: 300 },
      { totalP95Ms: 320 },
      { answeredShare: 1 },
    ]) {
      expect(await needed({ ...loose, answeredShare: 0, ...close }), JSON.stringify(close)).to.be.above(
        little as number,
      );
    }
  });

  it('judges with as many seeds, as finely and as long as it is told', async () => {
    const coarse = { precision: 0.5 };
    const three = await run(coarse);
    expect(three.simulated).to.include({ seeds: 3, forMs: 60_000, ofMs: 60_000, part: 'all' });
    const five = await run({ ...coarse, seeds: 5 });
    expect(five.simulated.seeds).to.equal(5);
    expect(Math.max(...five.tried.map(({ runs }) => runs))).to.equal(5);
    expect((await run({})).tried.length).to.be.above(three.tried.length);
    const long = { ...loaded({ arrivals: { kind: 'poisson', perMinute: 12 } }), forMs: 86_400_000 };
    const named = await run({ ...coarse, scenario: long, callsPerRun: 132, name: 'mine' });
    expect(named.simulated).to.include({ forMs: 660_000, ofMs: 86_400_000, part: 'first' });
    expect([three.plan, named.plan]).to.deep.equal(['a spec', 'mine']);
  });

  it('ends when it is told to, in the middle of a run', async () => {
    const ending = new AbortController();
    let heard = 0;
    const planned = plan(
      { ...input, scenario: loaded({ arrivals: { kind: 'poisson', perMinute: 120 } }) },
      {
        signal: ending.signal,
        onProgress: ({ runs, done }) => {
          heard++;
          if (runs === 2 && done > 0.5) ending.abort();
        },
      },
    );
    expect(await code(planned)).to.equal('aborted');
    const before = heard;
    await new Promise((resolve) => setImmediate(resolve));
    expect(heard).to.equal(before);
    expect(await code(plan(input, { signal: AbortSignal.abort() }))).to.equal('aborted');
  });

  it('tells what it does', async () => {
    const heard: PlanProgress[] = [];
    await plan({ ...input, precision: 0.5 }, { onProgress: (progress) => void heard.push(progress) });
    expect(new Set(heard.map(({ doing }) => doing))).to.deep.equal(new Set(['searching', 'confirming']));
    expect(heard[0]?.values).to.deep.equal([600]);
    expect(heard.at(-1)).to.include({ done: 1 });
    expect(heard.every(({ done }, i) => done >= 0 && done <= 1 && (heard[i - 1]?.runs ?? 0) <= (heard[i]?.runs ?? 0)))
      .to.be.true;
  });
});
