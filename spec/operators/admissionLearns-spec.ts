import { expect } from 'chai';
import { SluiceError } from '../../lib/core/errors.ts';
import type { RateLimitHints } from '../../lib/core/hints.ts';
import { SUCCESS } from '../../lib/core/outcome.ts';
import { createAdmission } from '../../lib/operators/createAdmission.ts';
import { seededRandom } from '../../lib/testing/seededRandom.ts';
import { virtualRuntime } from '../../lib/testing/virtualRuntime.ts';
import { ProviderBucket } from '../helpers/ProviderBucket.ts';

interface Run {
  readonly real: number;
  readonly burst: number;
  readonly configured?: number;
  readonly headers?: boolean;
  /** The provider's rate from then on. */
  readonly changes?: readonly (readonly [atMs: number, perMinute: number])[];
  /** The part that another client takes. */
  readonly other?: number;
  readonly workers?: number;
}

const hintsOf = (limit: number, remaining: number): RateLimitHints => ({
  retryAfterMs: undefined,
  retryAfterSource: undefined,
  shouldRetry: undefined,
  requests: { limit, remaining, resetMs: undefined, windowMs: 60_000 },
  tokens: undefined,
  slowDown: false,
});

/** Workers that never rest, for 70 s. Rejections and answers of the last 60 s, by when they arrived. */
function run(options: Run): { rejectedShare: number; answeredIn: (fromMs: number, toMs: number) => number } {
  const { real, burst, configured, headers = false, changes = [], other = 0, workers = 64 } = options;
  const runtime = virtualRuntime();
  const random = seededRandom(4);
  const account = { maxWaitMs: Infinity, ...(configured === undefined ? {} : { requestsPerMinute: configured }) };
  const admission = createAdmission({ maxInFlight: workers, quota: { account } }, runtime);
  let provider = new ProviderBucket(real, burst);
  let limit = real;
  const answered: number[] = [];
  const rejected: number[] = [];
  const send = (): void => {
    admission.acquire({ model: 'm', cost: { requests: 1, tokens: 0, explicit: true } }).subscribe((admitted) => {
      admitted.dispatched();
      runtime.scheduler.schedule(
        () => {
          const nowMs = runtime.clock.now();
          const passed = provider.arrive(nowMs);
          (passed ? answered : rejected).push(nowMs);
          const remaining = Math.max(0, Math.floor(provider.remaining(nowMs)));
          runtime.scheduler.schedule(
            () => {
              admitted.responded(passed ? 200 : 429);
              if (headers) admitted.observe(hintsOf(limit, remaining));
              const error = new SluiceError('rate_limited', 'too many', { status: 429 });
              runtime.scheduler.schedule(
                () => {
                  admitted.release(passed ? SUCCESS : { kind: 'failure', error });
                  send();
                },
                passed ? 300 : 0,
              );
            },
            20 + random() * 30,
          );
        },
        10 + random() * 30,
      );
    });
  };
  for (let i = 0; i < 2 * workers; i++) send();
  for (const [atMs, perMinute] of changes) {
    runtime.scheduler.schedule(() => {
      const left = Math.min(burst, provider.remaining(atMs));
      provider = new ProviderBucket(perMinute, burst);
      provider.arrive(atMs, burst - left);
      limit = perMinute;
    }, atMs);
  }
  const gapMs = 60_000 / (real * other);
  const another = (): void => {
    provider.arrive(runtime.clock.now());
    runtime.scheduler.schedule(another, gapMs);
  };
  if (other > 0) runtime.scheduler.schedule(another, gapMs);
  runtime.advance(70_000);
  const within = (times: number[], fromMs: number, toMs: number): number =>
    times.filter((atMs) => atMs >= fromMs && atMs < toMs).length;
  const late = within(rejected, 10_000, 70_000);
  return {
    rejectedShare: late / (late + within(answered, 10_000, 70_000)),
    answeredIn: (fromMs, toMs) => within(answered, fromMs, toMs),
  };
}

describe('admission, where the configured quota is wrong', () => {
  for (const headers of [false, true]) {
    const how = headers ? 'by headers' : 'by rejections alone';
    for (const [real, burst, workers] of [
      [600, 8, 64],
      [3000, 50, 400],
    ] as const) {
      it(`finds the real ${real} a minute ${how} when it was configured twice that`, () => {
        const result = run({ real, burst, workers, headers, configured: 2 * real });
        expect(result.rejectedShare).to.be.below(0.02);
        expect(result.answeredIn(10_000, 70_000)).to.be.at.least(0.95 * real);
      });

      it(`finds the real ${real} a minute ${how} when none was configured`, () => {
        const result = run({ real, burst, workers, headers });
        expect(result.rejectedShare).to.be.below(0.02);
        // What was rejected in the first instant counts too, and takes seconds to be paid off.
        expect(result.answeredIn(10_000, 70_000)).to.be.at.least((headers ? 0.92 : 0.75) * real);
      });
    }

    it(`follows a quota that halves for 10 s and returns, ${how}`, () => {
      const changes = [
        [25_000, 300],
        [35_000, 600],
      ] as const;
      const result = run({ real: 600, burst: 10, headers, configured: 600, changes });
      expect(result.rejectedShare).to.be.below(0.02);
      expect(result.answeredIn(45_000, 70_000)).to.be.at.least(0.95 * 250);
    });
  }

  it('leaves another client its part and wastes nothing of the rest', () => {
    const result = run({ real: 600, burst: 10, configured: 600, other: 0.4 });
    expect(result.rejectedShare).to.be.below(0.02);
    expect(result.answeredIn(10_000, 70_000)).to.be.at.least(0.95 * 360);
  });
});
