import { expect } from 'chai';
import fc from 'fast-check';
import { SluiceError } from '../../lib/core/errors.ts';
import type { ErrorCode } from '../../lib/core/errors.ts';
import { DROPPED, DROPPED_UNSENT, SUCCESS } from '../../lib/core/outcome.ts';
import type { Outcome } from '../../lib/core/outcome.ts';
import type { CircuitBreakerOptions } from '../../lib/limits/breakerRules.ts';
import { CircuitBreaker } from '../../lib/limits/CircuitBreaker.ts';
import type { BreakerChange, BreakerTicket } from '../../lib/limits/CircuitBreaker.ts';

const failed = (code: ErrorCode = 'server_error'): Outcome => ({
  kind: 'failure',
  error: new SluiceError(code, 'failed'),
});
const FAILED = failed();

/** A breaker with a clock to move, and what became of it. */
class Bench {
  readonly clock = {
    nowMs: 0,
    now(): number {
      return this.nowMs;
    },
  };
  readonly changes: BreakerChange[] = [];
  readonly breaker: CircuitBreaker;

  constructor(options: CircuitBreakerOptions = {}) {
    this.breaker = new CircuitBreaker(options, this.clock);
  }

  get state(): string {
    return this.breaker.snapshot().state;
  }

  /** The ticket, or how long to wait. */
  ask(): BreakerTicket | number {
    const decision = this.breaker.ask();
    this.changes.push(...decision.changes);
    return decision.kind === 'pass' ? decision.ticket : decision.retryAfterMs;
  }

  pass(): BreakerTicket {
    const answer = this.ask();
    if (typeof answer === 'number') throw new Error(`refused for ${answer} ms`);
    return answer;
  }

  settle(ticket: BreakerTicket, outcome: Outcome): void {
    this.changes.push(...this.breaker.settle(ticket, outcome));
  }

  call(outcome: Outcome, times = 1): void {
    for (let n = 0; n < times; n++) this.settle(this.pass(), outcome);
  }

  /** How many of so many calls at once are let through. */
  passed(times: number): BreakerTicket[] {
    return Array.from({ length: times }, () => this.ask()).filter((answer) => typeof answer !== 'number');
  }
}

/** Opens at the first failure and closes without a ramp. */
const brittle = { consecutiveFailures: 1, openMs: 50, halfOpenMaxProbes: 1, rampMs: 0 };

describe('CircuitBreaker', () => {
  describe('while closed', () => {
    it('opens after as many failures in a row as it was told', () => {
      const bench = new Bench({ consecutiveFailures: 3 });
      bench.call(FAILED, 2);
      expect(bench.state).to.equal('closed');

      bench.call(FAILED);
      expect(bench.state).to.equal('open');
      expect(bench.changes).to.deep.equal([{ from: 'closed', to: 'open', reason: 'consecutive_failures' }]);
    });

    it('opens after 5 by default', () => {
      const bench = new Bench();
      bench.call(FAILED, 4);
      expect(bench.state).to.equal('closed');
      bench.call(FAILED);
      expect(bench.state).to.equal('open');
    });

    it('starts counting again after a success', () => {
      const bench = new Bench({ consecutiveFailures: 2, errorRatio: Infinity });
      for (let n = 0; n < 10; n++) {
        bench.call(FAILED);
        bench.call(SUCCESS);
      }
      expect(bench.state).to.equal('closed');
    });

    it('does not take failures further apart than the window for a row', () => {
      const bench = new Bench({ consecutiveFailures: 2, windowMs: 1000 });
      bench.call(FAILED);
      bench.clock.nowMs += 1001;
      expect(bench.breaker.snapshot().consecutiveFailures).to.equal(0);
      bench.call(FAILED);
      expect(bench.state).to.equal('closed');

      bench.clock.nowMs += 1000;
      bench.call(FAILED);
      expect(bench.state).to.equal('open');
    });

    it('opens when the error ratio is reached', () => {
      const bench = new Bench({ consecutiveFailures: Infinity, errorRatio: 0.5, minCalls: 4 });
      bench.call(SUCCESS, 2);
      bench.call(FAILED);
      expect(bench.state).to.equal('closed');

      bench.call(FAILED);
      expect(bench.changes).to.deep.equal([{ from: 'closed', to: 'open', reason: 'error_ratio' }]);
    });

    it('stays closed below the ratio, however many calls there were', () => {
      const bench = new Bench({ consecutiveFailures: Infinity, errorRatio: 0.5, minCalls: 4 });
      bench.call(SUCCESS, 3);
      bench.call(FAILED, 2);
      expect(bench.state).to.equal('closed');
      bench.call(FAILED);
      expect(bench.state).to.equal('open');
      expect(bench.breaker.ask()).to.deep.equal({ kind: 'refused', retryAfterMs: 15_000, changes: [] });
    });

    it('does not take one failure of one call for a ratio', () => {
      const bench = new Bench({ errorRatio: 0.5, minCalls: 5 });
      bench.call(FAILED);
      expect(bench.state).to.equal('closed');
    });

    it('counts a ratio over the window only', () => {
      const bench = new Bench({ consecutiveFailures: Infinity, errorRatio: 0.5, minCalls: 2, windowMs: 1000 });
      bench.call(SUCCESS, 100);
      bench.clock.nowMs += 1000;
      bench.call(FAILED, 2);

      expect(bench.state).to.equal('open');
    });

    it('has forgotten everything after an idle hour', () => {
      const bench = new Bench({ consecutiveFailures: 1000, minCalls: 101 });
      bench.call(FAILED, 100);
      bench.clock.nowMs += 3_600_000;
      bench.call(FAILED);

      expect(bench.breaker.snapshot()).to.deep.equal({
        state: 'closed',
        retryAfterMs: 0,
        consecutiveFailures: 1,
        calls: 1,
        failures: 1,
      });
    });

    const counted: ErrorCode[] = [
      'overloaded',
      'server_error',
      'connection',
      'timeout',
      'stream_idle',
      'stream_truncated',
      'upstream_body_invalid',
    ];
    for (const code of counted) {
      it(`counts ${code}`, () => {
        const bench = new Bench({ consecutiveFailures: 1 });
        bench.call(failed(code));
        expect(bench.state).to.equal('open');
      });
    }

    const neutral: ErrorCode[] = [
      'rate_limited',
      'quota_exhausted',
      'request_too_large',
      'context_too_long',
      'content_filtered',
      'bad_request',
      'auth',
      'not_found',
      'conflict',
      'queue_full',
      'timeout_deadline',
      'circuit_open',
    ];
    for (const code of neutral) {
      it(`does not count ${code}`, () => {
        const bench = new Bench({ consecutiveFailures: 1, errorRatio: 0.1, minCalls: 1 });
        bench.call(failed(code), 20);
        expect(bench.breaker.snapshot()).to.include({ state: 'closed', calls: 0, consecutiveFailures: 0 });
      });
    }

    it('does not count what was dropped', () => {
      const bench = new Bench({ consecutiveFailures: 1 });
      bench.call(DROPPED, 5);
      bench.call(DROPPED_UNSENT, 5);
      expect(bench.breaker.snapshot()).to.include({ state: 'closed', calls: 0 });
    });

    it('counts rate_limited, and no other matter of quota, where it was told to', () => {
      const bench = new Bench({ consecutiveFailures: 1, countRateLimited: true });
      bench.call(failed('quota_exhausted'));
      expect(bench.state).to.equal('closed');
      bench.call(failed('rate_limited'));
      expect(bench.state).to.equal('open');
    });

    it('does not let a neutral outcome break a row of failures', () => {
      const bench = new Bench({ consecutiveFailures: 2 });
      bench.call(FAILED);
      bench.call(failed('bad_request'));
      bench.call(FAILED);
      expect(bench.state).to.equal('open');
    });

    it('counts a call only once', () => {
      const bench = new Bench({ consecutiveFailures: 2 });
      const ticket = bench.pass();
      bench.settle(ticket, FAILED);
      bench.settle(ticket, FAILED);
      expect(bench.state).to.equal('closed');
    });
  });

  describe('while open', () => {
    it('refuses, with the time that is left', () => {
      const bench = new Bench({ ...brittle, openMs: 50 });
      bench.call(FAILED);
      bench.clock.nowMs = 10.5;

      expect(bench.ask()).to.equal(40);
      expect(bench.breaker.snapshot()).to.include({ state: 'open', retryAfterMs: 39.5 });
    });

    it('is not moved by the results of calls that started before', () => {
      const bench = new Bench({ ...brittle, openMs: 50 });
      const [early, late] = [bench.pass(), bench.pass()];
      bench.call(FAILED);
      bench.clock.nowMs = 40;
      bench.settle(early, FAILED);
      bench.settle(late, SUCCESS);

      expect(bench.breaker.snapshot()).to.include({ state: 'open', retryAfterMs: 10 });
    });

    it('lets the first call after the open time probe', () => {
      const bench = new Bench(brittle);
      bench.call(FAILED);
      bench.clock.nowMs = 49;
      expect(bench.ask()).to.equal(1);

      bench.clock.nowMs = 50;
      bench.pass();
      expect(bench.state).to.equal('half_open');
    });

    const opensAgain = (options: CircuitBreakerOptions, times: number): (number | BreakerTicket)[] => {
      const bench = new Bench({ ...brittle, openMs: 50, ...options });
      bench.call(FAILED);
      return Array.from({ length: times }, () => {
        const waitMs = bench.ask();
        bench.clock.nowMs += Number(waitMs);
        bench.call(FAILED);
        return waitMs;
      });
    };

    it('stays open longer each time, up to the cap', () => {
      const options = { steadyProbes: 0, openFactor: 3, openCapMs: 400 };
      expect(opensAgain(options, 4)).to.deep.equal([50, 150, 400, 400]);
    });

    it('comes back at one pace for the first few probes that fail', () => {
      expect(opensAgain({}, 7)).to.deep.equal([50, 50, 50, 50, 100, 200, 400]);
      expect(opensAgain({ steadyProbes: 1 }, 4)).to.deep.equal([50, 50, 100, 200]);
    });

    it('does not overflow after thousands of openings', () => {
      const bench = new Bench({ ...brittle, openCapMs: 100 });
      bench.call(FAILED);
      for (let n = 0; n < 5000; n++) {
        bench.clock.nowMs += 100;
        bench.call(FAILED);
      }
      expect(bench.ask()).to.equal(100);
    });

    it('goes on growing when it opens soon after it has closed, and starts over after a stable time', () => {
      const bench = new Bench({ ...brittle, openMs: 50, windowMs: 1000 });
      bench.call(FAILED);
      bench.clock.nowMs += 50;
      bench.call(SUCCESS);
      bench.clock.nowMs += 999;
      bench.call(FAILED);
      expect(bench.ask()).to.equal(100);

      bench.clock.nowMs += 100;
      bench.call(SUCCESS);
      bench.clock.nowMs += 1000;
      bench.call(FAILED);
      expect(bench.ask()).to.equal(50);
    });
  });

  describe('while half-open', () => {
    const halfOpen = (options: CircuitBreakerOptions = {}): Bench => {
      const bench = new Bench({ ...brittle, ...options });
      bench.call(FAILED);
      bench.clock.nowMs += bench.breaker.snapshot().retryAfterMs;
      bench.changes.length = 0;
      return bench;
    };

    it('lets one of twenty at once probe where one is allowed, and opens again when that fails', () => {
      const bench = halfOpen();
      const probes = bench.passed(20);
      expect(probes).to.have.length(1);

      bench.settle(probes[0]!, FAILED);
      expect(bench.changes).to.deep.equal([
        { from: 'open', to: 'half_open', reason: 'open_time_over' },
        { from: 'half_open', to: 'open', reason: 'probe_failed' },
      ]);
    });

    it('lets the share of the traffic probe that it was told, and at least one', () => {
      expect(halfOpen({ halfOpenMaxProbes: 100 }).passed(100)).to.have.length(10);
      expect(halfOpen({ halfOpenMaxProbes: 100, halfOpenShare: 0.25 }).passed(100)).to.have.length(25);
      expect(halfOpen({ halfOpenMaxProbes: 100, halfOpenShare: 1 }).passed(100)).to.have.length(100);
      expect(halfOpen({ halfOpenMaxProbes: 100, halfOpenShare: 0.001 }).passed(100)).to.have.length(1);
    });

    it('lets no more probe at one time than may', () => {
      expect(halfOpen({ halfOpenShare: 1, halfOpenMaxProbes: 3 }).passed(100)).to.have.length(3);
    });

    it('does not save up what it refused', () => {
      const bench = halfOpen({ halfOpenShare: 0.5, halfOpenMaxProbes: 8 });
      const probes = bench.passed(1000);
      for (const probe of probes) bench.breaker.firstContent(probe);

      expect(bench.passed(8)).to.have.length(5);
    });

    it('closes when a probe succeeds', () => {
      const bench = halfOpen();
      bench.call(SUCCESS);

      expect(bench.changes[1]).to.deep.equal({ from: 'half_open', to: 'closed', reason: 'probe_succeeded' });
      expect(bench.passed(100)).to.have.length(100);
    });

    it('starts with an empty count when it closes', () => {
      const bench = halfOpen({ consecutiveFailures: 2, errorRatio: 0.5, minCalls: 2 });
      bench.call(FAILED);
      bench.clock.nowMs += 50;
      bench.call(SUCCESS);

      expect(bench.breaker.snapshot()).to.include({ calls: 0, failures: 0, consecutiveFailures: 0 });
    });

    for (const [name, outcome] of [
      ['cancelled', DROPPED],
      ['refused by something above', DROPPED_UNSENT],
      ['answered with 400', failed('bad_request')],
      ['answered with 429', failed('rate_limited')],
    ] as const) {
      it(`gives the place of a probe back that was ${name}, and stays`, () => {
        const bench = halfOpen();
        bench.call(outcome);
        expect(bench.state).to.equal('half_open');

        bench.call(SUCCESS);
        expect(bench.state).to.equal('closed');
      });
    }

    it('gives one place back for one neutral probe while others are out', () => {
      const bench = halfOpen({ halfOpenShare: 0.01, halfOpenMaxProbes: 5 });
      const [first] = bench.passed(1);
      const others = bench.passed(200);
      expect(others).to.have.length(2);

      bench.settle(first!, DROPPED);
      expect(bench.passed(2)).to.have.length(1);
    });

    it('does not take a probe for stuck that has given its place back', () => {
      const bench = halfOpen({ halfOpenMaxMs: 200 });
      bench.call(DROPPED);
      expect(bench.breaker.stuckAtMs).to.be.undefined;
      bench.clock.nowMs += 200;

      bench.call(SUCCESS);
      expect(bench.state).to.equal('closed');
    });

    it('ignores the result of a call that started while it was closed', () => {
      const bench = new Bench(brittle);
      const [early, late] = [bench.pass(), bench.pass()];
      bench.call(FAILED);
      bench.clock.nowMs = 50;
      const probe = bench.pass();
      bench.settle(early, FAILED);
      bench.settle(late, SUCCESS);
      expect(bench.state).to.equal('half_open');
      expect(bench.ask()).to.be.a('number');

      bench.settle(probe, SUCCESS);
      expect(bench.state).to.equal('closed');
    });

    it('ignores a probe that ends after another has decided', () => {
      const bench = halfOpen({ halfOpenShare: 1, halfOpenMaxProbes: 2 });
      const [first, second] = bench.passed(2);
      bench.settle(first!, SUCCESS);
      bench.settle(second!, FAILED);

      expect(bench.breaker.snapshot()).to.include({ state: 'closed', consecutiveFailures: 0 });
    });

    it('opens again, for longer, when a probe is stuck', () => {
      const bench = halfOpen({ halfOpenMaxMs: 200 });
      const probe = bench.pass();
      expect(bench.breaker.stuckAtMs).to.equal(250);
      bench.clock.nowMs = 249;
      expect(bench.breaker.advance()).to.deep.equal([]);

      bench.clock.nowMs = 250;
      expect(bench.breaker.advance()).to.deep.equal([{ from: 'half_open', to: 'open', reason: 'probe_stuck' }]);
      expect(bench.ask()).to.equal(100);
      bench.settle(probe, SUCCESS);
      expect(bench.state).to.equal('open');
    });

    it('reckons that from when the probe got stuck, however late it is noticed', () => {
      const bench = halfOpen({ halfOpenMaxMs: 200 });
      bench.pass();
      bench.clock.nowMs = 3_600_000;
      bench.changes.length = 0;
      bench.pass();

      expect(bench.changes.map(({ to }) => to)).to.deep.equal(['open', 'half_open']);
    });

    it('does not take a probe for stuck that has content, and lets another take its place', () => {
      const bench = halfOpen({ halfOpenMaxMs: 200, halfOpenShare: 1 });
      const probe = bench.pass();
      bench.breaker.firstContent(probe);
      bench.clock.nowMs += 60_000;
      expect(bench.state).to.equal('half_open');
      const other = bench.pass();
      expect(bench.ask()).to.be.a('number');

      bench.settle(other, DROPPED);
      bench.settle(probe, SUCCESS);
      expect(bench.state).to.equal('closed');
    });

    it('opens when a probe fails after its first content', () => {
      const bench = halfOpen();
      const probe = bench.pass();
      bench.breaker.firstContent(probe);
      bench.settle(probe, failed('stream_truncated'));

      expect(bench.state).to.equal('open');
    });

    it('says when to come again: when the probe would be stuck, at the latest after the open time', () => {
      const soon = halfOpen({ openMs: 1000, halfOpenMaxMs: 200 });
      soon.pass();
      expect(soon.ask()).to.equal(200);

      const late = halfOpen({ openMs: 50, halfOpenMaxMs: 200 });
      late.pass();
      expect(late.ask()).to.equal(50);
    });
  });

  describe('while ramping', () => {
    const ramping = (options: CircuitBreakerOptions = {}): Bench => {
      const bench = new Bench({ ...brittle, rampMs: 1000, halfOpenShare: 0.1, ...options });
      while (bench.state === 'closed') bench.call(FAILED);
      bench.clock.nowMs += bench.breaker.snapshot().retryAfterMs;
      bench.call(SUCCESS);
      bench.changes.length = 0;
      return bench;
    };

    it('lets a share through that grows from that of the probes to all', () => {
      const bench = ramping();
      expect(bench.state).to.equal('ramping');
      expect(bench.passed(100)).to.have.length(10);

      bench.clock.nowMs += 500;
      expect(bench.passed(100)).to.have.length(55);
      bench.clock.nowMs += 400;
      expect(bench.passed(100)).to.have.length(91);
    });

    it('starts with nothing saved up while half-open', () => {
      const bench = new Bench({ ...brittle, rampMs: 1000, halfOpenShare: 0.1, halfOpenMaxProbes: 100 });
      bench.call(FAILED);
      bench.clock.nowMs += 50;
      const probes = bench.passed(30);
      expect(probes).to.have.length(3);
      bench.settle(probes[0]!, DROPPED);
      bench.settle(probes[1]!, DROPPED);
      bench.settle(probes[2]!, SUCCESS);

      expect(bench.passed(100)).to.have.length(10);
    });

    it('lets calls through one after the other without refusing any', () => {
      const bench = ramping();
      bench.call(SUCCESS, 20);
    });

    it('is closed when the time is over', () => {
      const bench = ramping();
      bench.clock.nowMs += 999;
      expect(bench.state).to.equal('ramping');
      bench.clock.nowMs += 1;
      expect(bench.state).to.equal('closed');

      expect(bench.passed(100)).to.have.length(100);
      expect(bench.changes).to.deep.equal([{ from: 'ramping', to: 'closed', reason: 'ramp_over' }]);
    });

    it('refuses until the end of the ramp', () => {
      const bench = ramping();
      bench.clock.nowMs += 200;
      bench.pass();

      expect(bench.ask()).to.equal(800);
    });

    it('opens on failures as when closed, and stays open longer', () => {
      const bench = ramping({ consecutiveFailures: 2, openMs: 50 });
      bench.call(FAILED);
      expect(bench.state).to.equal('ramping');

      bench.call(FAILED);
      expect(bench.state).to.equal('open');
      expect(bench.ask()).to.equal(100);
    });

    it('counts a call of the ramp that ends after it', () => {
      const bench = ramping();
      const ticket = bench.pass();
      bench.clock.nowMs += 1000;
      bench.settle(ticket, FAILED);

      expect(bench.changes.map(({ to }) => to)).to.deep.equal(['closed', 'open']);
    });
  });

  describe('with other rules', () => {
    it('keeps its state and what it has counted, in a window of another length too', () => {
      for (const windowMs of [1000, 1500]) {
        const bench = new Bench({ consecutiveFailures: 5, windowMs: 1000 });
        bench.call(FAILED, 2);
        bench.call(SUCCESS);
        bench.call(FAILED);

        bench.breaker.reload({ consecutiveFailures: 2, windowMs });
        expect(bench.breaker.snapshot()).to.include({ state: 'closed', calls: 4, failures: 3, consecutiveFailures: 1 });
        bench.clock.nowMs = 800;
        expect(bench.breaker.snapshot().calls).to.equal(4);
        bench.clock.nowMs = 1200;
        expect(bench.breaker.snapshot().calls).to.equal(windowMs === 1000 ? 0 : 4);
        bench.call(FAILED, windowMs === 1000 ? 2 : 1);
        expect(bench.state).to.equal('open');
      }
    });

    it('has changed nothing where they are wrong', () => {
      const bench = new Bench(brittle);
      expect(() => bench.breaker.reload({ openMs: 0 })).to.throw(SluiceError);
      bench.call(FAILED);
      expect(bench.ask()).to.equal(50);
    });
  });

  describe('going on from where another one stands', () => {
    const goOn = (from: Bench, options = brittle): Bench => {
      const next = new Bench(options);
      next.clock.nowMs = 1_000_000;
      next.breaker.resume(from.breaker.course);
      return next;
    };

    it('is open for the time that is left', () => {
      const bench = new Bench(brittle);
      bench.call(FAILED);
      bench.clock.nowMs = 20;
      expect(bench.breaker.course).to.deep.equal({ state: 'open', leftMs: 30, growths: 0, failedProbes: 0 });

      const next = goOn(bench);
      expect(next.breaker.state).to.equal('open');
      expect(next.ask()).to.equal(30);
      next.clock.nowMs += 29;
      expect(next.ask()).to.equal(1);
      next.clock.nowMs += 1;
      next.call(FAILED);
      expect(next.breaker.course.failedProbes).to.equal(1);
    });

    it('has as much left of its ramp, and none of what is over', () => {
      const bench = new Bench({ ...brittle, rampMs: 100 });
      bench.call(FAILED);
      bench.clock.nowMs = 50;
      bench.call(SUCCESS);
      bench.clock.nowMs = 80;
      expect(bench.breaker.course).to.include({ state: 'ramping', leftMs: 70 });

      const next = goOn(bench, { ...brittle, rampMs: 100 });
      next.clock.nowMs += 69;
      expect(next.state).to.equal('ramping');
      next.clock.nowMs += 1;
      expect(next.state).to.equal('closed');
      bench.clock.nowMs = 500;
      expect(bench.breaker.course.leftMs).to.equal(0);
    });

    it('is closed, or half-open, without a time', () => {
      const bench = new Bench(brittle);
      bench.clock.nowMs = 10;
      expect(bench.breaker.course).to.deep.equal({ state: 'closed', leftMs: 0, growths: 0, failedProbes: 0 });
      expect(goOn(bench).passed(3)).to.have.length(3);

      bench.call(FAILED);
      bench.clock.nowMs += 50;
      bench.pass();
      expect(bench.breaker.course).to.include({ state: 'half_open', leftMs: 0 });
      expect(goOn(bench).passed(3)).to.have.length(1);
    });

    it('grows its open time from where it was', () => {
      const bench = new Bench({ ...brittle, steadyProbes: 1 } as typeof brittle);
      bench.call(FAILED);
      for (let n = 0; n < 3; n++) {
        bench.clock.nowMs += 1000;
        bench.call(FAILED);
      }
      const { growths, failedProbes } = bench.breaker.course;
      expect({ growths, failedProbes }).to.deep.equal({ growths: 2, failedProbes: 3 });

      const next = goOn(bench, { ...brittle, steadyProbes: 1 } as typeof brittle);
      next.clock.nowMs += 1000;
      next.call(FAILED);
      expect(next.ask()).to.equal(50 * 2 ** 3);
    });

    it('ignores what was under way before', () => {
      const bench = new Bench(brittle);
      const old = bench.pass();
      bench.breaker.resume({ state: 'closed', leftMs: 0, growths: 0, failedProbes: 0 });
      bench.settle(old, FAILED);
      expect(bench.state).to.equal('closed');
    });
  });

  describe('told of a call that another one has let pass', () => {
    it('counts it as its own', () => {
      const bench = new Bench(brittle);
      bench.settle(bench.breaker.join(), FAILED);
      expect(bench.state).to.equal('open');
    });

    it('takes it for a probe while half-open, and for one of before where it came while open', () => {
      const bench = new Bench(brittle);
      bench.call(FAILED);
      const early = bench.breaker.join();
      bench.clock.nowMs = 50;
      const probe = bench.pass();
      bench.settle(early, SUCCESS);
      expect(bench.state).to.equal('half_open');

      bench.breaker.join();
      bench.settle(probe, DROPPED);
      expect(bench.passed(2)).to.have.length(0);
      expect(bench.breaker.stuckAtMs).to.equal(30_050);
    });
  });

  describe('asked how it is', () => {
    it('names whole milliseconds until it may probe, and none while it is not open', () => {
      const bench = new Bench(brittle);
      expect(bench.breaker.openMs).to.equal(0);
      bench.call(FAILED);
      bench.clock.nowMs = 20.5;
      expect(bench.breaker.openMs).to.equal(30);
      bench.clock.nowMs = 60;
      expect(bench.breaker.openMs).to.equal(0);
      expect(bench.breaker.state).to.equal('open');
    });

    it('is at rest where nothing is known that a new one would not know', () => {
      const bench = new Bench({ ...brittle, consecutiveFailures: 2, windowMs: 100 } as typeof brittle);
      expect(bench.breaker.atRest).to.equal(true);
      const call = bench.pass();
      expect(bench.breaker.atRest).to.equal(false);
      bench.settle(call, FAILED);
      expect(bench.breaker.atRest).to.equal(false);
      bench.call(SUCCESS);
      expect(bench.breaker.atRest).to.equal(false);
      bench.clock.nowMs = 100;
      expect(bench.breaker.atRest).to.equal(true);

      bench.call(FAILED, 2);
      bench.clock.nowMs = 1000;
      expect(bench.breaker.atRest).to.equal(false);
      bench.call(SUCCESS);
      bench.clock.nowMs = 1099;
      expect([bench.state, bench.breaker.atRest]).to.deep.equal(['closed', false]);
      bench.clock.nowMs = 1100;
      expect(bench.breaker.atRest).to.equal(true);
    });

    it('is not at rest for a failure at the edge of its window, by whichever count it is there', () => {
      const bench = new Bench({ ...brittle, consecutiveFailures: 2, windowMs: 105 } as typeof brittle);
      bench.clock.nowMs = 4;
      bench.call(FAILED);
      bench.clock.nowMs = 106;
      expect(bench.breaker.snapshot()).to.include({ failures: 0, consecutiveFailures: 1 });
      expect(bench.breaker.atRest).to.equal(false);
      bench.clock.nowMs = 109;
      expect(bench.breaker.snapshot().consecutiveFailures).to.equal(1);
      bench.clock.nowMs = 110;
      expect(bench.breaker.atRest).to.equal(true);
    });
  });

  describe('checks its options', () => {
    const wrong: CircuitBreakerOptions[] = [
      { consecutiveFailures: 0 },
      { consecutiveFailures: 1.5 },
      { consecutiveFailures: NaN },
      { errorRatio: 0 },
      { errorRatio: 1.1 },
      { errorRatio: NaN },
      { windowMs: 0 },
      { windowMs: Infinity },
      { minCalls: 0 },
      { openMs: 0 },
      { openMs: NaN },
      { openFactor: 0.5 },
      { steadyProbes: -1 },
      { steadyProbes: 0.5 },
      { openFactor: Infinity },
      { openCapMs: 0 },
      { openCapMs: 1000, openMs: 2000 },
      { openCapMs: Infinity },
      { halfOpenShare: 0 },
      { halfOpenShare: 2 },
      { halfOpenShare: NaN },
      { halfOpenMaxProbes: 0 },
      { halfOpenMaxProbes: NaN },
      { halfOpenMaxMs: 0 },
      { halfOpenMaxMs: Infinity },
      { rampMs: -1 },
      { rampMs: NaN },
      { errorRatio: [0.5] as unknown as number },
      { halfOpenShare: [0.5] as unknown as number },
    ];
    for (const options of wrong) {
      it(`refuses ${Object.entries(options).join(', ')}`, () => {
        expect(() => new Bench(options))
          .to.throw(SluiceError)
          .with.property('message')
          .that.matches(new RegExp(`^${Object.keys(options)[0]} must be .{5,}, got `));
      });
    }

    it('takes a longer open time than the default cap for the cap', () => {
      const bench = new Bench({ ...brittle, openMs: 500_000 });
      bench.call(FAILED);
      expect(bench.ask()).to.equal(500_000);
    });
  });

  describe('for every history', () => {
    const small = { ...brittle, consecutiveFailures: 2, halfOpenShare: 0.5, halfOpenMaxProbes: 2, rampMs: 30 };

    const untilHalfOpen: readonly Step[] = ['ask', 'fail', 'ask', 'fail', 'wait 100', 'ask', 'ask'];
    for (const [name, before] of [
      ['closed', []],
      ['half-open', untilHalfOpen],
      ['ramping', [...untilHalfOpen, 'succeed', 'ask']],
    ] as const) {
      it(`of four steps from ${name}, all of them, keeps to its edges and bounds`, () => {
        const explore = (steps: readonly Step[]): void => {
          if (steps.length === 4) new Walk({ ...small, halfOpenMaxMs: 40 }).take([...before, ...steps]);
          else for (const step of STEPS) explore([...steps, step]);
        };
        explore([]);
      });
    }

    it('keeps to its edges and bounds, and lets someone probe in the end', () => {
      fc.assert(
        fc.property(
          fc.record({
            consecutiveFailures: fc.integer({ min: 1, max: 3 }),
            errorRatio: fc.constantFrom(0.3, 1, Infinity),
            minCalls: fc.integer({ min: 1, max: 4 }),
            windowMs: fc.constantFrom(20, 200),
            openMs: fc.integer({ min: 1, max: 60 }),
            openFactor: fc.constantFrom(1, 2),
            steadyProbes: fc.constantFrom(0, 1),
            openCapMs: fc.constant(200),
            halfOpenShare: fc.constantFrom(0.1, 0.5, 1),
            halfOpenMaxProbes: fc.integer({ min: 1, max: 3 }),
            halfOpenMaxMs: fc.integer({ min: 1, max: 60 }),
            rampMs: fc.constantFrom(0, 30),
          }),
          fc.array(fc.constantFrom(...STEPS), { maxLength: 80 }),
          (options, steps) => new Walk(options).take(steps),
        ),
        { numRuns: 100 },
      );
    });
  });
});

const STEPS = ['ask', 'succeed', 'fail', 'drop', 'content', 'stand still', 'wait 10', 'wait 100'] as const;
type Step = (typeof STEPS)[number];

const EDGES = [
  'closed open',
  'open half_open',
  'half_open open',
  'half_open closed',
  'half_open ramping',
  'ramping open',
  'ramping closed',
];

/** A walk through a breaker's states that checks what must always hold. */
class Walk {
  readonly #bench: Bench;
  readonly #options: CircuitBreakerOptions;
  readonly #out: BreakerTicket[] = [];
  readonly #withContent = new Set<BreakerTicket>();
  #seen = 0;
  #state = 'closed';

  constructor(options: CircuitBreakerOptions) {
    this.#options = options;
    this.#bench = new Bench(options);
  }

  take(steps: readonly Step[]): void {
    for (const step of steps) {
      this.#step(step);
      this.#check();
    }
    this.#mustLetSomeoneThrough();
  }

  #step(step: Step): void {
    const { clock, breaker } = this.#bench;
    const [oldest] = this.#out;
    if (step === 'ask') this.#ask();
    else if (step === 'wait 10') clock.nowMs += 10;
    else if (step === 'wait 100') clock.nowMs += 100;
    else if (step === 'stand still' || oldest === undefined) this.#bench.changes.push(...breaker.advance());
    else if (step === 'content') {
      breaker.firstContent(oldest);
      this.#withContent.add(oldest);
    } else {
      this.#out.shift();
      const before = this.#bench.state;
      this.#bench.settle(oldest, { succeed: SUCCESS, fail: FAILED, drop: DROPPED }[step]);
      // Unless time itself moved it: a ramp that was over, a probe that was stuck.
      if (step === 'drop' && this.#bench.changes.at(-1)?.reason !== 'probe_stuck') {
        must(this.#bench.state === before, 'a neutral outcome changed the state');
      }
    }
  }

  #ask(): void {
    const answer = this.#bench.ask();
    if (typeof answer !== 'number') this.#out.push(answer);
    else must(answer >= 1 && answer < Infinity, `refused for ${answer} ms`);
  }

  #check(): void {
    const { changes, state, breaker } = this.#bench;
    for (const { from, to } of changes.slice(this.#seen)) {
      must(from === this.#state && EDGES.includes(`${from} ${to}`), `${this.#state}: from ${from} to ${to}`);
      this.#state = to;
    }
    this.#seen = changes.length;
    const epoch = Math.max(0, ...this.#out.map((ticket) => ticket.epoch));
    if (state === 'half_open') {
      const probes = this.#out.filter((ticket) => ticket.epoch === epoch && !this.#withContent.has(ticket));
      must(probes.length <= this.#options.halfOpenMaxProbes!, `${probes.length} probes at once`);
    }
    const { retryAfterMs, calls, failures } = breaker.snapshot();
    must(retryAfterMs >= 0 && retryAfterMs <= 200, `open for ${retryAfterMs} ms`);
    must(failures <= calls, `${failures} failures in ${calls} calls`);
  }

  /** Whoever waits as long as the refusal says gets through in the end, whatever the calls before do. */
  #mustLetSomeoneThrough(): void {
    for (let n = 0; n < 50; n++) {
      const answer = this.#bench.ask();
      if (typeof answer !== 'number') return;
      this.#bench.clock.nowMs += answer;
    }
    must(false, `refused 50 times while ${this.#bench.state}`);
  }
}

/** Called too often for chai. */
function must(holds: boolean, otherwise: string): void {
  if (!holds) throw new Error(otherwise);
}
