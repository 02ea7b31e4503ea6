import { expect } from 'chai';
import { createAdmission } from '../../lib/operators/createAdmission.ts';
import { virtualRuntime } from '../../lib/testing/virtualRuntime.ts';
import { seededRandom } from '../../lib/testing/seededRandom.ts';
import { callAt, callNow } from '../helpers/admissionLoad.ts';
import type { LoadCall, Started } from '../helpers/admissionLoad.ts';
import { percentile } from '../helpers/ProviderBucket.ts';

const waits = (calls: readonly Started[]): number[] =>
  calls.map(({ startedAtMs, askedAtMs }) => (startedAtMs ?? Infinity) - askedAtMs);

describe('admission, between tenants and priorities', () => {
  it('keeps the wait of a tenant within its share while another floods with 10,000', () => {
    // Forty slots of 100 ms on average: 400 a second, of which the tenant has the right to half and wants 160.
    const run = (maxInFlight: number, flood: number): number => {
      const runtime = virtualRuntime();
      const random = seededRandom(5);
      const takesMs = (): number => 50 + Math.floor(100 * random());
      const admission = createAdmission({ maxInFlight, quota: { account: { maxWaitMs: Infinity } } }, runtime);
      for (let i = 0; i < flood; i++) callAt(admission, runtime, 0, { tenant: 'flood', takesMs: takesMs() });
      const calls: Started[] = [];
      for (let i = 0; i < 800; i++) {
        callAt(admission, runtime, 1000 + i * 6.25, { tenant: 'quiet', takesMs: takesMs() }, (call) =>
          calls.push(call),
        );
      }
      runtime.run();
      return percentile(
        waits(calls).map((waitMs) => waitMs + 100),
        0.95,
      );
    };
    expect(run(40, 10_000)).to.be.at.most(1.2 * run(20, 0));
  });

  it('shares a quota of tokens in proportion to weights, whatever the size of the requests', () => {
    const runtime = virtualRuntime();
    const admission = createAdmission(
      {
        quota: { account: { tokensPerMinute: 60_000, burstTokens: 1000, maxWaitMs: Infinity } },
        tenants: { default: {}, heavy: { weight: 3 } },
      },
      runtime,
    );
    const tokens: Record<string, number> = { heavy: 0, small: 0, large: 0 };
    const calls = Object.entries({ heavy: 100, small: 50, large: 500 }).flatMap(([tenant, size]) =>
      Array.from({ length: 60_000 / size }, () => ({
        tenant,
        size,
        call: callNow(admission, runtime, { tenant, tokens: size }),
      })),
    );
    runtime.advance(60_000);
    for (const { tenant, size, call } of calls)
      if (call.startedAtMs !== undefined) tokens[tenant] = (tokens[tenant] ?? 0) + size;
    const all = (tokens['heavy'] ?? 0) + (tokens['small'] ?? 0) + (tokens['large'] ?? 0);
    expect(all).to.be.above(58_000);
    expect((tokens['heavy'] ?? 0) / all).to.be.within(0.58, 0.62);
    expect((tokens['small'] ?? 0) / all).to.be.within(0.18, 0.22);
  });

  it('gives a guaranteed share of 20 within one service time, and lends it while it is not wanted', () => {
    const runtime = virtualRuntime();
    const admission = createAdmission(
      {
        maxInFlight: 50,
        tenants: { default: {}, acme: { reservedInFlight: 20 } },
        quota: { account: { maxWaitMs: Infinity } },
      },
      runtime,
    );
    for (let i = 0; i < 2000; i++) callAt(admission, runtime, (i % 50) * 2, { tenant: `t${i % 7}`, takesMs: 100 });
    runtime.advance(500);
    expect(admission.snapshot().inFlight).to.equal(50);
    const calls = Array.from({ length: 20 }, () => callNow(admission, runtime, { tenant: 'acme', takesMs: 100 }));
    runtime.advance(100);
    expect(Math.max(...waits(calls))).to.be.at.most(100);
  });

  it('does not turn a reserve of slots into a claim on the quota', () => {
    const runtime = virtualRuntime();
    const admission = createAdmission(
      {
        maxInFlight: 50,
        tenants: { default: {}, acme: { reservedInFlight: 20 } },
        quota: { account: { requestsPerMinute: 600, maxWaitMs: Infinity } },
      },
      runtime,
    );
    const acme = Array.from({ length: 200 }, () => callNow(admission, runtime, { tenant: 'acme', takesMs: 10 }));
    const other = Array.from({ length: 200 }, () => callNow(admission, runtime, { tenant: 'other', takesMs: 10 }));
    runtime.advance(10_000);
    const startedOf = (calls: Started[]): number => calls.filter(({ startedAtMs }) => startedAtMs !== undefined).length;
    expect(startedOf(other)).to.be.within(startedOf(acme) - 11, startedOf(acme));
  });

  it('never puts batch above its ceiling, and lets it use what nobody else wants', () => {
    const runtime = virtualRuntime();
    const admission = createAdmission(
      {
        maxInFlight: 30,
        priorities: { order: ['interactive', 'batch'], levels: { batch: { maxInFlight: 15 } } },
        quota: { account: { maxWaitMs: Infinity } },
      },
      runtime,
    );
    let most = 0;
    const watch = (): void => {
      most = Math.max(most, admission.snapshot().priorities['batch']?.inFlight ?? 0);
    };
    for (let i = 0; i < 500; i++) callAt(admission, runtime, i * 3, { priority: 'batch', takesMs: 100 }, watch);
    const urgent: Started[] = [];
    for (let i = 0; i < 100; i++) callAt(admission, runtime, i * 10, { takesMs: 100 }, (call) => urgent.push(call));
    for (let i = 0; i < 300; i++) runtime.scheduler.schedule(watch, i * 10);
    runtime.run();
    expect(most).to.equal(15);
    expect(Math.max(...waits(urgent))).to.equal(0);
  });

  it('lets a waiting batch be passed by what is more urgent', () => {
    const runtime = virtualRuntime();
    const admission = createAdmission({ maxInFlight: 1 }, runtime);
    callNow(admission, runtime, { takesMs: 100 });
    const batch = callNow(admission, runtime, { priority: 'batch', takesMs: 100 });
    runtime.advance(50);
    const urgent = callNow(admission, runtime, { takesMs: 100 });
    runtime.advance(1000);
    expect([urgent.startedAtMs, batch.startedAtMs]).to.deep.equal([100, 200]);
  });

  // priority-starvation-01
  it('starts one of low priority within its ageing under a steady stream of urgent ones', () => {
    const runtime = virtualRuntime();
    const admission = createAdmission({ quota: { account: { requestsPerMinute: 600, maxWaitMs: Infinity } } }, runtime);
    const urgent: Started[] = [];
    for (let i = 0; i < 12; i++) callNow(admission, runtime);
    const low = callNow(admission, runtime, { priority: 'batch' });
    for (let atMs = 0; atMs < 60_000; atMs += 80) callAt(admission, runtime, atMs, {}, (call) => urgent.push(call));
    runtime.run();
    expect(low.startedAtMs).to.be.within(9000, 12_000);
  });

  it('gives an aged priority one turn in eight, and no more', () => {
    const runtime = virtualRuntime();
    const admission = createAdmission(
      { maxInFlight: 1, priorities: { ageingMs: 1000 }, quota: { account: { maxWaitMs: Infinity } } },
      runtime,
    );
    const batch = Array.from({ length: 200 }, () => callNow(admission, runtime, { priority: 'batch', takesMs: 10 }));
    const urgent = Array.from({ length: 2000 }, () => callNow(admission, runtime, { takesMs: 10 }));
    runtime.advance(9000);
    const between = (calls: Started[]): number =>
      calls.filter(({ startedAtMs }) => startedAtMs !== undefined && startedAtMs > 1000).length;
    expect(between(batch) / (between(batch) + between(urgent))).to.be.within(0.11, 0.13);
  });

  const tight = {
    quota: { account: { tokensPerMinute: 600, burstTokens: 600, maxWaitMs: Infinity, arrivalMarginMs: 0 } },
  };

  // hol-blocking-01
  it('lets small requests pass one that is too large for what there is', () => {
    const runtime = virtualRuntime();
    const admission = createAdmission(tight, runtime);
    callNow(admission, runtime, { tokens: 550 });
    const big = callNow(admission, runtime, { tokens: 500 });
    const small = [callNow(admission, runtime, { tokens: 10 }), callNow(admission, runtime, { tokens: 10 })];
    runtime.run();
    expect(waits(small)).to.deep.equal([0, 0]);
    expect(big.startedAtMs).to.be.within(45_000, 60_000);
  });

  // hol-blocking-02
  it('lets small ones pass within a bound only', () => {
    const startOf = (passShare: number | undefined): number => {
      const runtime = virtualRuntime();
      const admission = createAdmission({ quota: { account: { ...tight.quota.account, passShare } } }, runtime);
      callNow(admission, runtime, { tokens: 550 });
      const big = callNow(admission, runtime, { tokens: 500 });
      for (let atMs = 0; atMs < 180_000; atMs += 500) callAt(admission, runtime, atMs, { tokens: 10 });
      runtime.run(400_000);
      return big.startedAtMs ?? Infinity;
    };
    expect(startOf(undefined)).to.be.within(60_000, 75_000);
    expect(startOf(0)).to.be.within(45_000, 46_000);
  });

  it('keeps what a large one waits for from smaller ones of another model of the same account', () => {
    const runtime = virtualRuntime();
    const admission = createAdmission(tight, runtime);
    callNow(admission, runtime, { tokens: 550 });
    const big = callNow(admission, runtime, { tokens: 500, model: 'a', tenant: 'x' });
    for (let atMs = 0; atMs < 180_000; atMs += 500)
      callAt(admission, runtime, atMs, { tokens: 10, model: 'b', tenant: 'x' });
    runtime.run(400_000);
    expect(big.startedAtMs).to.be.within(45_000, 120_000);
  });

  it('sends nothing too early after a provider has stalled for 5 s', () => {
    const runtime = virtualRuntime();
    const admission = createAdmission(
      { maxInFlight: 20, quota: { account: { requestsPerMinute: 600, burstRequests: 10, maxWaitMs: Infinity } } },
      runtime,
    );
    const sentAtMs: number[] = [];
    for (let i = 0; i < 400; i++) {
      callAt(admission, runtime, i * 50, held(i * 50), (call) => void call);
    }
    function held(atMs: number): LoadCall {
      // Whatever is sent before 5,000 ends then.
      return { takesMs: atMs < 5000 ? 5000 : 200, onSettled: () => sentAtMs.push(runtime.clock.now()) };
    }
    runtime.run();
    for (let i = 0; i < sentAtMs.length; i++) {
      const within = sentAtMs.filter(
        (atMs) => atMs >= (sentAtMs[i] as number) && atMs < (sentAtMs[i] as number) + 1000,
      );
      expect(within.length).to.be.at.most(40);
    }
  });

  it('remembers nothing of 100,000 tenants that have come and gone', function () {
    this.timeout(60_000);
    const runtime = virtualRuntime();
    const admission = createAdmission({ maxInFlight: 5, tenants: { default: { requestsPerMinute: 60 } } }, runtime);
    for (let i = 0; i < 100_000; i++) {
      callNow(admission, runtime, { tenant: `t${i}` });
      if (i % 100 === 0) runtime.advance(2000);
    }
    expect(admission.snapshot()).to.deep.include({ inFlight: 0, waiting: 0, tenants: {} });
    expect(admission.remembered).to.be.at.most(2048);
    expect(runtime.pending).to.equal(0);
  });
});
