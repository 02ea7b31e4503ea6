import { expect } from 'chai';
import { SluiceError } from '../../lib/core/errors.ts';
import { createAdmission } from '../../lib/operators/createAdmission.ts';
import { virtualRuntime } from '../../lib/testing/virtualRuntime.ts';
import { hintsOf } from '../helpers/hintsOf.ts';
import { learningRun } from '../helpers/learningRun.ts';
import type { LearningRun } from '../helpers/learningRun.ts';

const use = (run: LearningRun, share = 1): { rejectedShare: number; use: number } => {
  const result = learningRun(run);
  return {
    rejectedShare: result.rejectedShare(10_000, 70_000),
    use: result.answeredIn(10_000, 70_000) / (run.real * share),
  };
};

describe('admission, where the configured quota is wrong', () => {
  for (const counting of ['debt', 'drain', 'free'] as const) {
    for (const [real, burst, workers] of [
      [600, 10, 64],
      [3000, 50, 400],
    ] as const) {
      for (const configured of [2 * real, undefined]) {
        const which = configured === undefined ? 'none was configured' : 'it was configured twice that';
        it(`finds the real ${real} a minute by rejections alone when ${which}, rejected: ${counting}`, () => {
          const result = use({ real, burst, workers, configured, counting });
          expect(result.rejectedShare).to.be.below(0.02);
          expect(result.use).to.be.at.least(0.95);
        });
      }
    }
  }

  for (const [real, burst, workers] of [
    [600, 8, 64],
    [3000, 50, 400],
  ] as const) {
    for (const configured of [2 * real, undefined]) {
      it(`takes the real ${real} a minute from headers, ${configured ?? 'none'} configured`, () => {
        const result = use({ real, burst, workers, configured, headers: true });
        expect(result.rejectedShare).to.be.below(0.005);
        expect(result.use).to.be.at.least(0.95);
      });
    }
  }

  for (const real of [60, 120, 300]) {
    for (const configured of [2 * real, undefined]) {
      it(`is rejected once in 25 s at most by ${real} a minute, ${configured ?? 'none'} configured`, () => {
        const result = learningRun({ real, burst: real / 60, configured, counting: 'drain' });
        expect(result.mostRejectedIn(25_000, 10_000)).to.be.at.most(1);
      });
    }
  }

  for (const headers of [false, true]) {
    it(`follows a quota that halves for 10 s and returns, ${headers ? 'by headers' : 'by rejections alone'}`, () => {
      const changes = [
        [25_000, 300],
        [35_000, 600],
      ] as const;
      const result = learningRun({ real: 600, burst: 10, headers, configured: 600, changes, counting: 'drain' });
      expect(result.rejectedShare(0, 70_000)).to.be.below(0.02);
      expect(result.answeredIn(45_000, 70_000)).to.be.at.least(0.95 * 250);
    });
  }

  it('leaves another client its part and wastes nothing of the rest', () => {
    for (const real of [600, 3000]) {
      const workers = real === 600 ? 64 : 400;
      const run: LearningRun = { real, burst: real / 60, configured: real, other: 0.4, counting: 'drain', workers };
      const result = use(run, 0.6);
      expect(result.rejectedShare).to.be.below(0.02);
      expect(result.use).to.be.at.least(0.95);
    }
  });

  it('has no 429 and the full speed where what was configured is right', () => {
    for (const counting of ['debt', 'free'] as const) {
      const result = use({ real: 600, burst: 10, configured: 600, counting });
      expect(result.rejectedShare).to.equal(0);
      expect(result.use).to.be.at.least(0.99);
    }
  });

  it('is not rejected after a provider has said nothing for 5 s, and goes on at the full speed', () => {
    for (const seed of [1, 2, 3]) {
      const result = learningRun({ real: 600, burst: 10, configured: 600, stall: [20_000, 25_000], seed });
      expect(result.rejectedAtMs).to.deep.equal([]);
      expect(result.answeredIn(25_000, 65_000)).to.be.at.least(0.97 * 400);
    }
  });

  it('charges nothing for what the stall kept from being sent', () => {
    // Eight slots are taken at once, and nothing goes for the rest of the stall.
    const run: LearningRun = { real: 600, burst: 10, configured: 600, workers: 8, stall: [20_000, 25_000] };
    const result = learningRun(run);
    expect(result.rejectedAtMs).to.deep.equal([]);
    expect(result.answeredIn(21_000, 25_000)).to.equal(0);
    // The burst that has gathered meanwhile is there.
    expect(result.answeredIn(25_000, 26_000)).to.be.at.least(14);
  });

  it('is back at the rate that was configured once a few stray rejections are past', () => {
    const changes = [
      [20_000, 60],
      [21_500, 600],
    ] as const;
    const result = learningRun({ real: 600, burst: 10, configured: 600, changes, counting: 'drain' });
    expect(result.answeredIn(40_000, 70_000)).to.be.at.least(0.98 * 300);
  });
});

describe('admission, where tokens are what is short', () => {
  it('changes no rate of requests for a rejection that reports room for the request', () => {
    const runtime = virtualRuntime();
    const admission = createAdmission({}, runtime);
    const window = { resetMs: undefined, windowMs: 60_000 };
    const rejectFor = (requestsLeft: number): void => {
      admission.acquire({ model: 'm', cost: { requests: 1, tokens: 500, explicit: true } }).subscribe((admitted) => {
        admitted.dispatched();
        admitted.observe(
          hintsOf({
            requests: { limit: undefined, remaining: requestsLeft, ...window },
            tokens: { limit: undefined, remaining: 10, ...window },
          }),
        );
        admitted.release({ kind: 'failure', error: new SluiceError('rate_limited', 'too many', { status: 429 }) });
      });
    };
    const rate = (): number | undefined =>
      admission.snapshot().models['m']?.deployments[0]?.layers.at(-1)?.requests?.perMinute;
    rejectFor(100);
    expect(rate()).to.equal(undefined);
    runtime.advance(60_000);
    rejectFor(0);
    expect(rate()).to.be.above(0);
  });
});
