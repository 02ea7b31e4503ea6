import { expect } from 'chai';
import fc from 'fast-check';
import { SluiceError } from '../../lib/core/errors.ts';
import type { ErrorCode } from '../../lib/core/errors.ts';
import { DROPPED, SUCCESS } from '../../lib/core/outcome.ts';
import type { Outcome } from '../../lib/core/outcome.ts';
import { Aimd } from '../../lib/limits/Aimd.ts';
import type { AimdDecision, AimdMark, AimdOptions } from '../../lib/limits/Aimd.ts';

const failed = (code: ErrorCode): Outcome => ({ kind: 'failure', error: new SluiceError(code, 'failed') });
const REJECTED = failed('rate_limited');

/** Growth bounded by nothing but the limit being reached. */
const free = { growEveryMs: 0, maxOverMeasured: Infinity };

class Bench {
  readonly clock = {
    nowMs: 0,
    now(): number {
      return this.nowMs;
    },
  };
  readonly aimd: Aimd;
  inFlight = 0;

  constructor(options: AimdOptions = {}) {
    this.aimd = new Aimd(options, this.clock);
  }

  get limit(): number {
    return this.aimd.limit;
  }

  start(): AimdMark {
    return this.aimd.start(++this.inFlight);
  }

  end(mark: AimdMark, outcome: Outcome, firstContentMs?: number): AimdDecision {
    const decision = this.aimd.end(mark, outcome, this.inFlight, firstContentMs);
    this.inFlight--;
    return decision;
  }

  /** As many at once as the limit, all of which end so after `takesMs`. */
  round(outcome: Outcome, takesMs = 100, count = this.limit, firstContentMs?: number): AimdDecision[] {
    const marks = Array.from({ length: count }, () => this.start());
    this.clock.nowMs += takesMs;
    return marks.map((mark) => this.end(mark, outcome, firstContentMs));
  }
}

const reasons = (decisions: AimdDecision[]): string[] => [...new Set(decisions.map(({ reason }) => reason))];

describe('Aimd', () => {
  describe('grows', () => {
    it('by one in a round trip in which the limit was reached and all went well', () => {
      const bench = new Bench({ ...free, initial: 10 });
      const decisions = bench.round(SUCCESS);

      expect(decisions.slice(0, -1).every(({ reason }) => reason === 'gaining')).to.be.true;
      expect(decisions.at(-1)).to.deep.equal({ kind: 'changed', from: 10, to: 11, reason: 'success' });
    });

    it('not while the limit is not reached, and says so', () => {
      const bench = new Bench({ ...free, initial: 10 });
      for (let n = 0; n < 20; n++) expect(reasons(bench.round(SUCCESS, 100, 9))).to.deep.equal(['app_limited']);

      expect(bench.limit).to.equal(10);
    });

    it('also where the limit was reached only while the attempt ran', () => {
      const bench = new Bench({ ...free, initial: 2, min: 1 });
      const early = bench.start();
      bench.end(bench.start(), DROPPED);

      expect(bench.end(early, SUCCESS).reason).to.equal('gaining');
      expect(bench.end(bench.start(), SUCCESS).reason).to.equal('app_limited');
    });

    it('by one a round trip, and by no more', () => {
      const bench = new Bench({ ...free, initial: 10 });
      for (let n = 0; n < 5; n++) bench.round(SUCCESS);

      expect(bench.limit).to.equal(15);
      expect(bench.round(SUCCESS)[0]?.reason).to.equal('gaining');
    });

    it('only if the limit was reached as it is now', () => {
      const bench = new Bench({ ...free, initial: 2, min: 1 });
      const [first, second] = [bench.start(), bench.start()];
      bench.end(first, SUCCESS);
      const third = bench.start();
      expect(bench.end(second, SUCCESS)).to.include({ kind: 'changed', to: 3 });

      expect(bench.end(third, SUCCESS).reason).to.equal('app_limited');
    });

    it('also where more are in flight than a limit that was lowered from outside', () => {
      const bench = new Bench({ ...free, initial: 8 });
      const marks = Array.from({ length: 6 }, () => bench.start());
      bench.aimd.adjust(4);

      expect(bench.end(marks[0]!, SUCCESS).reason).to.equal('gaining');
    });

    it('not above max', () => {
      const bench = new Bench({ ...free, initial: 9, min: 1, max: 10 });
      for (let n = 0; n < 50; n++) {
        bench.round(SUCCESS);
        expect(bench.limit).to.be.within(9, 10);
      }
      expect(bench.limit).to.equal(10);
      expect(reasons(bench.round(SUCCESS))).to.deep.equal(['at_max']);
    });

    it('at most once in growEveryMs, and not sooner after a cut', () => {
      const bench = new Bench({ initial: 10, growEveryMs: 1000, maxOverMeasured: Infinity });
      for (let n = 0; n < 30; n++) bench.round(SUCCESS, 100);
      expect(bench.limit).to.equal(13);

      const [mark] = [bench.start()];
      bench.end(mark, REJECTED);
      expect(bench.limit).to.equal(9);
      for (let n = 0; n < 9; n++) bench.round(SUCCESS, 100);
      expect(bench.limit).to.equal(9);
      expect(reasons(bench.round(SUCCESS, 99))).to.deep.equal(['too_soon']);
      bench.round(SUCCESS, 1);
      expect(bench.limit).to.equal(10);
    });

    it('to no more than maxOverMeasured times what is carried on average', () => {
      const bench = new Bench({ initial: 10, growEveryMs: 0, maxOverMeasured: 1.2 });
      // Bursts of 10 that take 100 ms, each second: one in flight on average.
      const bursts = (): AimdDecision[] => {
        const decisions = bench.round(SUCCESS, 100);
        bench.clock.nowMs += 900;
        return decisions;
      };
      bursts();
      for (let n = 0; n < 60; n++) bursts();
      expect(bench.limit).to.be.at.most(11);
      expect(reasons(bursts())).to.include('measured');

      for (let n = 0; n < 1500; n++) bench.round(SUCCESS, 100);
      expect(bench.limit).to.be.above(40);
    });

    it('does not count failures as carried', () => {
      const bench = new Bench({ initial: 10, growEveryMs: 0, maxOverMeasured: 1.2 });
      for (let n = 0; n < 100; n++) {
        const marks = Array.from({ length: bench.limit }, () => bench.start());
        bench.clock.nowMs += 1000;
        marks.forEach((mark, at) => bench.end(mark, at % 2 === 0 ? SUCCESS : failed('server_error')));
      }
      expect(bench.limit).to.equal(10);
    });

    it('from the smallest limits too, though 1.2 times them is less than one more', () => {
      const bench = new Bench({ initial: 1, min: 1, growEveryMs: 0, maxOverMeasured: 1.2 });
      for (let n = 0; n < 100; n++) bench.round(SUCCESS, 100);
      expect(bench.limit).to.be.above(5);
    });
  });

  describe('is cut', () => {
    for (const code of ['rate_limited', 'overloaded'] as const) {
      it(`by ${code}`, () => {
        const bench = new Bench({ initial: 10 });
        const mark = bench.start();

        expect(bench.end(mark, failed(code))).to.deep.equal({ kind: 'changed', from: 10, to: 7, reason: 'rejected' });
      });
    }

    it('by the factor that it was told', () => {
      const bench = new Bench({ initial: 10, decrease: 0.5 });
      bench.end(bench.start(), REJECTED);
      expect(bench.limit).to.equal(5);
    });

    it('by at least one', () => {
      const bench = new Bench({ initial: 10, decrease: 0.999 });
      bench.end(bench.start(), REJECTED);
      expect(bench.limit).to.equal(9);
    });

    it('once for one moment of congestion, however many fail in it', () => {
      const bench = new Bench({ initial: 128, min: 1, decrease: 0.5 });
      const marks = Array.from({ length: 128 }, () => bench.start());
      const decisions = marks.map((mark, at) => bench.end(mark, at < 20 ? REJECTED : SUCCESS));

      expect(bench.limit).to.equal(64);
      expect(reasons(decisions)).to.deep.equal(['rejected', 'before_cut']);
    });

    it('again by an attempt that started after the cut', () => {
      const bench = new Bench({ initial: 100 });
      bench.end(bench.start(), REJECTED);
      bench.end(bench.start(), REJECTED);
      expect(bench.limit).to.equal(49);
    });

    it('not below min', () => {
      const bench = new Bench({ initial: 10, min: 8 });
      bench.end(bench.start(), REJECTED);
      expect(bench.limit).to.equal(8);
      expect(bench.end(bench.start(), REJECTED)).to.deep.equal({ kind: 'kept', reason: 'at_min' });
    });

    it('not by what says nothing about the limit', () => {
      const bench = new Bench({ initial: 10 });
      const outcomes = [
        DROPPED,
        failed('bad_request'),
        failed('server_error'),
        failed('connection'),
        failed('timeout'),
        failed('quota_exhausted'),
        failed('request_too_large'),
      ];
      const decisions = outcomes.map((outcome) => bench.end(bench.start(), outcome, 60_000));

      expect(reasons(decisions)).to.deep.equal(['neutral']);
      expect(bench.limit).to.equal(10);
    });

    it('not by long answers', () => {
      const bench = new Bench({ initial: 10, maxFirstContentMs: 500 });
      for (let n = 0; n < 20; n++) bench.round(SUCCESS, 600_000, 10, 100);
      expect(bench.limit).to.be.at.least(10);
    });

    it('by slow first content on average, where it was told what is slow', () => {
      const bench = new Bench({ initial: 10, maxFirstContentMs: 500 });
      const decisions = bench.round(SUCCESS, 1000, 10, 600);

      expect(decisions[4]).to.deep.equal({ kind: 'changed', from: 10, to: 7, reason: 'first_content' });
      expect(reasons(decisions.slice(5))).to.deep.equal(['before_cut']);
      const unaware = new Bench({ initial: 10 });
      unaware.round(SUCCESS, 1000, 10, 600_000);
      expect(unaware.limit).to.be.at.least(10);
    });

    it('by slow first content again only when as many have been slow since', () => {
      const bench = new Bench({ initial: 10, maxFirstContentMs: 500 });
      const slow = (): AimdDecision => bench.end(bench.start(), SUCCESS, 600);
      const limits = Array.from({ length: 10 }, () => {
        slow();
        return bench.limit;
      });

      expect(limits).to.deep.equal([10, 10, 10, 10, 7, 7, 7, 7, 7, 4]);
    });

    it('not by one slow first content among fast ones', () => {
      const bench = new Bench({ ...free, initial: 10, maxFirstContentMs: 500 });
      for (let n = 0; n < 50; n++) bench.end(bench.start(), SUCCESS, n % 10 === 0 ? 1500 : 100);
      expect(bench.limit).to.equal(10);
    });
  });

  describe('can be set', () => {
    it('within its bounds, and goes on from there', () => {
      const bench = new Bench({ ...free, initial: 10, min: 4, max: 64 });

      expect(bench.aimd.adjust(20)).to.deep.equal({ kind: 'changed', from: 10, to: 20, reason: 'adjusted' });
      bench.round(SUCCESS);
      expect(bench.limit).to.equal(21);
      expect(() => bench.aimd.adjust(65)).to.throw('limit must be a whole number from 4 to 64, got 65');
      expect(() => bench.aimd.adjust(NaN)).to.throw(SluiceError);
    });
  });

  describe('with other rules', () => {
    it('keeps its limit, as far as it lies between the new bounds', () => {
      const bench = new Bench({ ...free, initial: 10 });
      bench.aimd.reload({ ...free, initial: 30 });
      expect(bench.limit).to.equal(10);
      bench.aimd.reload({ min: 12, max: 20 });
      expect(bench.limit).to.equal(12);
      bench.aimd.reload({ min: 4, max: 8 });
      expect(bench.limit).to.equal(8);
      expect(() => bench.aimd.reload({ max: 0 })).to.throw(SluiceError);
      expect(bench.limit).to.equal(8);
    });

    it('keeps what it has earned where the limit stays, and begins anew where it does not', () => {
      const earned = (max: number): number => {
        const bench = new Bench({ ...free, initial: 10 });
        bench.round(SUCCESS, 100, 9);
        const last = bench.start();
        bench.start();
        bench.aimd.reload({ ...free, max });
        bench.end(last, SUCCESS);
        return bench.limit;
      };
      expect([earned(20), earned(9)]).to.deep.equal([10, 9]);
    });

    it('is at rest where it began', () => {
      const bench = new Bench({ ...free, initial: 10 });
      expect(bench.aimd.atRest).to.equal(true);
      bench.round(SUCCESS);
      expect([bench.limit, bench.aimd.atRest]).to.deep.equal([11, false]);
    });
  });

  it('measures from the first start, wherever the clock stands then', () => {
    const bench = new Bench({ initial: 4, growEveryMs: 0, maxOverMeasured: 1.2 });
    bench.clock.nowMs = 1_000_000;
    for (let n = 0; n < 3; n++) bench.round(SUCCESS, 100);
    expect(bench.limit).to.equal(6);
    // Nothing has been carried yet: in no time at all.
    const instant = new Bench({ initial: 4, growEveryMs: 0, maxOverMeasured: 1.2 });
    instant.round(SUCCESS, 0);
    expect(instant.limit).to.equal(5);
  });

  it('takes a first content that is exactly as slow as it may be for fast enough', () => {
    const bench = new Bench({ ...free, initial: 10, maxFirstContentMs: 500 });
    for (let n = 0; n < 20; n++) bench.end(bench.start(), SUCCESS, 500);
    expect(bench.limit).to.equal(10);
  });

  describe('checks its options', () => {
    it('starts at 16, between 4 and 64', () => {
      const bench = new Bench(free);
      expect(bench.limit).to.equal(16);
      for (let n = 0; n < 100; n++) bench.round(SUCCESS);
      expect(bench.limit).to.equal(64);
      for (let n = 0; n < 100; n++) bench.end(bench.start(), REJECTED);
      expect(bench.limit).to.equal(4);
    });

    it('brings what was not named in line with what was', () => {
      expect(new Bench({ max: 10 }).limit).to.equal(10);
      expect(new Bench({ max: 2 }).limit).to.equal(2);
      expect(new Bench({ min: 100 }).limit).to.equal(100);
      expect(new Bench({ initial: 128 }).limit).to.equal(128);
      expect(new Bench({ initial: 1 }).limit).to.equal(1);
    });

    const wrong: AimdOptions[] = [
      { initial: 0 },
      { initial: 1.5 },
      { initial: NaN },
      { min: 0 },
      { min: NaN },
      { max: 0 },
      { max: Infinity },
      { initial: 3, min: 4 },
      { initial: 65, max: 64 },
      { max: 3, min: 4 },
      { decrease: 0 },
      { decrease: 1 },
      { decrease: NaN },
      { growEveryMs: -1 },
      { growEveryMs: NaN },
      { maxOverMeasured: 0.9 },
      { maxOverMeasured: NaN },
      { maxFirstContentMs: 0 },
      { maxFirstContentMs: NaN },
      { decrease: [0.5] as unknown as number },
      { maxOverMeasured: [2] as unknown as number },
    ];
    for (const options of wrong) {
      it(`refuses ${JSON.stringify(options)}`, () => {
        expect(() => new Bench(options))
          .to.throw(SluiceError, new RegExp(`^(${Object.keys(options).join('|')}) must be .{5,}, got `))
          .with.property('code', 'invalid_option');
      });
    }

    it('says how the bounds must lie to each other', () => {
      expect(() => new Bench({ max: 3, min: 4 })).to.throw('max must be at least min (4), got 3');
      expect(new Bench({ max: 4, min: 4 }).limit).to.equal(4);
      expect(new Bench({ maxOverMeasured: 1 }).limit).to.equal(16);
    });
  });

  it('stays within its bounds, a whole number, and cuts at most once a round trip, for every history', () => {
    const step = fc.record({
      kind: fc.constantFrom('start' as const, 'succeed' as const, 'reject' as const, 'drop' as const),
      afterMs: fc.nat({ max: 500 }),
      firstContentMs: fc.nat({ max: 2000 }),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), fc.boolean(), (steps, watchesLatency) => {
        const bench = new Bench({
          initial: 8,
          min: 2,
          max: 12,
          growEveryMs: 100,
          ...(watchesLatency ? { maxFirstContentMs: 1000 } : {}),
        });
        const marks: { mark: AimdMark; startedWith: number }[] = [];
        let cuts = 0;
        for (const { kind, afterMs, firstContentMs } of steps) {
          bench.clock.nowMs += afterMs;
          if (kind === 'start') {
            marks.push({ mark: bench.start(), startedWith: cuts });
            continue;
          }
          const first = marks.shift();
          if (first === undefined) continue;
          const outcome = { succeed: SUCCESS, reject: REJECTED, drop: DROPPED }[kind];
          const decision = bench.end(first.mark, outcome, firstContentMs);
          if (decision.kind === 'changed' && decision.to < decision.from) {
            expect(first.startedWith).to.equal(cuts);
            cuts++;
          }
          if (decision.reason === 'at_min') cuts++;
          expect(Number.isSafeInteger(bench.limit)).to.be.true;
          expect(bench.limit).to.be.within(2, 12);
        }
      }),
      { numRuns: 100 },
    );
  });
});
