import { expect } from 'chai';
import {
  failureRows,
  phaseRows,
  resultRows,
  simulate,
  simulateInSteps,
  tenantRows,
} from '../../lib/simulator/index.ts';
import type { Load, Scenario, StrategyInput, StrategyResult, Upstream } from '../../lib/simulator/index.ts';

const quota = { requestsPerMinute: 600, burstRequests: 10 };
const upstream: Upstream = { ...quota, firstTokenMs: 200, tokenMs: 5, tokens: 40 };
const load: Load = { arrivals: { kind: 'poisson', perMinute: 500 }, model: 'm' };
const scenario: Scenario = {
  name: 'a spec',
  forMs: 60_000,
  load: [load],
  upstreams: { main: upstream },
  policy: { quota: { account: quota } },
};
const run = (changes: Partial<Scenario>, ...strategies: StrategyInput[]): StrategyResult[] => [
  ...simulate({ ...scenario, ...changes, strategies }).strategies,
];
const one = (changes: Partial<Scenario>, strategy: StrategyInput = { kind: 'sluice' }): StrategyResult =>
  run(changes, strategy)[0] as StrategyResult;
const loaded = (changes: Partial<Load>): Partial<Scenario> => ({ load: [{ ...load, ...changes }] });
const upstreams = (changes: Partial<Upstream>): Partial<Scenario> => ({
  upstreams: { main: { ...upstream, ...changes } },
});

describe('simulate', () => {
  it('gives the same result for the same seed, byte for byte, and another for another', () => {
    const text = (seed: number): string => JSON.stringify(simulate({ ...scenario, forMs: 20_000, seed }));
    expect(text(7)).to.equal(text(7));
    expect(text(7)).to.not.equal(text(8));
  });

  it('runs every strategy with the same calls', () => {
    const results = simulate({ ...scenario, forMs: 20_000 });
    const calls = [results.best, ...results.strategies].map((result) => result.calls);
    expect(new Set(calls).size).to.equal(1);
    expect(results.strategies.map(({ name }) => name)).to.deep.equal(['bare', 'sdk, 2 retries', 'backoff', 'sluice']);
  });

  it('answers all that the quota carries through Sluice without a 429, nearly as soon as can be', () => {
    const { best, strategies } = simulate({ ...scenario, strategies: [{ kind: 'sluice' }, { kind: 'bare' }] });
    const [sluice, bare] = strategies as [StrategyResult, StrategyResult];
    expect(sluice).to.include({ answered: sluice.calls, rateLimited: 0, truncated: 0, attemptsPerCall: 1 });
    expect(sluice.firstContentMs.p95).to.be.at.most(best.firstContentMs.p95 + 150);
    expect(bare.rateLimited).to.be.above(0);
    expect(bare.failed['rate_limited']).to.equal(bare.rateLimited);
  });

  it('has no schedule that begins earlier than the best possible one, in order of arrival', () => {
    const { best, strategies } = simulate({
      ...scenario,
      ...loaded({ arrivals: { kind: 'poisson', perMinute: 600 } }),
    });
    expect(best.answered).to.equal(best.calls);
    for (const { answered, calls, firstContentMs } of strategies) {
      if (answered === calls) expect(firstContentMs.p95).to.be.at.least(best.firstContentMs.p95 - 1);
    }
  });

  it('measures from the call to its first content, and counts the way there and back', () => {
    const quiet = loaded({ arrivals: { kind: 'constant', perMinute: 60 } });
    expect(one({ ...quiet, networkMs: 0 }).firstContentMs.p50).to.be.closeTo(200, 1);
    expect(one({ ...quiet, networkMs: 30 }).firstContentMs.p50).to.be.closeTo(260, 1);
    expect(one({ ...quiet, networkMs: 30 }).totalMs.p50).to.be.closeTo(260 + 39 * 5, 1);
  });

  it('brings every chunk where that is asked for, with the same figures', () => {
    const ends = one({ forMs: 10_000 });
    const all = one({ forMs: 10_000, chunks: 'all' });
    expect(all).to.deep.equal(ends);
  });

  it('keeps turns of a conversation in order through Sluice, and shows that others do not', () => {
    const talk = loaded({ conversations: { share: 1, count: 5 }, arrivals: { kind: 'poisson', perMinute: 300 } });
    const [sluice, bare] = run({ ...talk, forMs: 20_000 }, { kind: 'sluice' }, { kind: 'bare' });
    expect(sluice?.turns).to.equal(sluice?.calls);
    expect(sluice?.turnsInOrder).to.equal(sluice?.turns);
    expect(bare?.turnsInOrder).to.be.below(0.8 * (bare?.turns ?? 0));
  });

  it('lets each worker make its next call once the last has ended and it has thought', () => {
    const workers = (thinkMs: number, calls?: number): StrategyResult =>
      one({
        ...loaded({ arrivals: { kind: 'workers', workers: 2, thinkMs, calls } }),
        ...upstreams({ requestsPerMinute: undefined, burstRequests: undefined }),
        policy: {},
        networkMs: 0,
        forMs: 10_000,
      });
    const takesMs = 200 + 39 * 5;
    expect(workers(0).calls).to.equal(2 * Math.ceil(10_000 / takesMs));
    expect(workers(1000).calls).to.equal(2 * Math.ceil(10_000 / (takesMs + 1000)));
    expect(workers(0, 7).calls).to.equal(7);
  });

  it('makes recorded calls as they were, in the order of their times', () => {
    const calls = [
      { atMs: 2000, model: 'n', tenant: 'acme', outputTokens: 3 },
      { atMs: 1000, promptTokens: 50 },
      { atMs: 70_000 },
    ];
    const result = one({ ...loaded({ arrivals: { kind: 'trace', calls } }), ...upstreams({ tokens: 'max' }) });
    expect(result.calls).to.equal(2);
    expect(result.tenants['acme']).to.include({ calls: 1, answered: 1 });
  });

  it('counts users that leave, whose answers end there', () => {
    const prices = { policy: { models: { default: { price: { inputPerMTok: 0, outputPerMTok: 1_000_000 } } } } };
    const quiet = {
      ...prices,
      ...upstreams({ requestsPerMinute: undefined, burstRequests: undefined }),
      forMs: 10_000,
    };
    const whole = one({ ...quiet, chunks: 'all' });
    const left = one({ ...quiet, ...loaded({ leavesAfterMs: 300 }), chunks: 'all' });
    expect(left).to.include({ left: left.calls, answered: 0 });
    expect(whole.cost).to.equal(40 * whole.calls);
    expect(left.cost).to.be.within(1 * left.calls, 39 * left.calls);
  });

  it('gives calls the deadline of their load', () => {
    const busy = loaded({ arrivals: { kind: 'bursts', size: 100, everyMs: 60_000 }, deadlineMs: 1000 });
    const { failed, answered } = one(busy);
    expect(failed['timeout_deadline']).to.be.above(50);
    expect(answered).to.be.above(10);
  });

  it('plays faults, outages and changes of the quota', () => {
    const outage = { kind: 'error', error: 'overloaded', fromMs: 10_000, toMs: 20_000 } as const;
    const bare: StrategyInput = { kind: 'bare' };
    expect(one(upstreams({ outages: [outage] }), bare).failed['overloaded']).to.be.within(60, 110);
    expect(one(upstreams({ script: [{ kind: 'reset', after: 3 }] }), bare).failed['connection']).to.equal(1);
    expect(one(upstreams({ script: [{ kind: 'cut', after: 3 }] }), bare).truncated).to.equal(1);
    const halved = { ...quota, requestsPerMinute: 100 };
    const before = one({}, bare).rateLimited;
    expect(one(upstreams({ changes: [{ atMs: 30_000, account: halved }] }), bare).rateLimited).to.be.above(
      before + 100,
    );
  });

  it('does not take its own queue for a provider that is down', () => {
    const slow = upstreams({ firstTokenMs: { median: 400, sigma: 0.3 } });
    const many = loaded({ arrivals: { kind: 'poisson', perMinute: 900 } });
    const policy = { deadlineMs: 4000, quota: { account: { ...quota, maxWaitMs: 3500 } } };
    const { failed, answered } = one({ ...slow, ...many, policy });
    expect(Object.keys(failed)).to.not.include('circuit_open');
    expect(answered).to.be.above(560);
  });

  it('says how much of the quota was used, and of which client', () => {
    const many = loaded({ arrivals: { kind: 'poisson', perMinute: 2000 } });
    const { quotaUsed } = one({ ...many, forMs: 30_000 });
    expect(quotaUsed['main']).to.be.within(0.95, 1);
    expect(one({ forMs: 30_000 }).quotaUsed['main']).to.be.within(0.6, 0.95);
    expect(one({ ...upstreams({ requestsPerMinute: undefined, burstRequests: undefined }) }).quotaUsed).to.deep.equal(
      {},
    );
  });

  it('asks the fallback of an outage, and the yardstick does too', () => {
    const down = { kind: 'error', error: 'overloaded', model: 'm', fromMs: 0, toMs: 60_000 } as const;
    const policy = { models: { default: {}, m: { fallback: ['n'] } } };
    const free = upstreams({ requestsPerMinute: undefined, burstRequests: undefined, outages: [down] });
    const { best, strategies } = simulate({ ...scenario, ...free, policy, strategies: [{ kind: 'sluice' }] });
    expect(best.answered).to.equal(best.calls);
    expect(best.firstContentMs.p95).to.be.closeTo(240, 1);
    expect(strategies[0]?.answered).to.equal(strategies[0]?.calls);
  });

  it('waits for what the yardstick has to wait for: slots, tokens and the end of an outage', () => {
    const best = (changes: Partial<Upstream>): StrategyResult =>
      simulate({ ...scenario, ...upstreams(changes), strategies: [{ kind: 'bare' }], forMs: 10_000 }).best;
    const free = { requestsPerMinute: undefined, burstRequests: undefined };
    expect(best(free).queueMs.max).to.equal(0);
    expect(best({ ...free, maxConcurrent: 2 }).queueMs.p95).to.be.above(300);
    expect(best({ ...free, tokensPerMinute: 100_000, burstTokens: 2000 }).queueMs.p95).to.be.above(300);
    const down = { kind: 'error', error: 'overloaded', fromMs: 0, toMs: 5000 } as const;
    expect(best({ ...free, outages: [down] }).queueMs.max).to.be.within(4000, 5000);
  });

  it('lets nobody wait for longer than the deadline, in the yardstick too', () => {
    const best = (changes: Partial<Load>): StrategyResult =>
      simulate({
        ...scenario,
        ...loaded({ arrivals: { kind: 'poisson', perMinute: 1200 }, ...changes }),
        policy: { deadlineMs: 5000 },
        strategies: [{ kind: 'bare' }],
      }).best;
    const shared = best({});
    expect(shared.queueMs.max).to.be.within(4500, 5000);
    expect(shared.answered).to.be.within(600, 680);
    expect(shared.failed['timeout_deadline']).to.equal(shared.calls - shared.answered);
    expect(best({ deadlineMs: 2000 }).queueMs.max).to.be.within(1500, 2000);
    const turns = best({ conversations: { share: 1, count: 3 } });
    expect(turns.queueMs.max).to.be.within(4500, 5000);
    expect(turns.answered).to.be.below(shared.answered);
  });

  it('tells how far it is', () => {
    const heard = new Set<string>();
    const options = {
      onProgress: ({ strategy, atMs }: { strategy: string; atMs: number }) =>
        void (atMs === 60_000 && heard.add(strategy)),
    };
    simulate({ ...scenario, strategies: [{ kind: 'bare' }] }, options);
    expect([...heard]).to.deep.equal(['best possible', 'bare']);
  });

  describe('strategies', () => {
    const busy = { ...loaded({ arrivals: { kind: 'bursts', size: 30, everyMs: 10_000 } }), forMs: 10_000 };

    it('retry as they say', () => {
      const attempts = (strategy: StrategyInput): number => one(busy, strategy).attempts;
      expect(attempts({ kind: 'bare' })).to.equal(30);
      expect(attempts({ kind: 'sdk', retries: 0 })).to.equal(30);
      expect(attempts({ kind: 'sdk', retries: 1 })).to.equal(50);
      expect(attempts({ kind: 'fixed', attempts: 1 })).to.equal(30);
      expect(attempts({ kind: 'fixed', attempts: 2, delayMs: 100 })).to.equal(50);
      expect(attempts({ kind: 'backoff', attempts: 2 })).to.equal(50);
    });

    it('wait as they say', () => {
      const slowest = (strategy: StrategyInput): number => one(busy, strategy).recoveryMs.max;
      expect(slowest({ kind: 'fixed', attempts: 2, delayMs: 4000 })).to.be.within(4200, 4300);
      expect(slowest({ kind: 'backoff', attempts: 2, baseMs: 2000, capMs: 8000 })).to.be.within(2200, 2300);
      expect(slowest({ kind: 'backoff', attempts: 2, baseMs: 9000, capMs: 3000 })).to.be.within(3200, 3300);
      expect(slowest({ kind: 'backoff', attempts: 2, baseMs: 3000, jitter: 'full' })).to.be.below(3200);
      const script = [{ kind: 'error', error: 'overloaded', retryAfterMs: 7000, times: 30 }] as const;
      const hinted = { ...busy, ...upstreams({ script, requestsPerMinute: undefined, burstRequests: undefined }) };
      const total = (heedHints: boolean): number =>
        one(hinted, { kind: 'backoff', attempts: 2, heedHints }).totalMs.p50;
      expect(total(true) - total(false)).to.be.closeTo(6500, 1);
    });

    it('ask the fallback once their attempts are used up', () => {
      const limited = {
        ...busy,
        ...upstreams({
          models: { m: { requestsPerMinute: 1, burstRequests: 1 }, n: {} },
          requestsPerMinute: undefined,
          burstRequests: undefined,
        }),
      };
      const alone = one(limited, { kind: 'backoff', attempts: 1 });
      const helped = one(limited, { kind: 'backoff', attempts: 1, fallback: 'n' });
      expect(alone.answered).to.equal(1);
      expect(helped.answered).to.equal(30);
    });

    it('ask no fallback once a part of the answer has come', () => {
      const script = [{ kind: 'reset', after: 3 }] as const;
      const broken = { ...loaded({ arrivals: { kind: 'constant', perMinute: 1 } }), ...upstreams({ script }) };
      const { attempts, failed } = one(broken, { kind: 'backoff', attempts: 3, fallback: 'n' });
      expect({ attempts, failed }).to.deep.equal({ attempts: 1, failed: { connection: 1 } });
    });

    it('say whose calls are, or do not', () => {
      const many = { arrivals: { kind: 'bursts', size: 40, everyMs: 10_000 }, tenant: 'many' } as const;
      const both = {
        load: [
          { ...load, ...many },
          { ...load, ...many, tenant: 'few' },
        ],
        forMs: 10_000,
      };
      const policy = { quota: { account: quota }, tenants: { few: { weight: 9 } } };
      const p95 = (tenants: boolean): number =>
        one({ ...both, policy }, { kind: 'sluice', tenants }).tenants['few']?.firstContentMs.p95 ?? Number.NaN;
      expect(p95(true)).to.be.below(0.7 * p95(false));
    });

    it('run a policy of their own', () => {
      const [theirs, own] = run(
        {},
        { kind: 'sluice' },
        { kind: 'sluice', policy: { quota: { account: { requestsPerMinute: 60 } } } },
      );
      expect(own?.queueMs.p50).to.be.above((theirs?.queueMs.p50 ?? 0) + 5000);
    });
  });

  it('refuses a scenario that cannot be, with everything that is wrong', () => {
    const wrong = { ...scenario, forMs: -1, load: [{ ...load, arrivals: { kind: 'poisson', perMinutes: 3 } }] };
    expect(() => simulate(wrong as never)).to.throw(/the scenario has \d problems:[^]*forMs[^]*perMinute/);
  });

  it('counts by tenant, and shows that as rows: those with the most calls first', () => {
    const prices = { models: { default: { price: { inputPerMTok: 1, outputPerMTok: 1 } } } };
    const loads = ['few', 'many'].map((tenant, i) => ({
      ...load,
      tenant,
      arrivals: { kind: 'poisson', perMinute: 300 * (i + 1) } as const,
    }));
    const result = simulate({
      ...scenario,
      load: loads,
      policy: prices,
      strategies: [{ kind: 'bare' }],
      forMs: 20_000,
    });
    const [bare] = result.strategies as [StrategyResult];
    const { few, many } = bare.tenants;
    expect((few?.calls ?? 0) + (many?.calls ?? 0)).to.equal(bare.calls);
    expect((few?.rateLimited ?? 0) + (many?.rateLimited ?? 0)).to.equal(bare.rateLimited);
    expect((few?.cost ?? 0) + (many?.cost ?? 0)).to.be.closeTo(bare.cost, 1e-9);
    expect(few?.queueMs.p95).to.equal(0);
    const rows = tenantRows(result);
    expect(rows[1]?.slice(0, 1)).to.deep.equal(['many: calls']);
    expect(rows.map(([label]) => label)).to.include('few: cost');
    expect(failureRows(result)[1]).to.deep.equal(['rate_limited', '0', bare.rateLimited.toLocaleString('en-US')]);
    expect(phaseRows(result)).to.have.length(1);
    const phases = [{ name: 'late', fromMs: 2000, toMs: 5000 }];
    expect(phaseRows(simulate({ ...scenario, phases, forMs: 5000, strategies: [{ kind: 'bare' }] }))[1]?.[0]).to.equal(
      'late: calls',
    );
  });

  it('tells what a month of the load would cost, whenever its last call ends', () => {
    const policy = { models: { default: { price: { inputPerMTok: 0, outputPerMTok: 1_000_000 } } } };
    const calm = { ...loaded({ arrivals: { kind: 'constant', perMinute: 60 } }), policy, forMs: 10_000 };
    const result = one({ ...calm, ...upstreams({ tokenMs: 1000 }) }, { kind: 'bare' });
    expect(result.tookMs).to.be.above(40_000);
    expect(result.cost).to.equal(400);
    expect(result.costPerMonth).to.be.closeTo((400 * (365 / 12) * 86_400_000) / 10_000, 1);
  });

  it('does little at a time, and has the same result', () => {
    const busy: Scenario = {
      ...scenario,
      ...loaded({ arrivals: { kind: 'poisson', perMinute: 20_000 } }),
      forMs: 20_000,
      strategies: [{ kind: 'bare' }],
    };
    const steps = simulateInSteps(busy, {});
    let last = { strategy: '', requests: 0 };
    for (;;) {
      const step = steps.next();
      if (step.done === true) {
        expect(step.value).to.deep.equal(simulate(busy));
        // More than one step may do.
        expect(last.requests).to.be.above(4000);
        return;
      }
      const before = step.value.strategy === last.strategy ? last.requests : 0;
      expect(step.value.requests - before).to.be.within(0, 2000);
      last = step.value;
    }
  });

  it('shows its figures as rows, those of costs and turns only where there are some', () => {
    const labels = (changes: Partial<Scenario>): string[] =>
      resultRows(simulate({ ...scenario, ...changes, forMs: 5000, strategies: [{ kind: 'bare' }] })).map(
        ([label = '']) => label,
      );
    expect(labels({}))
      .to.include('time to first content, p95')
      .and.not.include('cost')
      .and.not.include('turns in order');
    const priced = { policy: { models: { default: { price: { inputPerMTok: 1, outputPerMTok: 1 } } } } };
    expect(labels({ ...priced, ...loaded({ conversations: { share: 1, count: 3 } }) })).to.include.members([
      'cost',
      'cost a month',
      'turns in order',
    ]);
  });
});
