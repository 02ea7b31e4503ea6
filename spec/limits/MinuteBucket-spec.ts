import { expect } from 'chai';
import fc from 'fast-check';
import type { LimitReading } from '../../lib/core/hints.ts';
import { coveredMarginMs, MinuteBucket, remainingOf } from '../../lib/limits/MinuteBucket.ts';
import type { Moment } from '../../lib/limits/MinuteBucket.ts';

const rate = { perMinute: 600, burst: 8 };
const charged = (bucket: MinuteBucket, nowMs: number): number => {
  const mark = bucket.charge(nowMs, 1);
  bucket.dispatch(nowMs, 1);
  return mark;
};

describe('MinuteBucket', () => {
  describe('hold', () => {
    it('lets nothing of what is held come back, and everything else', () => {
      const bucket = new MinuteBucket(rate, 1, 0, 0);
      for (let i = 0; i < 5; i++) charged(bucket, 0);
      bucket.hold(3);
      expect(bucket.level(200)).to.be.closeTo(5, 1e-9);
      expect(bucket.level(10_000)).to.equal(5);
      expect(bucket.waitMs(10_000, 5)).to.equal(0);
      expect(bucket.waitMs(10_000, 6)).to.equal(100);
      expect(bucket.waitBehindMs(10_000, 2, 5)).to.equal(200);
      bucket.hold(-3);
      expect(bucket.level(10_000)).to.equal(8);
    });
  });

  describe('postpone', () => {
    it('lets nothing come back for the time in which nothing had arrived', () => {
      const bucket = new MinuteBucket(rate, 1, 100, 0);
      const marks = Array.from({ length: 8 }, () => charged(bucket, 0));
      expect(bucket.level(300)).to.be.closeTo(2, 0.05);
      for (const mark of marks) bucket.postpone(300, 1, mark);
      expect(bucket.level(300)).to.be.closeTo(0, 1e-9);
      expect(bucket.level(400)).to.be.closeTo(0, 0.05);
      expect(bucket.level(500)).to.be.closeTo(1, 0.05);
    });

    it('takes nothing where others keep the bucket from filling up', () => {
      const bucket = new MinuteBucket(rate, 1, 0, 0);
      for (let i = 0; i < 7; i++) charged(bucket, 0);
      const mark = charged(bucket, 0);
      bucket.postpone(200, 1, mark);
      expect(bucket.level(200)).to.be.closeTo(2, 1e-9);
    });

    it('leaves the bucket as if the charge had been made then', () => {
      const step = fc.record({ afterMs: fc.integer({ min: 0, max: 400 }), late: fc.boolean() });
      fc.assert(
        fc.property(
          fc.array(step, { minLength: 1, maxLength: 12 }),
          fc.integer({ min: 0, max: 900 }),
          (steps, lateMs) => {
            const moved = new MinuteBucket(rate, 1, 0, 0);
            const plain = new MinuteBucket(rate, 1, 0, 0);
            let nowMs = 0;
            const marks: number[] = [];
            for (const { afterMs, late } of steps) {
              nowMs += afterMs;
              const mark = charged(moved, nowMs);
              if (late) marks.push(mark);
              else charged(plain, nowMs);
            }
            nowMs += lateMs;
            for (const mark of marks) {
              moved.postpone(nowMs, 1, mark);
              charged(plain, nowMs);
            }
            expect(moved.level(nowMs)).to.be.closeTo(plain.level(nowMs), 1e-6);
            expect(moved.level(nowMs + 700)).to.be.closeTo(plain.level(nowMs + 700), 1e-6);
          },
        ),
        { numRuns: 300 },
      );
    });
  });

  describe('report', () => {
    const reading = (remaining: number | undefined): LimitReading => ({
      limit: undefined,
      remaining,
      resetMs: undefined,
      windowMs: 60_000,
    });

    const dispatched = (bucket: MinuteBucket, nowMs: number, amount: number): readonly [Moment, number] => {
      bucket.dispatch(nowMs, amount);
      return [bucket.moment, nowMs];
    };

    it('stands for now where it belongs to no attempt', () => {
      const bucket = new MinuteBucket(rate, 1, 0, 0);
      bucket.report(0, reading(5), undefined);
      expect(bucket.level(0)).to.equal(5);
    });

    it('adds what has come back since the attempt arrived, a margin after it was sent', () => {
      const bucket = new MinuteBucket({ perMinute: 600, burst: 20 }, 1, 100, 0);
      bucket.charge(0, 1);
      const sent = dispatched(bucket, 0, 1);
      bucket.report(50, reading(10), ...sent);
      expect(bucket.level(50)).to.equal(10);
      bucket.report(400, reading(5), ...sent);
      expect(bucket.level(400)).to.equal(8);
    });

    it('takes off what was granted since, sent or not, and what turned out dearer', () => {
      const bucket = new MinuteBucket({ perMinute: 60, burst: 100 }, 1, 0, 0);
      bucket.charge(0, 1);
      const sent = dispatched(bucket, 0, 1);
      const mark = bucket.charge(30, 3);
      bucket.dispatch(30, 2);
      bucket.chargeMore(30, 4);
      bucket.report(0, reading(50), ...sent);
      // 50, less 2 and 4 that were sent since, less 1 that is still to be sent.
      expect(bucket.level(30)).to.be.closeTo(43, 0.1);
      bucket.giveBack(30, 1, mark, false);
      bucket.report(0, reading(40), ...sent);
      expect(bucket.level(30)).to.be.closeTo(34, 0.1);
      bucket.giveBack(30, 1, mark, true);
      bucket.report(0, reading(30), ...sent);
      expect(bucket.level(30)).to.be.closeTo(24, 0.1);
    });

    it('is not passed over for a later one that says nothing', () => {
      const bucket = new MinuteBucket({ perMinute: 60, burst: 100 }, 1, 0, 0);
      bucket.charge(0, 2);
      const [first, second] = [dispatched(bucket, 0, 1), dispatched(bucket, 30, 1)];
      bucket.report(30, reading(undefined), ...second);
      bucket.report(30, reading(50), ...first);
      expect(bucket.level(30)).to.be.closeTo(49, 0.1);
    });
  });

  it('lowers and resets to a level from which what has not been sent is still to be taken', () => {
    const bucket = new MinuteBucket({ perMinute: 600, burst: 20 }, 1, 0, 0);
    bucket.charge(0, 3);
    bucket.lower(0, 10);
    expect(bucket.level(0)).to.equal(7);
    bucket.lower(0, 15);
    expect(bucket.level(0), 'only downwards').to.equal(7);
    bucket.reset(0, 15);
    expect(bucket.level(0)).to.equal(12);
    bucket.dispatch(0, 3);
    bucket.reset(0, 4);
    expect(bucket.level(0)).to.equal(4);
  });

  it('waits no time for what lacks a rounding error', () => {
    const bucket = new MinuteBucket(rate, 1, 0, 0);
    bucket.hold(4e-9);
    expect(bucket.waitMs(0, 8)).to.equal(0);
    bucket.hold(4e-7);
    expect(bucket.waitMs(0, 8)).to.equal(1);
    const charged = new MinuteBucket(rate, 1, 0, 0);
    charged.charge(0, 1e-9);
    expect(charged.waitBehindMs(0, 0, 8)).to.equal(0);
  });

  it('counts what may come back into the wait behind others', () => {
    const bucket = new MinuteBucket(rate, 1, 0, 0);
    bucket.charge(0, 8);
    expect(bucket.waitBehindMs(0, 4, 2)).to.equal(600);
    expect(bucket.waitBehindMs(0, 4, 2, 1)).to.equal(500);
    expect(bucket.waitBehindMs(0, 4, 20)).to.equal(1200);
  });

  it('counts what may come back into the wait for what is being handed over', () => {
    const bucket = new MinuteBucket(rate, 1, 0, 0);
    bucket.hold(4);
    expect([bucket.waitMs(0, 8), bucket.waitMs(0, 8, 2), bucket.waitMs(0, 8, 5)]).to.deep.equal([400, 200, 0]);
  });

  it('gives back nothing of nothing', () => {
    const bucket = new MinuteBucket(rate, 1, 0, 0);
    const mark = bucket.charge(0, 3);
    expect(bucket.giveBack(0, 0, mark, false)).to.equal(0);
    expect(bucket.giveBack(0, 2, mark, false)).to.equal(2);
    expect(bucket.level(0)).to.equal(7);
  });

  it('takes another rate, and its level stays', () => {
    const bucket = new MinuteBucket(rate, 1, 0, 0);
    bucket.charge(0, 6);
    bucket.setRate(0, { perMinute: 1200, burst: 4 });
    expect([bucket.perMinute, bucket.burst, bucket.level(0)]).to.deep.equal([1200, 4, 2]);
    expect(bucket.level(50)).to.be.closeTo(3, 1e-9);
    expect(bucket.waitBehindMs(50, 1, 4)).to.equal(100);
  });

  for (const [name, other] of [
    ['size', { perMinute: 600, burst: 16, marginMs: 0 }],
    ['rate', { perMinute: 1200, burst: 8, marginMs: 0 }],
    ['margin', { perMinute: 600, burst: 8, marginMs: 100 }],
  ] as const) {
    it(`follows another bucket that differs in ${name} only`, () => {
      const { perMinute, burst, marginMs } = other;
      const next = new MinuteBucket({ perMinute, burst }, 1, marginMs, 0);
      const bucket = new MinuteBucket(rate, 1, 0, 0);
      bucket.follow(0, next);
      for (const one of [bucket, next]) one.charge(0, one.level(0));
      expect([bucket.perMinute, bucket.burst]).to.deep.equal([perMinute, burst]);
      for (const nowMs of [50, 100, 250, 600]) {
        expect(bucket.level(nowMs)).to.be.closeTo(next.level(nowMs), 1e-9);
        expect(bucket.waitBehindMs(nowMs, 2, 4)).to.equal(next.waitBehindMs(nowMs, 2, 4));
      }
    });
  }

  it('refuses a wrong margin by its name', () => {
    expect(() => new MinuteBucket(rate, 1, -1, 0)).to.throw('arrivalMarginMs');
  });
});

describe('coveredMarginMs', () => {
  it('is what the burst has over the largest cost, and a little of that cost', () => {
    expect(coveredMarginMs({ perMinute: 600, burst: 8 }, 1, 100)).to.equal(100);
    expect(coveredMarginMs({ perMinute: 600, burst: 8 }, 1, 1000)).to.be.closeTo(703, 1e-9);
    expect(coveredMarginMs({ perMinute: 600, burst: 1 }, 1, 100)).to.be.closeTo(3, 1e-9);
    expect(coveredMarginMs({ perMinute: 6000, burst: 3 }, 2, 100)).to.be.closeTo(10.6, 1e-9);
    expect(coveredMarginMs({ perMinute: 6000, burst: 1 }, 2, 100)).to.be.closeTo(0.6, 1e-9);
  });
});

describe('remainingOf', () => {
  const of = (reading: Partial<LimitReading>): number | undefined =>
    remainingOf({ limit: undefined, remaining: undefined, resetMs: undefined, windowMs: 60_000, ...reading });

  it('is what the provider says is left', () => {
    expect([0, 5, -1, NaN].map((remaining) => of({ remaining, limit: 10, resetMs: 0 }))).to.deep.equal([
      0,
      5,
      undefined,
      undefined,
    ]);
  });

  it('else follows from the time to a full limit', () => {
    expect(of({ limit: 60, resetMs: 15_000 })).to.equal(45);
    expect(of({ limit: 60, resetMs: 0 })).to.equal(60);
    expect(of({ limit: 60, resetMs: 90_000 })).to.equal(0);
  });

  it('is not known without a limit and that time', () => {
    for (const reading of [
      {},
      { limit: 60 },
      { resetMs: 15_000 },
      { limit: 0, resetMs: 15_000 },
      { limit: -5, resetMs: 15_000 },
      { limit: 60, resetMs: -1 },
    ]) {
      expect(of(reading)).to.equal(undefined);
    }
  });
});
