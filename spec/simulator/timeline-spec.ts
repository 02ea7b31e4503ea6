import { expect } from 'chai';
import fc from 'fast-check';
import { simulate } from '../../lib/simulator/index.ts';
import type { Load, Scenario, StrategyInput, StrategyResult, Timeline, Upstream } from '../../lib/simulator/index.ts';
import { Counts } from '../../lib/simulator/timeline/Counts.ts';
import { Durations } from '../../lib/simulator/timeline/Durations.ts';
import { TimeBuckets } from '../../lib/simulator/timeline/TimeBuckets.ts';

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

describe('buckets of virtual time', () => {
  it('get wider as time goes on, and lose nothing', () => {
    const events = fc.array(fc.tuple(fc.double({ min: 0, max: 1e6, noNaN: true }), fc.integer({ min: 1, max: 9 })));
    fc.assert(
      fc.property(events, (all) => {
        const buckets = new TimeBuckets(1, 8);
        const counts = new Counts(buckets);
        for (const [atMs, by] of all) counts.add(atMs, by);
        const lastMs = Math.max(0, ...all.map(([atMs]) => atMs));
        expect(buckets.widthMs * 8).to.be.above(lastMs);
        expect(buckets.widthMs === 1 || buckets.widthMs * 4 <= lastMs).to.be.true;
        const expected = Array.from({ length: 8 }, (_, i) =>
          sum(all.filter(([atMs]) => Math.floor(atMs / buckets.widthMs) === i).map(([, by]) => by)),
        );
        expect(counts.values(8)).to.deep.equal(expected);
      }),
    );
  });

  it('give percentiles within 2 %, before and after they got wider', () => {
    const durations = fc.array(fc.double({ min: 1, max: 1e8, noNaN: true }), { minLength: 1, maxLength: 40 });
    fc.assert(
      fc.property(durations, fc.boolean(), (all, wider) => {
        const buckets = new TimeBuckets(1, 4);
        const kept = new Durations(buckets);
        all.forEach((ms, i) => kept.add(i % 2, ms));
        if (wider) buckets.indexOf(6);
        const own = all.filter((_, i) => wider || i % 2 === 0).sort((a, b) => a - b);
        const { p50, p95, p99 } = kept.percentiles(1);
        for (const [percent, value] of [
          [50, p50[0]],
          [95, p95[0]],
          [99, p99[0]],
        ] as const) {
          const exact = own[Math.ceil((percent / 100) * own.length) - 1] as number;
          expect((value as number) / exact).to.be.within(1 / 1.0201, 1.0201);
        }
      }),
    );
  });

  it('have no percentile where nothing was, and count what took no time', () => {
    const kept = new Durations(new TimeBuckets(1, 4));
    kept.add(0, 0);
    kept.add(0, 0.5);
    kept.add(2, 40 * 86_400_000);
    expect(kept.percentiles(3).p50.slice(0, 2)).to.deep.equal([0, null]);
    const { ms, counts } = kept.cumulative();
    expect(ms[0]).to.equal(1);
    expect(counts).to.deep.equal([2, 3]);
  });

  it('tell how many took at most so long', () => {
    const kept = new Durations(new TimeBuckets(1, 4));
    for (let i = 1; i <= 1000; i++) kept.add(i % 4, i);
    const { ms, counts } = kept.cumulative();
    for (const [i, bound] of ms.entries()) {
      expect(counts[i]).to.equal(Math.min(1000, Math.ceil(bound) - (i === ms.length - 1 ? 0 : 1)));
    }
  });
});

describe('the timeline of a simulation', () => {
  const upstream: Upstream = { requestsPerMinute: 300, burstRequests: 10, firstTokenMs: 200, tokenMs: 5, tokens: 40 };
  const load: Load = { arrivals: { kind: 'poisson', perMinute: 400 }, model: 'm' };
  const scenario: Scenario = { name: 'a spec', forMs: 60_000, load: [load], upstreams: { main: upstream } };
  const run = (changes: Partial<Scenario>, strategy: StrategyInput): StrategyResult & { timeline: Timeline } => {
    const [result] = simulate({ ...scenario, ...changes, strategies: [strategy] }, { timeline: true }).strategies;
    if (result?.timeline === undefined) throw new Error('there is no timeline');
    return { ...result, timeline: result.timeline };
  };

  it('is there when it is asked for, and changes no figure', () => {
    const one = { ...scenario, forMs: 10_000, strategies: [{ kind: 'bare' } as const] };
    const [without, withIt] = [simulate(one), simulate(one, { timeline: true })];
    expect(without.best).to.not.have.property('timeline');
    const { timeline, ...rest } = withIt.strategies[0] as StrategyResult;
    expect(timeline).to.not.equal(undefined);
    expect(rest).to.deep.equal(without.strategies[0]);
  });

  it('adds up to the figures of the whole', () => {
    const leaving = { ...load, leavesAfterMs: { median: 3000, sigma: 1 } };
    const { timeline, ...figures } = run({ load: [leaving] }, { kind: 'backoff', attempts: 3 });
    expect(figures.left).to.be.above(0);
    expect(figures.rateLimited).to.be.above(0);
    expect(sum(timeline.calls)).to.equal(figures.calls);
    expect(sum(timeline.answered)).to.equal(figures.answered);
    expect(sum(timeline.failed)).to.equal(sum(Object.values(figures.failed)));
    expect(sum(timeline.left)).to.equal(figures.left);
    expect(sum(timeline.requests)).to.equal(figures.attempts);
    expect(sum(timeline.rateLimited)).to.equal(figures.rateLimited);
    // A request that nobody waits for any more when it arrives is of no call.
    expect(sum(timeline.attempts)).to.be.within(figures.attempts * 0.95, figures.attempts);
    expect(timeline.firstContentMs.cumulative.counts.at(-1)).to.equal(figures.answered);
    for (const key of ['queueMs', 'firstContentMs', 'totalMs'] as const) {
      expect(timeline[key].p50).to.have.length(timeline.calls.length);
    }
  });

  it('has 120 to 240 buckets of what lasts for as long as it is said to, and detail of what does not', () => {
    const whole = run({}, { kind: 'bare' }).timeline;
    expect(whole.calls.length).to.be.within(120, 240);
    expect(whole.bucketMs).to.equal(500);
    const workers = { ...load, arrivals: { kind: 'workers', workers: 1, calls: 5 } as const };
    const short = run({ load: [workers], forMs: 3_600_000 }, { kind: 'bare' }).timeline;
    expect(short.calls.length).to.be.within(30, 240);
    expect(sum(short.calls)).to.equal(5);
  });

  it('tells by when calls were made how long they took', () => {
    const down = { kind: 'error', error: 'overloaded', fromMs: 20_000, toMs: 30_000 } as const;
    const calm = { ...load, arrivals: { kind: 'constant', perMinute: 120 } as const };
    const { timeline } = run(
      { load: [calm], upstreams: { main: { ...upstream, outages: [down] } } },
      { kind: 'fixed', attempts: 50, delayMs: 500 },
    );
    const at = (ms: number): number => Math.floor(ms / timeline.bucketMs);
    expect(timeline.firstContentMs.p50[at(10_000)]).to.be.closeTo(240, 6);
    expect(timeline.firstContentMs.p50[at(21_000)]).to.be.within(8_500, 10_000);
    expect(timeline.firstContentMs.p50[at(28_000)]).to.be.within(1_500, 3_000);
    expect(timeline.attempts[at(21_000)]).to.be.above(15);
  });

  it('holds what was used of each limit against what the limit was', () => {
    const tokensPerMinute = 200_000;
    const changing: Upstream = {
      models: { m: { ...upstream, tokensPerMinute }, n: {} },
      requestsPerMinute: 600,
      noiseShare: 0.5,
      changes: [{ atMs: 30_000, account: { requestsPerMinute: 120 } }],
    };
    const { timeline } = run({ upstreams: { main: changing } }, { kind: 'bare' });
    const names = timeline.quotas.map(({ client, model, unit }) => [client, model, unit]);
    expect(names).to.deep.equal([
      ['main', undefined, 'requests'],
      ['main', 'm', 'requests'],
      ['main', 'm', 'tokens'],
    ]);
    const [account, requests, tokens] = timeline.quotas;
    const at = (ms: number): number => Math.floor(ms / timeline.bucketMs);
    expect(account?.limitPerMinute[at(10_000)]).to.equal(300);
    expect(account?.limitPerMinute[at(40_000)]).to.equal(60);
    expect(tokens?.limitPerMinute[at(40_000)]).to.equal(tokensPerMinute);
    const minutes = timeline.bucketMs / 60_000;
    const admitted = sum(timeline.requests) - sum(timeline.rateLimited);
    expect(sum(requests?.usedPerMinute ?? []) * minutes).to.be.closeTo(admitted, 1e-6);
    expect(sum(tokens?.usedPerMinute ?? []) * minutes).to.be.closeTo(admitted * (500 + 256), admitted);
  });
});
