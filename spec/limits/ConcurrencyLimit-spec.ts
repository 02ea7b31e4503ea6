import { expect } from 'chai';
import fc from 'fast-check';
import { SluiceError } from '../../lib/core/errors.ts';
import { DROPPED, SUCCESS } from '../../lib/core/outcome.ts';
import type { Outcome } from '../../lib/core/outcome.ts';
import { ConcurrencyLimit } from '../../lib/limits/ConcurrencyLimit.ts';
import type { ConcurrencyLimitOptions, Slot, SlotRequest, Waiter } from '../../lib/limits/ConcurrencyLimit.ts';

const REJECTED: Outcome = { kind: 'failure', error: new SluiceError('overloaded', 'failed') };

class Bench {
  readonly clock = {
    nowMs: 0,
    now(): number {
      return this.nowMs;
    },
  };
  readonly limit: ConcurrencyLimit<string>;

  constructor(options: number | ConcurrencyLimitOptions) {
    this.limit = new ConcurrencyLimit(options, this.clock);
  }

  slot(): Slot {
    const decision = this.limit.acquire({}, 'now');
    if (decision.kind !== 'granted') throw new Error(`${decision.kind}, not granted`);
    return decision.slot;
  }

  waiter(item: string, request: SlotRequest = {}): Waiter<string> {
    const decision = this.limit.acquire(request, item);
    if (decision.kind !== 'queued') throw new Error(`${decision.kind}, not queued`);
    return decision.waiter;
  }

  refusal(request: SlotRequest = {}): { readonly code: string; readonly retryAfterMs: number } {
    const decision = this.limit.acquire(request, 'refused');
    if (decision.kind !== 'refused') throw new Error(`${decision.kind}, not refused`);
    const { code, retryAfterMs } = decision;
    return { code, retryAfterMs };
  }

  /** Who is let in, until there is no room or nobody waits. */
  grants(): string[] {
    const items: string[] = [];
    for (let next = this.limit.next(); next; next = this.limit.next()) items.push(next.waiter.item);
    return items;
  }

  expired(): string[] {
    const found: string[] = [];
    for (let next = this.limit.expire(); next; next = this.limit.expire()) {
      found.push(`${next.waiter.item} ${next.refusal.code}`);
    }
    return found;
  }
}

describe('ConcurrencyLimit', () => {
  it('grants as many slots as the limit, and makes the next wait', () => {
    const bench = new Bench(2);
    bench.slot();
    bench.slot();

    expect(bench.limit.acquire({}, 'third')).to.include({ kind: 'queued', position: 1, waitMs: undefined });
    expect(bench.limit.snapshot()).to.deep.equal({ limit: 2, inFlight: 2, waiting: 1 });
  });

  it('gives a slot that is released to the first in line, and says how long that one waited', () => {
    const bench = new Bench(1);
    const slot = bench.slot();
    for (const item of ['a', 'b', 'c']) bench.waiter(item);
    bench.clock.nowMs = 30;
    bench.limit.release(slot, SUCCESS);

    const next = bench.limit.next();
    expect(next?.waiter.item).to.equal('a');
    expect(next?.slot.waitedMs).to.equal(30);
    expect(bench.limit.next()).to.be.undefined;
  });

  it('lets no newcomer pass those who wait, though a slot is free', () => {
    const bench = new Bench(1);
    const slot = bench.slot();
    bench.waiter('waits');
    bench.limit.release(slot, SUCCESS);

    expect(bench.limit.acquire({}, 'newcomer')).to.include({ kind: 'queued', position: 2 });
    expect(bench.grants()).to.deep.equal(['waits']);
  });

  it('releases a slot once', () => {
    const bench = new Bench(1);
    const slot = bench.slot();
    bench.limit.release(slot, SUCCESS);
    bench.limit.release(slot, SUCCESS);

    expect(bench.limit.snapshot().inFlight).to.equal(0);
  });

  it('forgets one that leaves the line, from wherever', () => {
    const bench = new Bench(1);
    const slot = bench.slot();
    const [a, b, c] = [bench.waiter('a'), bench.waiter('b', { maxWaitMs: 10 }), bench.waiter('c')];
    expect(bench.limit.leave(b)).to.be.true;
    expect(bench.limit.leave(b)).to.be.false;
    expect(bench.limit.nextExpiryAtMs).to.be.undefined;
    bench.limit.leave(a);
    bench.limit.release(slot, SUCCESS);

    expect(bench.grants()).to.deep.equal(['c']);
    expect(bench.limit.leave(c)).to.be.false;
  });

  it('starts exactly three of ten that wait when the limit goes from 2 to 5, in order', () => {
    const bench = new Bench(2);
    bench.slot();
    bench.slot();
    for (let n = 0; n < 10; n++) bench.waiter(`w${n}`);

    expect(bench.limit.adjust(5)).to.deep.equal({ kind: 'changed', from: 2, to: 5, reason: 'adjusted' });
    expect(bench.grants()).to.deep.equal(['w0', 'w1', 'w2']);
  });

  it('takes no slot back when the limit falls, and grants none until enough have come back', () => {
    const bench = new Bench(3);
    const slots = [bench.slot(), bench.slot(), bench.slot()];
    bench.limit.adjust(1);
    bench.waiter('waits');
    expect(bench.limit.snapshot().inFlight).to.equal(3);

    bench.limit.release(slots[0]!, SUCCESS);
    bench.limit.release(slots[1]!, SUCCESS);
    expect(bench.grants()).to.deep.equal([]);
    bench.limit.release(slots[2]!, SUCCESS);
    expect(bench.grants()).to.deep.equal(['waits']);
  });

  it('cuts an adaptive limit before anyone can have the slot', () => {
    const bench = new Bench({ initial: 2, min: 1, decrease: 0.5 });
    const [slot] = [bench.slot(), bench.slot()];
    bench.waiter('waits');

    expect(bench.limit.release(slot, REJECTED)).to.deep.equal({ kind: 'changed', from: 2, to: 1, reason: 'rejected' });
    expect(bench.grants()).to.deep.equal([]);
  });

  it('never cuts for an attempt that was granted before the last cut', () => {
    const bench = new Bench({ initial: 100 });
    const slots = Array.from({ length: 100 }, () => bench.slot());
    for (const slot of slots.slice(0, 10)) bench.limit.release(slot, REJECTED);

    expect(bench.limit.limit).to.equal(70);
  });

  it('counts the one that ends when it asks whether the limit was reached', () => {
    const bench = new Bench({ initial: 1, min: 1, growEveryMs: 0, maxOverMeasured: Infinity });
    const slot = bench.slot();

    expect(bench.limit.release(slot, SUCCESS)).to.include({ kind: 'changed', to: 2 });
  });

  it('learns from the time to first content where it was told to', () => {
    const bench = new Bench({ initial: 8, maxFirstContentMs: 100 });
    for (let n = 0; n < 5; n++) bench.limit.release(bench.slot(), SUCCESS, 200);
    expect(bench.limit.limit).to.equal(5);
  });

  it('has no decision for a fixed limit', () => {
    const bench = new Bench(1);
    expect(bench.limit.release(bench.slot(), REJECTED)).to.be.undefined;
    expect(bench.limit.limit).to.equal(1);
  });

  describe('refuses', () => {
    it('with queue_full when as many wait as may', () => {
      const bench = new Bench({ limit: 1, maxWaiting: 2 });
      bench.slot();
      bench.waiter('a');
      bench.waiter('b');

      expect(bench.refusal()).to.deep.equal({ code: 'queue_full', retryAfterMs: 1000 });
    });

    it('with queue_full at once when nobody may wait, and not while there is room', () => {
      const bench = new Bench({ limit: 1, maxWaiting: 0 });
      const slot = bench.slot();
      expect(bench.refusal().code).to.equal('queue_full');

      bench.limit.release(slot, SUCCESS);
      bench.slot();
    });

    it('with queue_timeout when the wait that is allowed is over', () => {
      const bench = new Bench({ limit: 1, maxWaitMs: 50 });
      bench.slot();
      bench.waiter('default');
      bench.waiter('own', { maxWaitMs: 20 });
      expect(bench.limit.nextExpiryAtMs).to.equal(20);
      bench.clock.nowMs = 19;
      expect(bench.expired()).to.deep.equal([]);

      bench.clock.nowMs = 20;
      expect(bench.expired()).to.deep.equal(['own queue_timeout']);
      bench.clock.nowMs = 50;
      expect(bench.expired()).to.deep.equal(['default queue_timeout']);
      expect(bench.limit.snapshot().waiting).to.equal(0);
    });

    it('with queue_timeout at once where no wait is allowed', () => {
      const bench = new Bench(1);
      bench.slot();
      expect(bench.refusal({ maxWaitMs: 0 }).code).to.equal('queue_timeout');
    });

    it('with timeout_deadline when the deadline comes first, or is past', () => {
      const bench = new Bench(1);
      const slot = bench.slot();
      bench.waiter('waits', { maxWaitMs: 30, deadlineAtMs: 20 });
      bench.waiter('both', { maxWaitMs: 20, deadlineAtMs: 20 });
      bench.clock.nowMs = 20;
      expect(bench.expired()).to.have.members(['waits timeout_deadline', 'both timeout_deadline']);

      bench.limit.release(slot, SUCCESS);
      expect(bench.refusal({ deadlineAtMs: 20 }).code).to.equal('timeout_deadline');
    });

    it('never expires one that was granted', () => {
      const bench = new Bench(1);
      const slot = bench.slot();
      bench.waiter('waits', { maxWaitMs: 20 });
      bench.clock.nowMs = 20;
      bench.limit.release(slot, SUCCESS);

      expect(bench.grants()).to.deep.equal(['waits']);
      expect(bench.expired()).to.deep.equal([]);
    });

    it('with a guess from how fast slots have come free of late', () => {
      const bench = new Bench({ limit: 1, maxWaiting: 3 });
      for (let n = 0; n < 10; n++) {
        const slot = bench.slot();
        bench.clock.nowMs += 200;
        bench.limit.release(slot, SUCCESS);
      }
      bench.slot();
      expect(bench.limit.acquire({}, 'a')).to.include({ kind: 'queued', position: 1, waitMs: 200 });
      expect(bench.limit.acquire({}, 'b')).to.include({ kind: 'queued', position: 2, waitMs: 400 });
      bench.waiter('c');
      expect(bench.refusal()).to.deep.equal({ code: 'queue_full', retryAfterMs: 800 });

      bench.clock.nowMs += 3_600_000;
      expect(bench.refusal().retryAfterMs).to.equal(1000);
    });

    it('never for more than a minute', () => {
      const bench = new Bench({ limit: 1, maxWaiting: 100 });
      const slot = bench.slot();
      bench.clock.nowMs = 20_000;
      bench.limit.release(slot, SUCCESS);
      bench.slot();
      for (let n = 0; n < 100; n++) bench.waiter('waits');

      expect(bench.refusal().retryAfterMs).to.equal(60_000);
    });
  });

  it('lets others say how many may have slots, and says why one is refused', () => {
    const bench = new Bench(1);
    bench.slot();
    bench.waiter('a');
    bench.waiter('b');
    bench.limit.allow(3);
    expect(bench.grants()).to.deep.equal(['a', 'b']);
    bench.limit.allow(0);
    expect(bench.limit.snapshot()).to.deep.equal({ limit: 0, inFlight: 3, waiting: 0 });
    expect(bench.limit.refusal('queue_full')).to.deep.equal({
      kind: 'refused',
      code: 'queue_full',
      retryAfterMs: 1000,
    });
  });

  it('says how long one waited, wherever the clock stands', () => {
    const bench = new Bench(1);
    bench.clock.nowMs = 500;
    const slot = bench.slot();
    bench.waiter('a');
    bench.clock.nowMs = 530;
    bench.limit.release(slot, SUCCESS);
    expect(bench.limit.next()?.slot).to.deep.include({ waitedMs: 30, mark: { atMs: 530, cuts: 0, start: 0 } });
  });

  it('guesses from when it was first used, and not at all in the same instant', () => {
    const bench = new Bench({ limit: 1 });
    bench.clock.nowMs = 1_000_000;
    bench.limit.release(bench.slot(), SUCCESS);
    bench.slot();
    expect(bench.limit.acquire({}, 'a')).to.include({ waitMs: undefined });
    bench.clock.nowMs += 300;
    expect(bench.limit.acquire({}, 'b')).to.include({ waitMs: 600 });
  });

  describe('checks its options', () => {
    const wrong: (number | ConcurrencyLimitOptions)[] = [
      0,
      -1,
      1.5,
      NaN,
      Infinity,
      { limit: 0 },
      { limit: 4, initial: 4 },
      { limit: 4, decrease: 0.5 },
      { initial: 0 },
      { maxWaiting: -1 },
      { maxWaiting: NaN },
      { maxWaitMs: -1 },
      { maxWaitMs: NaN },
    ];
    for (const options of wrong) {
      it(`refuses ${typeof options === 'number' ? options : JSON.stringify(options)}`, () => {
        const named = typeof options === 'number' ? 'limit' : Object.keys(options).at(-1);
        expect(() => new Bench(options))
          .to.throw(SluiceError, new RegExp(`^${named} must be .{5,}, got `))
          .with.property('code', 'invalid_option');
      });
    }

    it('refuses a wrong wait of a request, and a wrong new limit', () => {
      const bench = new Bench(1);
      expect(() => bench.limit.acquire({ maxWaitMs: NaN }, 'x')).to.throw('maxWaitMs must be');
      expect(() => bench.limit.adjust(0)).to.throw('limit must be');
      expect(bench.limit.snapshot()).to.deep.equal({ limit: 1, inFlight: 0, waiting: 0 });
    });
  });

  it('gives every slot back that it gave, never more than the limit, and in order, for every history', () => {
    const step = fc.record({
      kind: fc.constantFrom('ask' as const, 'end' as const, 'reject' as const, 'leave' as const, 'adjust' as const),
      at: fc.nat({ max: 20 }),
      afterMs: fc.nat({ max: 20 }),
      maxWaitMs: fc.constantFrom(undefined, 0, 10, 50),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 150 }), fc.boolean(), (steps, adaptive) => {
        const queue = { maxWaiting: 5, maxWaitMs: 100 };
        const bench = new Bench(adaptive ? { ...queue, initial: 3, min: 1, max: 6 } : { ...queue, limit: 3 });
        const slots: Slot[] = [];
        let line: Waiter<string>[] = [];
        const settle = (): void => {
          for (let gone = bench.limit.expire(); gone; gone = bench.limit.expire()) {
            const { waiter } = gone;
            line = line.filter((each) => each !== waiter);
          }
          for (let next = bench.limit.next(); next; next = bench.limit.next()) {
            expect(next.waiter).to.equal(line.shift());
            slots.push(next.slot);
            expect(slots.length).to.be.at.most(bench.limit.limit);
          }
        };
        for (const { kind, at, afterMs, maxWaitMs } of steps) {
          bench.clock.nowMs += afterMs;
          settle();
          if (kind === 'ask') {
            const decision = bench.limit.acquire({ maxWaitMs }, 'x');
            if (decision.kind === 'granted') {
              slots.push(decision.slot);
              expect(slots.length).to.be.at.most(bench.limit.limit);
            } else if (decision.kind === 'queued') line.push(decision.waiter);
            else expect(decision.retryAfterMs).to.be.within(1, 60_000);
          } else if (kind === 'leave') {
            const [waiter] = line.splice(at, 1);
            if (waiter) expect(bench.limit.leave(waiter)).to.be.true;
          } else if (kind === 'adjust') bench.limit.adjust(1 + (at % 6));
          else {
            const [slot] = slots.splice(at % Math.max(1, slots.length), 1);
            if (slot) bench.limit.release(slot, kind === 'end' ? SUCCESS : REJECTED);
          }
          settle();
          expect(bench.limit.snapshot()).to.include({ inFlight: slots.length, waiting: line.length });
        }
        for (const waiter of line) bench.limit.leave(waiter);
        for (const slot of slots) bench.limit.release(slot, DROPPED);
        expect(bench.limit.snapshot()).to.include({ inFlight: 0, waiting: 0 });
        expect(bench.limit.nextExpiryAtMs).to.be.undefined;
      }),
      { numRuns: 100 },
    );
  });
});
