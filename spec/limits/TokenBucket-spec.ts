import { expect } from 'chai';
import fc from 'fast-check';
import { TokenBucket } from '../../lib/limits/TokenBucket.ts';
import type { TokenBucketOptions } from '../../lib/limits/TokenBucket.ts';

/** Holds 10, gains one every 100 ms. */
const tenThenTenPerSecond: TokenBucketOptions = { capacity: 10, refillPerSecond: 10 };

const options = fc.record({
  capacity: fc.double({ min: 0.5, max: 1e6, noNaN: true }),
  refillPerSecond: fc.double({ min: 0.01, max: 1e5, noNaN: true }),
  refillLagMs: fc.oneof(fc.constant(0), fc.double({ min: 0.1, max: 500, noNaN: true })),
});
/** Times between calls: bursts at one instant, fractions, pauses, and idle gaps of hours. */
const gapMs = fc.oneof(
  fc.constant(0),
  fc.double({ min: 0, max: 3, noNaN: true }),
  fc.integer({ min: 0, max: 1000 }),
  fc.constant(3_600_000),
);
const share = fc.double({ min: 0, max: 1, noNaN: true });

/** The rules of a bucket with a lag, reckoned step by step. */
class Account {
  capacity: number;
  perMs: number;
  readonly lagMs: number;
  #debt = 0;
  #atMs = 0;
  #lagging: { fromMs: number; amount: number }[] = [];

  constructor({ capacity, refillPerSecond, refillLagMs = 0 }: TokenBucketOptions) {
    this.capacity = capacity;
    this.perMs = refillPerSecond / 1000;
    this.lagMs = refillLagMs;
  }

  charge(nowMs: number, amount: number): void {
    this.#advance(nowMs);
    const slotMs = this.lagMs / 50;
    const fromMs = slotMs === 0 ? nowMs : (Math.floor(nowMs / slotMs) + 1) * slotMs + this.lagMs;
    this.#lagging.push({ fromMs, amount });
    this.#advance(nowMs);
  }

  /** Without going there. */
  levelAt(nowMs: number): number {
    const [debt, atMs, lagging] = [this.#debt, this.#atMs, this.#lagging];
    this.#advance(nowMs);
    const level = this.capacity - this.#debt - this.#lagging.reduce((sum, { amount }) => sum + amount, 0);
    [this.#debt, this.#atMs, this.#lagging] = [debt, atMs, lagging];
    return level;
  }

  /** As if so much had been charged, or had come back, just now and without a lag. */
  shift(nowMs: number, amount: number): void {
    this.#advance(nowMs);
    this.#debt = Math.max(0, this.#debt + amount);
  }

  forget(nowMs: number, level: number): void {
    this.#advance(nowMs);
    this.#lagging = [];
    this.#debt = this.capacity - level;
  }

  #advance(nowMs: number): void {
    for (const { fromMs, amount } of this.#lagging.filter(({ fromMs: at }) => at <= nowMs)) {
      this.#drain(fromMs);
      this.#debt += amount;
    }
    this.#lagging = this.#lagging.filter(({ fromMs }) => fromMs > nowMs);
    this.#drain(nowMs);
  }

  #drain(nowMs: number): void {
    this.#debt = Math.max(0, this.#debt - Math.max(0, nowMs - this.#atMs) * this.perMs);
    this.#atMs = Math.max(this.#atMs, nowMs);
  }
}

describe('TokenBucket', () => {
  it('starts full, gives a burst at once and then one per refill', () => {
    const bucket = new TokenBucket(tenThenTenPerSecond, 0);

    for (let n = 0; n < 10; n++) expect(bucket.take(0, 1).kind).to.equal('granted');
    expect(bucket.take(0, 1)).to.deep.equal({ kind: 'wait', waitMs: 100 });
    expect(bucket.take(99, 1)).to.deep.equal({ kind: 'wait', waitMs: 1 });
    expect(bucket.take(100, 1).kind).to.equal('granted');
  });

  it('takes nothing when it says wait', () => {
    const bucket = new TokenBucket(tenThenTenPerSecond, 0);
    bucket.take(0, 8);

    bucket.take(0, 5);

    expect(bucket.level(0)).to.equal(2);
  });

  it('rounds waits up to whole milliseconds', () => {
    const bucket = new TokenBucket({ capacity: 1, refillPerSecond: 3 }, 0);
    bucket.take(0, 1);

    expect(bucket.waitMs(0, 1)).to.equal(334);
  });

  it('lets a cost above the capacity pass when full, against the future', () => {
    const bucket = new TokenBucket(tenThenTenPerSecond, 0);
    bucket.take(0, 1);

    expect(bucket.take(0, 25)).to.deep.equal({ kind: 'wait', waitMs: 100 });
    expect(bucket.take(100, 25).kind).to.equal('granted');
    expect(bucket.level(100)).to.equal(-15);
    expect(bucket.waitMs(100, 1)).to.equal(1600);
  });

  it('takes amounts that differ by one in a billion for the same', () => {
    const bucket = new TokenBucket({ capacity: 1e6, refillPerSecond: 1 }, 0);
    bucket.charge(0, 0.0005);

    expect(bucket.waitMs(0, 1e6)).to.equal(0);
    bucket.charge(0, 0.001);
    expect(bucket.waitMs(0, 1e6)).to.equal(2);
    const billion = new TokenBucket({ capacity: 1e9, refillPerSecond: 1 }, 0);
    billion.charge(0, 1);
    expect(billion.waitMs(0, 1e9)).to.equal(0);
  });

  it('holds no more than its capacity, however long it rests', () => {
    const bucket = new TokenBucket(tenThenTenPerSecond, 0);
    bucket.take(0, 10);

    expect(bucket.level(1e12)).to.equal(10);
  });

  it('refills only after the lag', () => {
    const bucket = new TokenBucket({ ...tenThenTenPerSecond, refillLagMs: 50 }, 0);
    bucket.take(0, 10);

    expect(bucket.level(50)).to.equal(0);
    expect(bucket.waitMs(0, 1)).to.be.within(150, 152);
    expect(bucket.level(1051)).to.be.closeTo(10, 0.02);
  });

  it('waits no longer than until what comes back already is enough', () => {
    const bucket = new TokenBucket({ ...tenThenTenPerSecond, refillLagMs: 100 }, 0);
    bucket.charge(0, 0.5);
    bucket.charge(102, 3);

    expect(bucket.waitMs(102, 7)).to.equal(50);
  });

  it('counts what lags and what comes back side by side', () => {
    const bucket = new TokenBucket({ ...tenThenTenPerSecond, refillLagMs: 100 }, 0);
    bucket.charge(0, 4);
    bucket.charge(50, 1);

    expect(bucket.level(142)).to.be.closeTo(5.4, 1e-9);
  });

  it('is full to the last bit when all has come back', () => {
    const bucket = new TokenBucket({ capacity: 0.3, refillPerSecond: 1, refillLagMs: 100 }, 0);
    bucket.charge(0, 0.1);
    bucket.charge(50, 0.2);

    expect(bucket.level(1000)).to.equal(0.3);
  });

  it('takes what is charged within a fiftieth of the lag for one charge', () => {
    const bucket = new TokenBucket({ ...tenThenTenPerSecond, refillLagMs: 100 }, 0);
    const [first, same, next, sameAgain] = [0, 1, 2, 3].map((nowMs) => bucket.charge(nowMs, 1));

    expect([same, sameAgain]).to.deep.equal([first, next]);
    expect(next).to.be.above(first!);
    expect(bucket.giveBack(3, 5, next!)).to.equal(2);
  });

  it('lets what is taken after the lag was given up come back with what still lags', () => {
    const bucket = new TokenBucket({ ...tenThenTenPerSecond, refillLagMs: 100 }, 0);
    bucket.charge(0, 5);
    bucket.setRate(0, { ...tenThenTenPerSecond, refillLagMs: 0 });
    bucket.charge(0, 3);

    expect(bucket.level(102)).to.equal(2);
    expect(bucket.level(202)).to.equal(3);
    expect(bucket.level(1000)).to.equal(10);
  });

  it('lowers no level by a clock that goes back', () => {
    const bucket = new TokenBucket(tenThenTenPerSecond, 1000);
    bucket.charge(1000, 5);

    expect(bucket.level(900)).to.equal(5);
    expect(bucket.level(1000)).to.equal(5);
    expect(bucket.level(1100)).to.equal(6);
  });

  it('is corrected downwards and never upwards by lower', () => {
    const bucket = new TokenBucket(tenThenTenPerSecond, 0);

    bucket.lower(0, 3);
    expect(bucket.level(0)).to.equal(3);
    bucket.lower(0, 7);
    expect(bucket.level(0)).to.equal(3);
    bucket.lower(0, -2);
    expect(bucket.level(0)).to.equal(-2);
  });

  it('keeps its level when the rate changes, as far as it fits', () => {
    const bucket = new TokenBucket(tenThenTenPerSecond, 0);
    bucket.take(0, 4);

    bucket.setRate(0, { capacity: 20, refillPerSecond: 1 });
    expect(bucket.level(0)).to.equal(6);
    expect(bucket.level(1000)).to.equal(7);
    bucket.setRate(1000, { capacity: 3, refillPerSecond: 100 });
    expect(bucket.level(1000)).to.equal(3);
    expect([bucket.capacity, bucket.refillPerSecond]).to.deep.equal([3, 100]);
  });

  it('counts a credit as given back', () => {
    const bucket = new TokenBucket(tenThenTenPerSecond, 0);
    bucket.take(0, 10);

    expect(bucket.waitMs(0, 5, 3)).to.equal(200);
    expect(bucket.waitMs(0, 5, 5)).to.equal(0);
  });

  it('gives nothing back that was refilled meanwhile to no one’s use', () => {
    const bucket = new TokenBucket(tenThenTenPerSecond, 0);
    const early = bucket.charge(0, 1);
    bucket.take(100, 10);

    expect(bucket.giveBack(100, 1, early)).to.equal(0);
    expect(bucket.level(100)).to.equal(0);
    const idle = new TokenBucket(tenThenTenPerSecond, 0);
    expect(idle.giveBack(100, 1, idle.charge(0, 1))).to.equal(0);
  });

  it('gives back as exactly from a small bucket as from a large one', () => {
    // The first has come back in part, since the second was taken or since it began to.
    for (const { refillLagMs, nowMs, back } of [
      { refillLagMs: 0, nowMs: 45, back: 2.55 },
      { refillLagMs: 100, nowMs: 150, back: 2.52 },
    ]) {
      for (const scale of [1e-3, 1, 1e3]) {
        const bucket = new TokenBucket({ capacity: 10 * scale, refillPerSecond: 10 * scale, refillLagMs }, 0);
        const marks = [0, 20, 40].map((chargedMs) => bucket.charge(chargedMs, scale));
        const given = marks.reduce((sum, mark) => sum + bucket.giveBack(nowMs, scale, mark), 0);
        expect(given / scale).to.be.closeTo(back, 0.01);
      }
    }
  });

  it('gives back across a change of its size what is left of each charge', () => {
    const bucket = new TokenBucket(tenThenTenPerSecond, 0);
    const early = bucket.charge(0, 4);
    bucket.setRate(400, { capacity: 20, refillPerSecond: 10 });
    const late = bucket.charge(400, 3);

    expect(bucket.giveBack(400, 4, early)).to.equal(0);
    expect(bucket.giveBack(400, 3, late)).to.equal(3);
    for (const scale of [1e-3, 1]) {
      const scaled = new TokenBucket({ capacity: 10 * scale, refillPerSecond: 10 * scale }, 0);
      const before = scaled.charge(0, scale);
      scaled.setRate(0, { capacity: 20 * scale, refillPerSecond: 10 * scale });
      const after = scaled.charge(0, 5 * scale);
      expect(scaled.giveBack(0, 5 * scale, after)).to.be.closeTo(5 * scale, 1e-9);
      expect(scaled.giveBack(0, scale, before)).to.be.closeTo(scale, 1e-9);
    }
  });

  it('gives back what still lagged when its size changed', () => {
    const bucket = new TokenBucket({ ...tenThenTenPerSecond, refillLagMs: 100 }, 0);
    const early = bucket.charge(0, 4);
    const late = bucket.charge(510, 2);
    bucket.setRate(520, { capacity: 20, refillPerSecond: 10 });

    expect(bucket.giveBack(620, 2, late)).to.be.closeTo(2, 1e-9);
    expect(bucket.giveBack(620, 4, early)).to.equal(0);
  });

  it('gives back together no more than is left of several', () => {
    const bucket = new TokenBucket(tenThenTenPerSecond, 0);
    const [first, second] = [bucket.charge(0, 1), bucket.charge(0, 1)];
    bucket.charge(50, 10);

    expect(bucket.giveBack(50, 1, first)).to.equal(1);
    expect(bucket.giveBack(50, 1, second)).to.equal(0.5);
  });

  it('gives back what has begun to refill, while later charges have not', () => {
    const bucket = new TokenBucket({ ...tenThenTenPerSecond, refillLagMs: 100 }, 0);
    const early = bucket.charge(0, 4);
    bucket.charge(50, 1);
    const before = bucket.level(140);

    const back = bucket.giveBack(140, 4, early);
    expect(back).to.be.closeTo(3.62, 0.03);
    expect(bucket.level(140)).to.be.closeTo(before + back, 1e-9);
    expect(bucket.level(160)).to.be.closeTo(9, 0.1);
    expect(bucket.giveBack(160, 4, early)).to.equal(0);
  });

  it('gives nothing back of what did not fit when the capacity fell', () => {
    const bucket = new TokenBucket(tenThenTenPerSecond, 0);
    const early = bucket.charge(0, 4);
    bucket.setRate(0, { capacity: 7, refillPerSecond: 10 });
    bucket.charge(0, 3);

    expect(bucket.giveBack(0, 4, early)).to.equal(1);
  });

  it('gives back no more than was taken', () => {
    for (const refillLagMs of [0, 100]) {
      const bucket = new TokenBucket({ ...tenThenTenPerSecond, refillLagMs }, 0);
      const mark = bucket.charge(0, 4);

      bucket.giveBack(0, 4, mark);
      expect(bucket.giveBack(0, 4, mark)).to.equal(0);
      expect(bucket.level(0)).to.equal(10);
    }
  });

  for (const option of ['capacity', 'refillPerSecond'] as const) {
    for (const value of [0, -1, NaN, Infinity]) {
      it(`refuses ${option} ${value}`, () => {
        const wrong = (): TokenBucket => new TokenBucket({ ...tenThenTenPerSecond, [option]: value }, 0);
        expect(wrong)
          .to.throw(`${option} must be finite and above 0, got ${value}`)
          .with.property('code', 'invalid_option');

        const bucket = new TokenBucket(tenThenTenPerSecond, 0);
        expect(() => bucket.setRate(0, { ...tenThenTenPerSecond, [option]: value })).to.throw(option);
        expect(bucket.level(0)).to.equal(10);
      });
    }
  }

  it('names the lag that it refuses when its rate changes', () => {
    const bucket = new TokenBucket(tenThenTenPerSecond, 0);

    expect(() => bucket.setRate(0, { ...tenThenTenPerSecond, refillLagMs: -1 })).to.throw('refillLagMs');
  });

  it('refuses a negative lag, and amounts that are no numbers', () => {
    expect(() => new TokenBucket({ ...tenThenTenPerSecond, refillLagMs: -1 }, 0)).to.throw('refillLagMs');
    const bucket = new TokenBucket(tenThenTenPerSecond, 0);
    expect(() => bucket.take(0, NaN)).to.throw('cost');
    expect(() => bucket.charge(0, -1)).to.throw('cost');
    expect(() => bucket.giveBack(0, NaN, 1)).to.throw('amount');
    expect(bucket.level(0)).to.equal(10);
  });

  describe('for every history', () => {
    it('grants no more in any window than capacity and refill, less the lag', () => {
      fc.assert(
        fc.property(options, fc.array(fc.tuple(gapMs, share), { maxLength: 60 }), (given, calls) => {
          const bucket = new TokenBucket(given, 0);
          const granted: { atMs: number; cost: number }[] = [];
          let nowMs = 0;
          for (const [gap, part] of calls) {
            nowMs += gap;
            const cost = part * given.capacity;
            if (bucket.take(nowMs, cost).kind === 'granted') granted.push({ atMs: nowMs, cost });
          }
          for (let from = 0; from < granted.length; from++) {
            let sum = 0;
            for (let to = from; to < granted.length; to++) {
              sum += granted[to]!.cost;
              const windowMs = granted[to]!.atMs - granted[from]!.atMs;
              const most = given.capacity + (given.refillPerSecond * Math.max(0, windowMs - given.refillLagMs)) / 1000;
              expect(sum).to.be.at.most(most * (1 + 1e-6));
            }
          }
        }),
        { numRuns: 300 },
      );
    });

    it('keeps the promise of the wait, which is never longer than it must be', () => {
      fc.assert(
        fc.property(
          options,
          fc.array(fc.tuple(gapMs, share), { maxLength: 30 }),
          fc.double({ min: 0, max: 3, noNaN: true }),
          (given, calls, part) => {
            const bucket = new TokenBucket(given, 0);
            let nowMs = 0;
            for (const [gap, cost] of calls) bucket.take((nowMs += gap), cost * given.capacity);
            const cost = part * given.capacity;
            const waitMs = bucket.waitMs(nowMs, cost);

            expect(Number.isInteger(waitMs)).to.be.true;
            // Amounts that differ by 1 in 10^9 are the same to it.
            const early = 2 + (1e-6 * given.capacity) / given.refillPerSecond;
            if (waitMs > early) expect(bucket.waitMs(nowMs + waitMs - early, cost)).to.be.above(0);
            const left = bucket.waitMs(nowMs + waitMs, cost);
            expect(left).to.be.at.most(1);
            expect(bucket.take(nowMs + waitMs + left, cost).kind).to.equal('granted');
          },
        ),
        { numRuns: 300 },
      );
    });

    it('is as if a charge had never been made once it is given back', () => {
      const charges = fc.array(fc.tuple(gapMs, share), { minLength: 1, maxLength: 30 });
      fc.assert(
        fc.property(options, charges, fc.nat(), gapMs, (given, calls, pick, restMs) => {
          const undone = pick % calls.length;
          const [bucket, without] = [new TokenBucket(given, 0), new TokenBucket(given, 0)];
          let nowMs = 0;
          let mark = 0;
          calls.forEach(([gap, part], i) => {
            nowMs += gap;
            const made = bucket.charge(nowMs, part * given.capacity);
            if (i === undone) mark = made;
            else without.charge(nowMs, part * given.capacity);
          });
          nowMs += restMs;
          bucket.giveBack(nowMs, calls[undone]![1] * given.capacity, mark);

          const level = bucket.level(nowMs);
          expect(level).to.be.at.most(without.level(nowMs) + 1e-6 * given.capacity);
          // Lows are kept apart to 1 in 10,000, and charges of one slot of the lag come back together.
          const slack = 2e-4 * given.capacity + (given.refillPerSecond * given.refillLagMs) / 50_000;
          expect(level).to.be.at.least(without.level(nowMs) - slack);
        }),
        { numRuns: 500 },
      );
    });

    it('is never better off for charges that were given back, whatever lay between', () => {
      const step = fc.record({ gapMs, part: share, undo: fc.boolean(), resize: fc.constantFrom(1, 1, 1, 0.5, 2) });
      fc.assert(
        fc.property(options, fc.array(step, { maxLength: 30 }), fc.nat(), (given, steps, order) => {
          const [bucket, without] = [new TokenBucket(given, 0), new TokenBucket(given, 0)];
          const undone: { mark: number; cost: number }[] = [];
          let nowMs = 0;
          let { capacity } = given;
          for (const { gapMs: gap, part, undo, resize } of steps) {
            nowMs += gap;
            const cost = part * capacity;
            const mark = bucket.charge(nowMs, cost);
            if (undo) undone.push({ mark, cost });
            else without.charge(nowMs, cost);
            if (resize === 1) continue;
            capacity *= resize;
            for (const each of [bucket, without]) each.setRate(nowMs, { ...given, capacity });
          }
          while (undone.length > 0) {
            const [{ mark, cost }] = undone.splice(order % undone.length, 1) as [{ mark: number; cost: number }];
            bucket.giveBack(nowMs, cost, mark);
          }

          expect(bucket.level(nowMs)).to.be.at.most(without.level(nowMs) + 1e-6 * Math.max(capacity, given.capacity));
        }),
        { numRuns: 500 },
      );
    });

    it('has the level, and names the wait, that an account of every charge gives', () => {
      const step = fc.record({
        gapMs: fc.oneof(fc.constant(0), fc.constant(4), fc.integer({ min: 0, max: 30 }), fc.constant(2000)),
        amount: fc.integer({ min: 0, max: 6 }),
        kind: fc.constantFrom('charge', 'charge', 'charge', 'charge', 'lower', 'reset', 'resize'),
      });
      const rates = fc.record({
        capacity: fc.constantFrom(6, 10),
        refillPerSecond: fc.constantFrom(20, 100, 300),
        refillLagMs: fc.constantFrom(0, 100),
      });
      fc.assert(
        fc.property(rates, fc.array(step, { maxLength: 120 }), (given, steps) => {
          const [bucket, account] = [new TokenBucket(given, 0), new Account(given)];
          let nowMs = 0;
          for (const { gapMs: gap, amount, kind } of steps) {
            nowMs += gap;
            if (kind === 'charge') {
              bucket.charge(nowMs, amount);
              account.charge(nowMs, amount);
            } else if (kind === 'lower') {
              account.shift(nowMs, Math.max(0, account.levelAt(nowMs) - amount));
              bucket.lower(nowMs, amount);
            } else if (kind === 'reset') {
              const level = Math.min(amount, account.capacity);
              bucket.reset(nowMs, level);
              account.forget(nowMs, level);
            } else {
              const capacity = 5 + amount;
              bucket.setRate(nowMs, { capacity, refillPerSecond: 10 * (1 + amount) });
              account.shift(nowMs, capacity - account.capacity);
              account.capacity = capacity;
              account.perMs = (1 + amount) / 100;
            }
            expect(bucket.level(nowMs)).to.be.closeTo(account.levelAt(nowMs), 1e-6);

            const need = Math.min(amount, account.capacity);
            const waitMs = bucket.waitMs(nowMs, amount);
            expect(account.levelAt(nowMs + waitMs)).to.be.at.least(need - 1e-6);
            if (waitMs > 0) expect(account.levelAt(nowMs + waitMs - 1)).to.be.below(need + 1e-6);
          }
        }),
        { numRuns: 150 },
      );
    });

    it('gives back as much after a long time of steady charges as after a short one', () => {
      const bucket = new TokenBucket({ capacity: 100, refillPerSecond: 100, refillLagMs: 100 }, 0);
      for (let nowMs = 0; nowMs < 1000; nowMs += 2) bucket.charge(nowMs, 0.2);
      const mark = bucket.charge(1000, 5);
      for (let nowMs = 1002; nowMs < 1150; nowMs += 2) bucket.charge(nowMs, 0.2);
      const before = bucket.level(1150);

      const back = bucket.giveBack(1150, 5, mark);
      expect(back).to.be.closeTo(5, 0.25);
      expect(bucket.level(1150)).to.be.closeTo(before + back, 1e-6);
      expect(bucket.level(1400)).to.be.closeTo(100, 1e-6);
    });

    it('stays finite and within its capacity, whatever is asked of it', () => {
      const step = fc.tuple(gapMs, fc.nat(4), share, fc.nat(50));
      fc.assert(
        fc.property(options, fc.array(step, { maxLength: 60 }), (given, steps) => {
          const bucket = new TokenBucket(given, 0);
          let nowMs = 0;
          for (const [gap, kind, part, mark] of steps) {
            nowMs += gap;
            if (kind === 0) bucket.take(nowMs, part * given.capacity * 2);
            else if (kind === 1) bucket.giveBack(nowMs, part * given.capacity, mark);
            else if (kind === 2) bucket.lower(nowMs, (part - 0.5) * given.capacity);
            else if (kind === 3) bucket.charge(nowMs, part * given.capacity);
            else bucket.setRate(nowMs, { capacity: given.capacity * (0.5 + part), refillPerSecond: 1 + part });
            expect(bucket.level(nowMs)).to.be.finite;
            expect(bucket.level(nowMs)).to.be.at.most(bucket.capacity * (1 + 1e-9));
            expect(bucket.waitMs(nowMs, 1)).to.be.finite;
          }
          expect(bucket.level(nowMs + 1e12)).to.be.closeTo(bucket.capacity, 1e-6 * bucket.capacity);
        }),
        { numRuns: 200 },
      );
    });

    it('grants no more than its capacity while the clock stands still, or goes back', () => {
      const bucket = new TokenBucket({ ...tenThenTenPerSecond, refillLagMs: 20 }, 500);
      let granted = 0;
      for (let n = 0; n < 1000; n++) if (bucket.take(500 - (n % 3), 1).kind === 'granted') granted++;

      expect(granted).to.equal(10);
    });
  });
});
