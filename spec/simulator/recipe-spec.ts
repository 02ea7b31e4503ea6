import { expect } from 'chai';
import { simulate } from '../../lib/simulator/index.ts';
import type { Load, Recipe, Scenario, StrategyResult, Upstream } from '../../lib/simulator/index.ts';

const load: Load = { arrivals: { kind: 'bursts', size: 20, everyMs: 10_000 }, model: 'm' };
const upstream: Upstream = { requestsPerMinute: 60, burstRequests: 10, firstTokenMs: 200, tokenMs: 5, tokens: 41 };
const scenario: Scenario = { name: 'a spec', forMs: 10_000, load: [load], upstreams: { main: upstream } };
const failing = (fault: object): Partial<Scenario> => ({
  upstreams: { main: { ...upstream, requestsPerMinute: undefined, burstRequests: undefined, ...fault } },
});
const tenants: Partial<Scenario> = {
  ...failing({}),
  load: [{ ...load, tenant: 'a', priority: 'batch' }, load],
};

function run(recipe: Recipe, changes: Partial<Scenario> = {}): StrategyResult {
  const strategies = [{ kind: 'recipe', ...recipe } as const];
  return simulate({ ...scenario, ...changes, strategies }).strategies[0] as StrategyResult;
}

describe('a recipe', () => {
  it('makes one attempt and nothing else, if it says nothing', () => {
    expect(run({})).to.include({ attempts: 20, answered: 10, rateLimited: 10 });
  });

  it('waits for tokens of the model, the tenant and the account, in order', () => {
    const slow = { requestsPerMinute: 60, burstRequests: 5 };
    const waits = (buckets: Recipe['buckets']): number =>
      Math.round(run({ buckets, bucketWaitMs: 60_000 }, tenants).queueMs.max / 1000);
    expect(waits({ models: { m: slow } })).to.equal(35);
    expect(waits({ tenants: { a: slow } })).to.equal(15);
    expect(waits({ account: { ...slow, burstRequests: 30 } })).to.equal(10);
    expect(waits({ models: { other: slow } })).to.equal(0);
    // One second's worth at once, where it is not said.
    expect(waits({ account: { requestsPerMinute: 600 } })).to.equal(3);
  });

  it('leaves the line for tokens after so long', () => {
    const buckets = { account: { requestsPerMinute: 60, burstRequests: 10 } };
    expect(run({ buckets, bucketWaitMs: 4500 }, failing({})).failed).to.deep.equal({ queue_timeout: 6 });
    expect(run({ buckets }, failing({})).failed).to.deep.equal({});
  });

  it('gives tokens back after the failures that it names', () => {
    const script = [{ kind: 'error', error: 'server_error', times: 5 }] as const;
    const buckets = { account: { requestsPerMinute: 60, burstRequests: 10 } };
    const longest = (giveBackOn: Recipe['giveBackOn']): number =>
      Math.round(run({ buckets, giveBackOn }, failing({ script })).queueMs.max / 1000);
    expect(longest(undefined)).to.equal(10);
    expect(longest(['rate_limited'])).to.equal(10);
    expect(longest(['server_error'])).to.be.within(5, 6);
  });

  it('tries again, with its waits', () => {
    const recovery = (retry: Recipe['retry']): number => run({ retry }).recoveryMs.max;
    expect(run({ retry: { attempts: 2, baseMs: 100 } }).attempts).to.equal(30);
    expect(recovery({ attempts: 2, baseMs: 2000 })).to.be.within(2200, 2300);
    expect(recovery({ attempts: 2, baseMs: 9000, capMs: 3000 })).to.be.within(3200, 3300);
    const script = [{ kind: 'error', error: 'overloaded', times: 20 }] as const;
    const { firstContentMs } = run({ retry: { attempts: 2, baseMs: 3000, jitter: 'full' } }, failing({ script }));
    expect(firstContentMs.p50).to.be.within(500, 3000);
    expect(firstContentMs.max).to.be.below(3300);
  });

  it('takes a hint for nothing, for the least wait or for the wait', () => {
    const script = [{ kind: 'error', error: 'overloaded', retryAfterMs: 3000, times: 20 }] as const;
    const p50 = (retry: Recipe['retry']): number =>
      Math.round(run({ retry: { attempts: 2, ...retry } }, failing({ script })).firstContentMs.p50 / 100) / 10;
    expect(p50({ baseMs: 5000 })).to.equal(5.3);
    expect(p50({ baseMs: 5000, hints: 'floor' })).to.equal(5.3);
    expect(p50({ baseMs: 500, hints: 'floor' })).to.equal(3.3);
    expect(p50({ baseMs: 5000, hints: 'instead' })).to.equal(3.3);
    expect(p50({ baseMs: 500, hints: 'instead', maxHintMs: 1000 })).to.equal(1.3);
  });

  it('opens a breaker for a model, by failures in a row or by their share, and asks its fallback', () => {
    const down = failing({ outages: [{ kind: 'error', error: 'overloaded', model: 'm', fromMs: 0, toMs: 8000 }] });
    const steady = { ...down, load: [{ ...load, arrivals: { kind: 'constant', perMinute: 600 } as const }] };
    const attempts = (breaker: Recipe['breaker']): number => run({ breaker }, steady).attempts;
    expect(attempts(undefined)).to.equal(100);
    expect(attempts({ failures: 5 })).to.be.within(5, 20);
    expect(attempts({ failures: 5, openMs: 1000 })).to.be.within(20, 45);
    expect(attempts({ errorRatio: 0.5 })).to.be.within(10, 25);
    expect(attempts({ errorRatio: 0.5, windowMs: 500 })).to.equal(100);
    expect(run({ models: { m: { breaker: { failures: 5 } } } }, steady).attempts).to.be.within(5, 20);
    const helped = run({ breaker: { failures: 5 }, fallback: ['n'] }, steady);
    expect(helped.answered).to.equal(100);
    expect(run({ fallback: ['m', 'n'] }, steady)).to.include({ answered: 100, attempts: 180 });
  });

  it('lets a part of the traffic try while the breaker is half-open', () => {
    const errors = failing({ outages: [{ kind: 'error', error: 'overloaded', delayMs: 900, fromMs: 0, toMs: 9000 }] });
    const many = { ...errors, load: [{ ...load, arrivals: { kind: 'constant', perMinute: 6000 } as const }] };
    const tries = (halfOpenShare: number): number =>
      run({ breaker: { failures: 5, openMs: 1000, halfOpenShare } }, many).attempts;
    expect(tries(1)).to.be.above(tries(0.05));
  });

  it('keeps so many in flight, of all, of a tenant and of a priority, or as many as go well', () => {
    const took = (recipe: Recipe): number => Math.round(run(recipe, tenants).queueMs.max / 100) / 10;
    // An answer takes 0.44 s with the network.
    expect(took({})).to.equal(0);
    expect(took({ inFlight: 10 })).to.be.within(1.2, 1.4);
    expect(took({ tenantsInFlight: { a: 10, default: 40 } })).to.be.within(0.4, 0.5);
    expect(took({ tenantsInFlight: { default: 20 } })).to.be.within(0.4, 0.5);
    expect(took({ prioritiesInFlight: { batch: 5 } })).to.be.within(1.2, 1.4);
    const adaptive = { initial: 10, min: 2, max: 20, decrease: 0.5, growEveryMs: 100 };
    expect(took({ inFlight: adaptive })).to.be.within(0.8, 1.4);
  });

  it('has turns of a conversation wait for each other', () => {
    const turns = { ...failing({}), load: [{ ...load, conversations: { share: 1, count: 2 } }] };
    const inOrder = (conversations: boolean): number => {
      const result = run({ conversations }, turns);
      return result.turnsInOrder / result.turns;
    };
    expect(inOrder(true)).to.equal(1);
    expect(inOrder(false)).to.be.below(0.5);
  });

  it('ends by its deadline, and starts no retry that would not', () => {
    const script = [{ kind: 'error', error: 'overloaded', times: 20 }] as const;
    const retry = { attempts: 2, baseMs: 3000 };
    expect(run({ retry, deadlineMs: 2000 }, failing({ script }))).to.deep.include({
      attempts: 20,
      failed: { overloaded: 20 },
    });
    expect(run({ retry, deadlineMs: 4000 }, failing({ script })).answered).to.equal(20);
    expect(run({ deadlineMs: 100 }, failing({})).failed).to.deep.equal({ timeout_deadline: 20 });
  });

  it('is refused where it is wrong, by name', () => {
    const wrong = { ...scenario, strategies: [{ kind: 'recipe', retry: { attempts: 0 }, inFlight: 'many' }] };
    expect(() => simulate(wrong as never)).to.throw(/strategies\[0\]\.retry\.attempts[^]*strategies\[0\]\.inFlight/);
  });
});
