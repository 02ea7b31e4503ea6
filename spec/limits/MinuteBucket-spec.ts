import { expect } from 'chai';
import fc from 'fast-check';
import { MinuteBucket } from '../../lib/limits/MinuteBucket.ts';

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
});
