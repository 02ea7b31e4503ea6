import { expect } from 'chai';
import { simulate } from '../../lib/simulator/index.ts';
import type { Load, Scenario, StrategyResult, TraceCall, Upstream } from '../../lib/simulator/index.ts';
import { readScenario } from '../../lib/simulator/scenario/parseScenario.ts';

const upstream: Upstream = { firstTokenMs: 100, tokenMs: 2, tokens: 20 };
const load: Load = { arrivals: { kind: 'constant', perMinute: 120 }, model: 'm' };
const price = { price: { inputPerMTok: 1_000_000, outputPerMTok: 1_000_000 } };
const scenario: Scenario = {
  name: 'options of a load',
  forMs: 20_000,
  load: [load],
  upstreams: { main: upstream },
  policy: { models: { default: price } },
  strategies: [{ kind: 'sluice' }],
};

function run(changes: Partial<Scenario>): StrategyResult {
  const [result] = simulate({ ...scenario, ...changes }).strategies;
  return result as StrategyResult;
}
const loaded = (changes: Partial<Load>): Partial<Scenario> => ({ load: [{ ...load, ...changes }] });
const before = (changes: Partial<Upstream>): Partial<Scenario> => ({
  upstreams: { main: { ...upstream, ...changes } },
});

/** Keys that stand in the place of one that there is not. */
function keysAt(wrong: object): readonly string[] {
  const [problem] = readScenario({ ...scenario, ...wrong }).problems;
  return (problem?.expected ?? '').replace('one of ', '').split(', ');
}

describe('options of a load', () => {
  /** Each is to change something: what it was without the option, and with it. */
  const cases: Readonly<Record<keyof Load, () => void>> = {
    arrivals() {
      const bursts = loaded({ arrivals: { kind: 'bursts', size: 5, everyMs: 10_000 } });
      expect([run({}).calls, run(bursts).calls]).to.deep.equal([40, 10]);
    },
    model() {
      const models = before({ models: { m: {}, slow: { firstTokenMs: 900 } } });
      expect(run({ ...models }).firstContentMs.p50).to.be.closeTo(140, 1);
      expect(run({ ...models, ...loaded({ model: 'slow' }) }).firstContentMs.p50).to.be.closeTo(940, 1);
    },
    tenant() {
      expect(run({}).tenants).to.deep.equal({});
      expect(run(loaded({ tenant: 'acme' })).tenants['acme']).to.include({ calls: 40, answered: 40 });
      const policy = { tenants: { acme: { maxInFlight: 1 } } };
      const many: Partial<Load> = { arrivals: { kind: 'bursts', size: 10, everyMs: 20_000 } };
      expect(run({ policy, ...loaded(many) }).queueMs.max).to.equal(0);
      expect(run({ policy, ...loaded({ ...many, tenant: 'acme' }) }).queueMs.max).to.be.above(1000);
    },
    priority() {
      const policy = { maxInFlight: 1, priorities: { order: ['interactive', 'batch'], batch: {} } };
      const burst: Load = { ...load, arrivals: { kind: 'bursts', size: 30, everyMs: 20_000 } };
      const waits = (priority: string | undefined): number => {
        const of = (tenant: string, more: Partial<Load>): Load => ({ ...burst, tenant, ...more });
        const { tenants } = run({ policy, load: [of('theirs', {}), of('ours', { priority })] });
        return (tenants['ours']?.firstContentMs.p50 ?? 0) / (tenants['theirs']?.firstContentMs.p50 ?? 1);
      };
      expect(waits(undefined)).to.be.closeTo(1, 0.2);
      expect(waits('batch')).to.be.above(1.5);
    },
    promptTokens() {
      const costs = (promptTokens: Load['promptTokens']): number => run(loaded({ promptTokens })).cost / 40;
      expect(costs(undefined)).to.equal(500 + 20);
      expect(costs(80)).to.equal(80 + 20);
      expect(costs({ median: 80, sigma: 0.5, max: 90 })).to.be.within(50, 110);
    },
    outputLimit() {
      const outputs = (outputLimit: number | undefined): number =>
        run(loaded({ promptTokens: 0, outputLimit })).cost / 40;
      expect(outputs(undefined) - outputs(5)).to.equal(15);
      // What is reserved decides who passes.
      const few = before({ tokensPerMinute: 60_000, burstTokens: 3000, settle: 'reserved' });
      const bare: Partial<Scenario> = { strategies: [{ kind: 'bare' }] };
      expect(run({ ...few, ...bare, ...loaded({ promptTokens: 10, outputLimit: 20 }) }).rateLimited).to.equal(0);
      expect(run({ ...few, ...bare, ...loaded({ promptTokens: 10, outputLimit: 2000 }) }).rateLimited).to.be.above(10);
    },
    conversations() {
      expect(run({}).turns).to.equal(0);
      expect(run(loaded({ conversations: { share: 1, count: 3 } })).turns).to.equal(40);
      expect(run(loaded({ conversations: { share: 0.5, count: 3 } })).turns).to.be.within(10, 30);
    },
    leavesAfterMs() {
      expect(run({}).left).to.equal(0);
      expect(run(loaded({ leavesAfterMs: 120 })).left).to.equal(40);
    },
    deadlineMs() {
      expect(run({}).failed).to.deep.equal({});
      expect(run(loaded({ deadlineMs: 120 })).failed).to.have.property('timeout_deadline');
    },
    fromMs() {
      expect(run(loaded({ fromMs: 15_000 })).calls).to.equal(10);
    },
    toMs() {
      expect(run(loaded({ toMs: 5000 })).calls).to.equal(10);
    },
  };

  for (const [option, works] of Object.entries(cases)) it(`${option} changes what happens`, works);

  it('are all of them here', () => {
    expect(keysAt({ load: [{ ...load, none: 1 }] })).to.have.members(Object.keys(cases));
  });
});

describe('options of a recorded call', () => {
  const traced = (call: Partial<TraceCall>): Partial<Scenario> =>
    loaded({ arrivals: { kind: 'trace', calls: [{ atMs: 0, ...call }] } });

  const cases: Readonly<Record<keyof TraceCall, () => void>> = {
    atMs() {
      expect(run(traced({ atMs: 7000 })).tookMs - run(traced({})).tookMs).to.be.closeTo(7000, 1);
    },
    model() {
      const models = before({ models: { m: {}, slow: { firstTokenMs: 900 } } });
      expect(run({ ...models, ...traced({ model: 'slow' }) }).firstContentMs.p50).to.be.closeTo(940, 1);
    },
    tenant() {
      expect(run(traced({ tenant: 'acme' })).tenants).to.have.property('acme');
    },
    priority() {
      const policy = { priorities: { order: ['interactive', 'batch'], batch: { maxInFlight: 1 } } };
      const two = (priority: string): StrategyResult => {
        const calls = [0, 1, 2].map((atMs) => ({ atMs, priority }));
        return run({ policy, ...loaded({ arrivals: { kind: 'trace', calls } }) });
      };
      expect(two('interactive').queueMs.max).to.equal(0);
      expect(two('batch').queueMs.max).to.be.above(100);
    },
    conversation() {
      expect(run(traced({ conversation: 'c-1' })).turns).to.equal(1);
    },
    promptTokens() {
      expect(run(traced({ promptTokens: 90 })).cost).to.equal(90 + 20);
    },
    outputTokens() {
      expect(run(traced({ outputTokens: 3 })).cost).to.equal(500 + 3);
    },
  };

  for (const [option, works] of Object.entries(cases)) it(`${option} changes what happens`, works);

  it('are all of them here', () => {
    const arrivals = { kind: 'trace', calls: [{ atMs: 0, none: 1 }] };
    expect(keysAt({ load: [{ ...load, arrivals }] })).to.have.members(Object.keys(cases));
  });
});

describe('options of a provider', () => {
  const bare: Partial<Scenario> = { strategies: [{ kind: 'bare' }] };
  const many = loaded({ arrivals: { kind: 'poisson', perMinute: 600 } });
  const rateLimited = (changes: Partial<Upstream>): number => run({ ...bare, ...many, ...before(changes) }).rateLimited;
  const firstContent = (changes: Partial<Upstream>): number => run(before(changes)).firstContentMs.p50;
  const limits = { requestsPerMinute: 300, burstRequests: 10 };

  const cases: Readonly<Record<string, () => void>> = {
    requestsPerMinute: () =>
      expect(rateLimited(limits)).to.be.above(rateLimited({ ...limits, requestsPerMinute: 500 }) + 40),
    burstRequests: () => expect(rateLimited(limits)).to.be.above(rateLimited({ ...limits, burstRequests: 60 }) + 40),
    tokensPerMinute() {
      const tokens = { tokensPerMinute: 100_000, burstTokens: 5000 };
      expect(rateLimited(tokens)).to.be.above(rateLimited({ ...tokens, tokensPerMinute: 400_000 }) + 40);
    },
    burstTokens() {
      const tokens = { tokensPerMinute: 100_000, burstTokens: 5000 };
      expect(rateLimited(tokens)).to.be.above(rateLimited({ ...tokens, burstTokens: 60_000 }) + 40);
    },
    noiseShare: () => expect(rateLimited({ ...limits, noiseShare: 0.5 })).to.be.above(rateLimited(limits) + 20),
    headersMs() {
      const policy = { models: { default: { timeouts: { headersMs: 60 }, retry: { attempts: 1 } } } };
      expect(run({ policy }).answered).to.equal(40);
      expect(run({ policy, ...before({ headersMs: 90 }) }).failed).to.have.property('timeout');
    },
    firstTokenMs: () => expect(firstContent({ firstTokenMs: 300 }) - firstContent({})).to.be.closeTo(200, 1),
    tokenMs: () => expect(run(before({ tokenMs: 12 })).totalMs.p50 - run({}).totalMs.p50).to.be.closeTo(190, 1),
    tokens: () => expect(run(before({ tokens: 40 })).cost - run({}).cost).to.equal(40 * 20),
    chunkTokens() {
      // Who leaves in the middle of a chunk has been sent all of it.
      const costs = (chunkTokens: number): number =>
        run({ chunks: 'all', ...loaded({ promptTokens: 0, leavesAfterMs: 146 }), ...before({ chunkTokens }) }).cost /
        40;
      expect(costs(20) - costs(1)).to.be.above(10);
    },
    reasoningTokens: () => expect(run(before({ reasoningTokens: 30 })).cost - run({}).cost).to.be.above(0),
    maxConcurrent: () => expect(rateLimited({ maxConcurrent: 1 })).to.be.above(20),
    contextTokens() {
      expect(run({ ...bare, ...before({ contextTokens: 100 }) }).failed).to.deep.equal({ context_too_long: 40 });
    },
    acceptsPrefix() {
      const policy = { models: { default: { midStream: 'continue', canContinue: true } } } as const;
      const script = [{ kind: 'cut', after: 5 }] as const;
      const answered = (acceptsPrefix: boolean): number =>
        run({ policy, chunks: 'all', ...before({ script, acceptsPrefix }) }).answered;
      expect([answered(true), answered(false)]).to.deep.equal([40, 39]);
    },
    reservedOutputTokens() {
      const tokens = { tokensPerMinute: 200_000, burstTokens: 5000 };
      expect(rateLimited({ ...tokens, reservedOutputTokens: 2000 })).to.be.above(rateLimited(tokens) + 20);
    },
    models: () => expect(firstContent({ models: { m: { firstTokenMs: 400 } } })).to.be.closeTo(440, 1),
    dialect() {
      // What the headers of one say of its limits is learned from its first answers.
      const learning = (dialect: string): number => run({ ...many, ...before({ ...limits, dialect }) }).rateLimited;
      expect(learning('openai')).to.be.below(learning('none'));
    },
    countRejected: () => expect(rateLimited(limits)).to.be.above(rateLimited({ ...limits, countRejected: false }) + 5),
    settle() {
      const tokens = { tokensPerMinute: 100_000, burstTokens: 5000, reservedOutputTokens: 1000 };
      expect(rateLimited({ ...tokens, settle: 'reserved' })).to.be.above(
        rateLimited({ ...tokens, settle: 'usage' }) + 20,
      );
    },
    concurrencyStatus() {
      const status = (concurrencyStatus: 429 | 503): number => rateLimited({ maxConcurrent: 1, concurrencyStatus });
      expect(status(429)).to.be.above(20);
      expect(status(503)).to.equal(0);
    },
    script: () => expect(run({ ...bare, ...before({ script: [{ kind: 'reset', after: 2 }] }) }).failed).to.not.be.empty,
    randomFaults() {
      const randomFaults = [{ kind: 'reset', after: 2, probability: 0.5 }] as const;
      expect(run({ ...bare, ...before({ randomFaults }) }).failed['connection']).to.be.within(10, 30);
    },
    outages() {
      const outages = [{ kind: 'error', error: 'overloaded', fromMs: 0, toMs: 10_000 }] as const;
      expect(run({ ...bare, ...before({ outages }) }).failed['overloaded']).to.equal(20);
    },
    changes() {
      const changes = [{ atMs: 10_000, account: { requestsPerMinute: 6000, burstRequests: 100 } }];
      expect(rateLimited(limits)).to.be.above(rateLimited({ ...limits, changes }) + 20);
    },
  };

  for (const [option, works] of Object.entries(cases)) {
    it(`${option} changes what happens`, () => {
      works();
    });
  }

  it('are all of them here', () => {
    expect(keysAt({ upstreams: { main: { none: 1 } } })).to.have.members(Object.keys(cases));
  });
});
