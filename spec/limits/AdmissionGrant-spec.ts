import { expect } from 'chai';
import { DROPPED_UNSENT, SUCCESS } from '../../lib/core/outcome.ts';
import type { RateLimitHints } from '../../lib/core/hints.ts';
import { revoked } from '../../lib/limits/AdmissionGrant.ts';
import type { AdmissionOptions } from '../../lib/limits/AdmissionOptions.ts';
import { AdmissionBench, failure, left, usage } from '../helpers/admissionBench.ts';
import { hintsOf } from '../helpers/hintsOf.ts';

const both: AdmissionOptions = {
  models: { m: { deployments: [{ quota: { requestsPerMinute: 60, burstRequests: 10, tokensPerMinute: 6000 } }] } },
};
const level = (bench: AdmissionBench, unit: 'requests' | 'tokens'): number | undefined =>
  bench.target().layers[0]?.[unit]?.level(bench.nowMs);

describe('AdmissionGrant', () => {
  describe('as an attempt', () => {
    it('is unsent until it is dispatched, once', () => {
      const bench = new AdmissionBench(both);
      bench.join({ tokens: 100 });
      const { grant } = bench.granted();
      expect([...bench.target().unsent]).to.deep.equal([grant]);
      grant.dispatched(0);
      expect([...bench.target().unsent]).to.deep.equal([]);
      grant.dispatched(30);
      expect(bench.target().learned.sent(30).order, 'it was told once').to.equal(2);
      bench.nowMs = 30;
      grant.observe(30, hintsOf({ requests: left(5) }));
      expect(level(bench, 'requests')).to.be.closeTo(5, 0.1);
      expect(grant.reservedTokens).to.equal(100);
    });

    it('holds what it took until it was handed over, where that follows', () => {
      const bench = new AdmissionBench(both);
      bench.join();
      const { grant } = bench.granted();
      grant.dispatched(0, true);
      bench.nowMs = 5000;
      expect(level(bench, 'requests')).to.equal(9);
      grant.sent(5000);
      bench.nowMs = 5500;
      expect(level(bench, 'requests')).to.be.closeTo(9.5, 1e-9);
    });

    it('knows why the provider asks for a wait', () => {
      const bench = new AdmissionBench();
      for (const [status, reason] of [
        [429, 'rate_limited'],
        [500, 'rate_limited'],
        [503, 'overloaded'],
        [529, 'overloaded'],
      ] as const) {
        const grant = bench.take();
        expect(grant.reason).to.equal('rate_limited');
        grant.responded(0, status);
        expect(grant.reason).to.equal(reason);
      }
    });

    it('begins a pause for all, and none once it has ended', () => {
      const bench = new AdmissionBench();
      const [one, other] = [bench.take(), bench.take()];
      expect(one.observe(0, hintsOf({ retryAfterMs: 400 }))).to.equal(400);
      bench.end(other, SUCCESS);
      const told = hintsOf({ retryAfterMs: 900, requests: { ...left(undefined), limit: 90 } });
      expect(other.observe(0, told)).to.equal(0);
      expect(bench.target().snapshotLayers(0)[0]?.requests).to.equal(undefined);
      other.responded(0, 503);
      expect(other.reason).to.equal('rate_limited');
      other.dispatched(0);
      other.sent(0);
      expect(bench.target().cooldown.waitMs(0)).to.equal(400);
    });

    it('frees its slot at the close, once, and only after its end', () => {
      const bench = new AdmissionBench();
      const grant = bench.take();
      expect([grant.close(), bench.target().inFlight]).to.deep.equal([false, 1]);
      expect(grant.end(0, SUCCESS)).to.not.equal(undefined);
      expect(bench.target().inFlight).to.equal(1);
      expect([grant.close(), bench.target().inFlight]).to.deep.equal([true, 0]);
      expect([grant.close(), bench.target().inFlight]).to.deep.equal([false, 0]);
      expect(grant.end(0, SUCCESS)).to.equal(undefined);
    });

    it('is unsent no more once it has ended', () => {
      const bench = new AdmissionBench();
      bench.join();
      const { grant } = bench.granted();
      grant.end(0, DROPPED_UNSENT);
      grant.dispatched(0);
      expect(bench.target().unsent.size).to.equal(0);
      expect(bench.target().learned.sent(0).order, 'it was not sent').to.equal(1);
    });
  });

  it('lets the others follow the first one back with its answer', () => {
    const bench = new AdmissionBench({ models: { m: {} } });
    bench.target().cooldown.hint(0, 100);
    bench.nowMs = 100;
    const grant = bench.take();
    const waiting = bench.join();
    grant.responded(150, 200);
    bench.nowMs = 170;
    expect(bench.serve().granted).to.deep.equal([waiting]);
  });

  it('is no probe that could be stuck once it has content', () => {
    const breaker = { consecutiveFailures: 1, openMs: 10, halfOpenMaxMs: 30 };
    const bench = new AdmissionBench({ models: { m: { breaker } } });
    bench.end(bench.take(), failure('server_error', { status: 500 }));
    bench.nowMs = 10;
    const grant = bench.take();
    expect(bench.target().breaker.stuckAtMs).to.equal(40);
    grant.firstContent();
    expect(bench.target().breaker.stuckAtMs).to.equal(undefined);
  });

  describe('as its tokens', () => {
    for (const [settle, used, more] of [
      ['reserved', undefined, 0],
      ['reserved', 1500, 500],
      ['reserved', 300, 0],
      ['usage', 300, -700],
      ['usage', 1500, 500],
    ] as const) {
      it(`tells what ${used ?? 'no'} tokens are more than was reserved, where ${settle} counts`, () => {
        const bench = new AdmissionBench({ quota: { account: { tokensPerMinute: 6000, settle } } });
        const grant = bench.take({ tokens: 1000 });
        if (used !== undefined) grant.settle(0, usage(used));
        expect(grant.end(0, SUCCESS)?.moreTokens).to.equal(more);
      });
    }

    it('tells what came back of one that was not sent', () => {
      const bench = new AdmissionBench({ quota: { account: { tokensPerMinute: 6000 } } });
      bench.join({ tokens: 1000 });
      expect(bench.granted().grant.end(0, DROPPED_UNSENT)?.moreTokens).to.equal(-1000);
    });
  });

  describe('as what is learned', () => {
    const learned = (bench: AdmissionBench): number | undefined => {
      const shown = bench.target().snapshotLayers(bench.nowMs).at(-1);
      return shown?.requests?.perMinute;
    };
    /** Whether the rate of the deployment is another after a failure. */
    const learns = (
      code: 'rate_limited' | 'overloaded' | 'server_error',
      told?: RateLimitHints,
      sent = true,
    ): boolean => {
      const bench = new AdmissionBench();
      bench.join({ tokens: 100 });
      const { grant } = bench.granted();
      if (sent) grant.dispatched(0);
      if (told) grant.observe(0, told);
      bench.end(grant, failure(code, { status: 429 }));
      return learned(bench) !== undefined;
    };

    it('learns from rejections of what was sent, and from overloads that ask to slow down', () => {
      expect(learns('rate_limited')).to.equal(true);
      expect(learns('rate_limited', undefined, false)).to.equal(false);
      expect(learns('server_error')).to.equal(false);
      expect(learns('server_error', hintsOf({ slowDown: true }))).to.equal(false);
      expect(learns('overloaded')).to.equal(false);
      expect(learns('overloaded', hintsOf())).to.equal(false);
      expect(learns('overloaded', hintsOf({ slowDown: true }))).to.equal(true);
    });

    it('learns nothing of requests where there was room for one, and none for its tokens', () => {
      const told = (requests: number | undefined, tokens: number | undefined): boolean =>
        learns('rate_limited', hintsOf({ requests: left(requests), tokens: left(tokens) }));
      expect(told(1, 99)).to.equal(false);
      expect(told(0, 99)).to.equal(true);
      expect(told(0.9, 99)).to.equal(true);
      expect(told(1, 100)).to.equal(true);
      expect(told(undefined, 99)).to.equal(true);
      expect(told(1, undefined)).to.equal(true);
      expect(learns('rate_limited', hintsOf({ tokens: left(5) }))).to.equal(true);
      expect(learns('rate_limited', hintsOf({ requests: left(5) }))).to.equal(true);
    });

    it('takes a limit that the provider names', () => {
      const bench = new AdmissionBench();
      const grant = bench.take();
      grant.observe(0, hintsOf({ requests: { ...left(undefined), limit: 90 } }));
      expect(learned(bench)).to.equal(90);
    });

    it('makes nobody pause for a rejection that a rate follows from', () => {
      const bench = new AdmissionBench();
      bench.end(bench.take(), failure('rate_limited'));
      expect(bench.target().cooldown.waitMs(0)).to.equal(1000);
      bench.nowMs = 4000;
      bench.end(bench.take(), SUCCESS);
      bench.nowMs = 9000;
      const grant = bench.take();
      expect(bench.end(grant, failure('rate_limited'))?.settlement.cooldownMs).to.equal(0);
      expect(bench.target().cooldown.waitMs(9000)).to.equal(0);
    });

    it('counts one that did not arrive as not sent, unless there was an answer', () => {
      const bench = new AdmissionBench({ models: { m: {} } });
      const { learned: rate } = bench.target();
      const lost: number[] = [];
      rate.lost = ({ order }) => void lost.push(order);
      const [first, answered, other, unsent] = [bench.take(), bench.take(), bench.take(), bench.join()];
      expect(unsent.kind).to.equal('ticket');
      answered.responded(0, 200);
      bench.end(first, failure('connection'));
      bench.end(answered, failure('connection'));
      bench.end(other, failure('server_error'));
      bench.end(bench.granted().grant, failure('connection'));
      expect(lost).to.deep.equal([1]);
    });

    it('learns nothing where another rate has been configured since it was sent', () => {
      const bench = new AdmissionBench();
      const grant = bench.take();
      bench.machine.reload({ models: { m: { deployments: [{ quota: { requestsPerMinute: 600 } }] } } });
      expect(bench.end(grant, failure('rate_limited'))?.settlement.cooldownMs).to.equal(1000);
      expect(learned(bench)).to.equal(600);
    });

    it('leaves an account alone that has run out, for as long as was said', () => {
      for (const [fields, waitMs] of [
        [{ retryAfterMs: 700 }, 700],
        [{}, 60_000],
      ] as const) {
        const bench = new AdmissionBench();
        bench.nowMs = 100;
        bench.end(bench.take(), failure('quota_exhausted', fields));
        expect(bench.target().unavailableMs(100)).to.equal(waitMs);
      }
    });
  });

  it('is revoked with the others that are unsent as the breaker opens', () => {
    const bench = new AdmissionBench({ models: { m: { breaker: { consecutiveFailures: 1 } } } });
    const failing = bench.take();
    bench.join();
    bench.join();
    const unsent = [bench.granted().grant, bench.granted().grant];
    expect(bench.machine.end(bench.take(), SUCCESS)?.revoked).to.deep.equal([]);
    expect(bench.machine.end(failing, failure('server_error', { status: 500 }))?.revoked).to.deep.equal(unsent);
    expect(bench.target().unsent.size).to.equal(0);
    bench.target().unsent.add(failing);
    expect(revoked(bench.target(), [{ from: 'open', to: 'half_open', reason: 'timeout' as never }])).to.deep.equal([]);
    expect(bench.target().unsent.size).to.equal(1);
  });
});
