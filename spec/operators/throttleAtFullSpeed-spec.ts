import { expect } from 'chai';
import { Observable, of } from 'rxjs';
import { currentScope } from '../../lib/core/currentScope.ts';
import { SluiceError } from '../../lib/core/errors.ts';
import { createQuota } from '../../lib/operators/createQuota.ts';
import { throttleByBucket } from '../../lib/operators/throttleByBucket.ts';
import { seededRandom } from '../../lib/testing/seededRandom.ts';
import { virtualRuntime } from '../../lib/testing/virtualRuntime.ts';
import { bestSchedule, percentile, ProviderBucket } from '../helpers/ProviderBucket.ts';
import { hintsOf } from '../helpers/hintsOf.ts';

interface Load {
  readonly perMinute: number;
  readonly burst: number;
  readonly arrivalsMs: readonly number[];
  readonly jitterMs: number;
  /** From dispatch to the head of the answer, which reports what is left. Default: nothing is reported. */
  readonly headersMs?: number;
  readonly seed: number;
  readonly arrivalMarginMs?: number;
}

/** Runs a load through the operator against a provider of the same numbers, behind a network that jitters. */
function run(load: Load): { rejected: number; failed: number; p95Ms: number; bestP95Ms: number } {
  const { perMinute, burst, arrivalsMs, jitterMs, headersMs, seed, arrivalMarginMs } = load;
  const runtime = virtualRuntime({ seed });
  const random = seededRandom(seed);
  const provider = new ProviderBucket(perMinute, burst);
  const quota = createQuota(
    { requestsPerMinute: perMinute, burstRequests: burst, maxWaitMs: Infinity, arrivalMarginMs },
    runtime,
  );
  const delaysMs: number[] = [];
  let failed = 0;

  const request = (subscribedAtMs: number): Observable<string> =>
    new Observable((subscriber) => {
      const scope = currentScope();
      const sentAtMs = runtime.clock.now();
      scope?.dispatched(sentAtMs);
      delaysMs.push(sentAtMs - subscribedAtMs);
      runtime.scheduler.schedule(() => {
        const admitted = provider.arrive(runtime.clock.now());
        const remaining = Math.max(0, Math.floor(provider.remaining(runtime.clock.now())));
        runtime.scheduler.schedule(() => {
          const requests = { limit: perMinute, remaining, resetMs: undefined, windowMs: 60_000 };
          if (headersMs !== undefined) scope?.hints(hintsOf({ requests }));
          if (admitted) of('answer').subscribe(subscriber);
          else subscriber.error(new SluiceError('rate_limited', 'too many', { status: 429 }));
        }, headersMs ?? 20);
      }, random() * jitterMs);
    });
  for (const arrivalMs of arrivalsMs) {
    runtime.scheduler.schedule(() => {
      request(arrivalMs)
        .pipe(throttleByBucket(quota, { runtime }))
        .subscribe({ error: () => failed++ });
    }, arrivalMs);
  }
  runtime.run();

  const best = bestSchedule(arrivalsMs, perMinute, burst).map((startMs, i) => startMs - arrivalsMs[i]!);
  expect(delaysMs).to.have.length(arrivalsMs.length);
  expect(runtime.pending).to.equal(0);
  return { rejected: provider.rejected, failed, p95Ms: percentile(delaysMs, 0.95), bestP95Ms: percentile(best, 0.95) };
}

/** 860 spread over 20 s, and 200 at once in the middle. */
function mixedLoad(seed: number): number[] {
  const random = seededRandom(seed);
  const spread = Array.from({ length: 860 }, () => random() * 20_000);
  return [...spread, ...Array<number>(200).fill(5000)].sort((a, b) => a - b);
}

describe('throttleByBucket at the full speed of a quota', () => {
  for (const headersMs of [undefined, 50, 800, 3000]) {
    const reports = headersMs === undefined ? 'no reports' : `reports after ${headersMs} ms`;
    it(`sends 1,060 requests over 20 s with no 429 and close to the best schedule, with ${reports}`, () => {
      for (let seed = 1; seed <= 2; seed++) {
        const load = { perMinute: 3000, burst: 50, arrivalsMs: mixedLoad(seed), jitterMs: 50, seed };
        const result = run(headersMs === undefined ? load : { ...load, headersMs });

        expect(result.rejected).to.equal(0);
        expect(result.failed).to.equal(0);
        expect(result.p95Ms).to.be.at.most(result.bestP95Ms * 1.03 + 120);
      }
    });
  }

  it('is rejected where requests arrive early and no margin is kept', () => {
    const arrivalsMs = Array<number>(300).fill(0);
    const load = { perMinute: 3000, burst: 50, arrivalsMs, jitterMs: 50, seed: 1 };

    expect(run({ ...load, arrivalMarginMs: 0 }).rejected).to.be.above(0);
    expect(run({ ...load, arrivalMarginMs: 50 }).rejected).to.equal(0);
  });

  it('is never rejected, whatever the load, where the burst is more than one request', () => {
    for (let seed = 1; seed <= 25; seed++) {
      const random = seededRandom(seed);
      const perMinute = 60 * (1 + Math.floor(random() * 60));
      const burst = 1 + Math.ceil(perMinute / 600) + Math.floor(random() * 20);
      // Bursts, single ones and rests, so that the buckets run full and empty at every phase.
      const arrivalsMs: number[] = [];
      for (let atMs = 0, n = 0; n < 40; n++) {
        atMs += random() < 0.3 ? random() * 3000 : random() * 100;
        for (let size = random() < 0.2 ? burst : 1; size > 0; size--) arrivalsMs.push(atMs);
      }
      const result = run({ perMinute, burst, arrivalsMs, jitterMs: 100, seed });

      expect(result.rejected, `seed ${seed}`).to.equal(0);
      expect(result.p95Ms, `seed ${seed}`).to.be.at.most(result.bestP95Ms * 1.03 + 120);
    }
  });

  it('loses at most 3 % of the rate where the burst is a single request', () => {
    const arrivalsMs = Array<number>(60).fill(0);
    for (const perMinute of [60, 600, 3000]) {
      const result = run({ perMinute, burst: 1, arrivalsMs, jitterMs: 0, seed: 1 });

      expect(result.rejected).to.equal(0);
      // Timers have a grain of 1 ms, which a single request cannot catch up.
      expect(result.p95Ms).to.be.at.most(result.bestP95Ms * 1.03 + 120 + 57);
    }
  });
});
