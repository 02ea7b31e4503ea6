import { expect } from 'chai';
import type { Load, Scenario } from '../../lib/simulator/index.ts';
import type { PlanResult } from '../../lib/simulator/plan/plan.ts';
import { rangeOf } from '../../lib/simulator/plan/Knob.ts';
import { knobOf } from '../../lib/simulator/plan/knobOf.ts';
import type { PlanInput } from '../../lib/simulator/plan/PlanInput.ts';
import { before, load, loaded, quota, run, scenario, upstream } from './smallPlan.ts';

const values = ({ found }: PlanResult): unknown[] => found.map(({ value }) => value);

describe('plan: what is looked for', () => {
  it('tokens a minute, and bursts', async () => {
    const limits = { tokensPerMinute: 120_000, burstTokens: 4000 };
    const of: Scenario = {
      ...before({ ...limits, requestsPerMinute: undefined, burstRequests: undefined }),
      load: [{ ...load, outputLimit: 100 }],
      policy: { quota: { account: limits } },
    };
    const tokens = await run({
      scenario: of,
      find: [{ kind: 'quota', rate: 'tokensPerMinute', from: 50_000, to: 400_000 }],
    });
    // 600 tokens a call, of which there are 120 a minute.
    expect(tokens.reached).to.be.true;
    expect(values(tokens)[0]).to.be.within(600 * 100, 600 * 250);
    const burst = await run({ scenario: of, find: [{ kind: 'quota', rate: 'burstTokens', from: 1000, to: 60_000 }] });
    expect(burst.policy.quota?.account?.burstTokens).to.equal(values(burst)[0]);
  });

  it('two limits, neither of which can be any smaller', async () => {
    const limits = { tokensPerMinute: 200_000 };
    const { reached, found, tried } = await run({
      scenario: { ...before(limits), policy: { quota: { account: { ...quota, ...limits } } } },
      precision: 0.3,
      find: [
        { kind: 'quota', rate: 'requestsPerMinute', from: 60, to: 600 },
        { kind: 'quota', rate: 'tokensPerMinute', from: 40_000, to: 400_000 },
      ],
    });
    expect(reached).to.be.true;
    for (const [i, { why }] of found.entries()) {
      expect(why).to.match(/^The smallest of .* that will do: at .* is to be at/);
      const at = (one: readonly unknown[], j: number): number => one[j] as number;
      const [own, other] = [found[i]?.value as number, found[1 - i]?.value as number];
      const smaller = tried.filter((one) => !one.met && at(one.values, i) < own && at(one.values, 1 - i) >= other);
      expect(smaller).to.not.be.empty;
    }
  });

  it('the quota of a model', async () => {
    const limits = { requestsPerMinute: 150, burstRequests: 3 };
    const result = await run({
      scenario: {
        ...before({ models: { m: limits, n: {} }, requestsPerMinute: undefined, burstRequests: undefined }),
        policy: { models: { default: {}, m: { quota: limits } } },
      },
      find: [{ kind: 'quota', rate: 'requestsPerMinute', model: 'm', from: 100, to: 600 }],
    });
    expect(result.reached).to.be.true;
    expect(result.policy.models?.['m']?.quota?.requestsPerMinute).to.equal(values(result)[0]);
    expect(values(result)[0]).to.be.within(120, 300);
  });

  it('accounts, each with a quota of its own', async () => {
    const result = await run({
      scenario: loaded({ arrivals: { kind: 'poisson', perMinute: 330 } }),
      find: [{ kind: 'deployments', to: 5 }],
    });
    expect(values(result)).to.deep.equal([3]);
    expect(result.policy.models?.['default']?.deployments).to.deep.equal([
      { client: 'main' },
      { client: 'main-2' },
      { client: 'main-3' },
    ]);
    expect(result.policy.quota?.clients).to.deep.equal({ main: quota, 'main-2': quota, 'main-3': quota });
  });

  it('the part of the calls that a cheaper model has to take', async () => {
    const price = (perMTok: number): object => ({ price: { inputPerMTok: perMTok, outputPerMTok: perMTok } });
    const result = await run({
      scenario: {
        ...before({ requestsPerMinute: undefined, burstRequests: undefined }),
        load: [{ ...load, arrivals: { kind: 'constant', perMinute: 120 } }],
        policy: { models: { default: {}, m: price(10), n: price(1) } },
      },
      // 510 tokens for each of 5.2 million calls a month, at 10: some 26,800.
      target: { costPerMonth: 15_000 },
      find: [{ kind: 'modelShare', model: 'm', cheaper: 'n', from: 0.2, to: 0.9 }],
    });
    expect(values(result)[0]).to.be.within(0.45, 0.6);
    expect(result.found[0]?.aside).to.match(/^The application asks n for [\d.]+ % of the calls of m\.$/);
  });

  it('a quota in a range of which only one end is given, or none', () => {
    const ends = (of: object): readonly unknown[] =>
      rangeOf(knobOf({ kind: 'quota', rate: 'requestsPerMinute', ...of }, scenario, 0.1));
    // Of 120 calls a minute.
    expect(ends({})).to.deep.equal([6, 1920]);
    expect(ends({ from: 300 })).to.deep.equal([300, 1920]);
    expect(ends({ from: 3000 })).to.deep.equal([3000, 6000]);
    expect(ends({ to: 4 })).to.deep.equal([2, 4]);
    expect(ends({ rate: 'tokensPerMinute' })).to.deep.equal([756 * 6, 756 * 1920]);
    expect(ends({ rate: 'burstRequests' })).to.deep.equal([1, 240]);
  });

  it('what one tenant needs beside another', async () => {
    const bursts: Load = { ...load, arrivals: { kind: 'bursts', size: 40, everyMs: 20_000 }, tenant: 'batch' };
    const person: Load = { ...load, arrivals: { kind: 'poisson', perMinute: 20 }, tenant: 'person' };
    const limits = { requestsPerMinute: 6000, burstRequests: 100 };
    const of: Scenario = {
      ...scenario,
      load: [person, bursts],
      upstreams: { main: { ...upstream, ...limits } },
      policy: {},
    };
    const needed = async (target: PlanInput['target']): Promise<number> => {
      const find: PlanInput['find'] = [{ kind: 'policy', path: 'maxInFlight', from: 1, to: 64, search: 'smallest' }];
      return values(await run({ scenario: of, find, target }))[0] as number;
    };
    const all = await needed({ tenants: { person: { firstContentP95Ms: 6000 } } });
    expect(await needed({ tenants: { person: { firstContentP95Ms: 400 } } })).to.be.above(all);
  });

  it('the largest load', async () => {
    const result = await run({ find: [{ kind: 'load', from: 0.25, to: 2 }] });
    // 1.25 times as much would be all of the quota, with waits that have no end.
    expect(values(result)[0]).to.be.within(0.3, 1.25);
    expect(result.found[0]?.aside).to.match(/^For [\d.]+ times the load of the scenario\.$/);
  });

  it('the best of a setting, which lies somewhere inside', async () => {
    // Too few at once make a queue, too many make the provider refuse.
    const result = await run({
      scenario: {
        ...before({ requestsPerMinute: undefined, burstRequests: undefined, maxConcurrent: 4, firstTokenMs: 600 }),
        policy: {},
      },
      target: { firstContentP95Ms: 1500, rateLimitedShare: 0.01 },
      find: [{ kind: 'policy', path: ['models', 'default', 'concurrency', 'limit'], from: 1, to: 16 }],
    });
    expect(result.reached).to.be.true;
    expect(values(result)[0]).to.be.within(3, 4);
    expect(result.found[0]?.why).to.match(/^Leaves the most room of \d+ tried from 1 to 16: at 1 .*; at 16 429s/);
  });

  it('the smallest or largest of a setting, or one of a list', async () => {
    const find = (search: 'smallest' | 'largest', of: object): PlanInput['find'] => [
      { kind: 'policy', path: 'maxInFlight', search, ...of },
    ];
    const slow = { scenario: before({ firstTokenMs: 1000, requestsPerMinute: 2000, burstRequests: 100 }) };
    const scenarioOf = { scenario: { ...slow.scenario, policy: {} } };
    const smallest = await run({ ...scenarioOf, find: find('smallest', { from: 1, to: 50 }) });
    expect(values(smallest)[0]).to.be.within(2, 8);
    const listed = await run({ ...scenarioOf, find: find('smallest', { values: [1, 2, 20, 40] }) });
    expect(values(listed)).to.deep.equal([20]);
    const largest = await run({
      target: { firstContentP95Ms: 1500, answeredShare: 0 },
      find: [{ kind: 'policy', path: 'deadlineMs', search: 'largest', from: 300, to: 60_000 }],
      precision: 0.5,
    });
    // Who waits longer than that gets no answer, and has no time to first content.
    expect(largest.found[0]).to.include({ from: 300, to: 60_000 });
    expect(largest.found[0]?.why).to.match(
      /^(?:The largest of 300 to 60,000 that will do: at |One that was confirmed: )/,
    );
    expect(values(largest)[0]).to.be.within(500, 3000);
  });
});
