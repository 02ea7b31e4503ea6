import { expect } from 'chai';
import fc from 'fast-check';
import { ProviderBucket } from '../../../lib/emulator/model/ProviderBucket.ts';

const rates = fc.record({
  perMinute: fc.double({ min: 1, max: 1_000_000, noNaN: true }),
  burst: fc.integer({ min: 1, max: 500 }),
});

describe('ProviderBucket', () => {
  it('never refuses a client that sends at exactly the rate, however long, and refuses one request more', () => {
    fc.assert(
      fc.property(rates, fc.integer({ min: 0, max: 1e9 }), ({ perMinute, burst }, startMs) => {
        const bucket = new ProviderBucket({ perMinute, burst, noiseShare: 0 }, startMs);
        for (let i = 0; i < burst; i++) bucket.take(1, startMs);
        let atMs = startMs;
        for (let i = 1; i <= 5_000; i++) {
          atMs = startMs + (i * 60_000) / perMinute;
          if (!bucket.has(1, atMs)) expect.fail(`request ${i} was refused`);
          bucket.take(1, atMs);
        }
        expect(bucket.has(1, atMs)).to.equal(false);
      }),
      { numRuns: 20 },
    );
  });

  it('grants no more than the burst and the refill in any span', () => {
    const steps = fc.array(
      fc.record({ gapMs: fc.integer({ min: 0, max: 3_000 }), cost: fc.integer({ min: 0, max: 50 }) }),
      {
        maxLength: 100,
      },
    );
    fc.assert(
      fc.property(rates, steps, ({ perMinute, burst }, requests) => {
        const bucket = new ProviderBucket({ perMinute, burst, noiseShare: 0 }, 0);
        const granted: { atMs: number; cost: number }[] = [];
        let nowMs = 0;
        for (const { gapMs, cost } of requests) {
          nowMs += gapMs;
          if (!bucket.has(cost, nowMs)) continue;
          bucket.take(cost, nowMs);
          granted.push({ atMs: nowMs, cost });
        }
        granted.forEach(({ atMs: fromMs }, first) => {
          let sum = 0;
          for (const { atMs, cost } of granted.slice(first)) {
            sum += cost;
            expect(sum).to.be.at.most(burst + ((atMs - fromMs) * perMinute) / 60_000 + 1e-3);
          }
        });
      }),
      { numRuns: 50 },
    );
  });

  it('names a wait that suffices, and is not a millisecond too long', () => {
    fc.assert(
      fc.property(rates, fc.integer({ min: 1, max: 500 }), ({ perMinute, burst }, wanted) => {
        const cost = Math.min(wanted, burst);
        const bucket = new ProviderBucket({ perMinute, burst, noiseShare: 0 }, 0);
        bucket.take(burst, 0);
        const waitMs = bucket.msUntil(cost, 0);
        if (waitMs > 2) expect(bucket.has(cost, waitMs - 1.1)).to.equal(false);
        expect(bucket.has(cost, waitMs)).to.equal(true);
      }),
      { numRuns: 100 },
    );
  });

  it('holds no more than the burst after a pause of a year', () => {
    const bucket = new ProviderBucket({ perMinute: 60, burst: 8, noiseShare: 0 }, 0);
    bucket.take(8, 0);
    expect(bucket.level(365 * 86_400_000)).to.equal(8);
  });

  it('does not move when the clock stands still or goes back', () => {
    const bucket = new ProviderBucket({ perMinute: 60, burst: 8, noiseShare: 0 }, 5_000);
    bucket.take(8, 5_000);
    expect(bucket.level(5_000)).to.equal(0);
    expect(bucket.level(1_000)).to.equal(0);
  });

  it('never lets more than the burst be asked for', () => {
    const bucket = new ProviderBucket({ perMinute: 60, burst: 8, noiseShare: 0 }, 0);
    expect(bucket.msUntil(9, 0)).to.equal(Infinity);
  });

  it('loses to another client what that one uses up', () => {
    const bucket = new ProviderBucket({ perMinute: 60, burst: 10, noiseShare: 0.25 }, 0);
    bucket.take(10, 0);
    expect(bucket.level(4_000)).to.equal(3);
  });

  it('keeps its level when the rate changes, up to the new burst, and refills at the new rate', () => {
    const bucket = new ProviderBucket({ perMinute: 60, burst: 10, noiseShare: 0 }, 0);
    bucket.take(4, 0);
    bucket.change({ perMinute: 30, burst: 5, noiseShare: 0 }, 1_000);
    expect(bucket.level(1_000)).to.equal(5);
    bucket.take(5, 1_000);
    expect(bucket.level(3_000)).to.equal(1);
    bucket.change({ perMinute: 60, burst: 10, noiseShare: 0 }, 3_000);
    expect(bucket.level(4_000)).to.equal(2);
  });

  it('drains a bucket that has filled up meanwhile by one request only', () => {
    const bucket = new ProviderBucket({ perMinute: 60, burst: 3, noiseShare: 0 }, 0);
    bucket.take(2, 0);
    bucket.drain(1, 60_000);
    expect(bucket.level(60_000)).to.equal(2);
  });

  it('drains what is there for a refused request, and no more', () => {
    const bucket = new ProviderBucket({ perMinute: 60, burst: 2, noiseShare: 0 }, 0);
    bucket.take(2, 0);
    bucket.drain(1, 500);
    expect(bucket.level(500)).to.equal(0);
    bucket.drain(1, 500);
    expect(bucket.level(500)).to.equal(0);
  });
});
