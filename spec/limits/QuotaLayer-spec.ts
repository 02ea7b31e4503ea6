import { expect } from 'chai';
import { SluiceError } from '../../lib/core/errors.ts';
import { SUCCESS } from '../../lib/core/outcome.ts';
import type { Outcome } from '../../lib/core/outcome.ts';
import { Cooldown } from '../../lib/limits/Cooldown.ts';
import { QuotaLayer } from '../../lib/limits/QuotaLayer.ts';
import type { LayerCost, LayerOptions } from '../../lib/limits/QuotaLayer.ts';
import { QuotaReservation } from '../../lib/limits/QuotaReservation.ts';
import { QuotaRoute } from '../../lib/limits/QuotaRoute.ts';
import type { Refund } from '../../lib/limits/refunds.ts';
import { left, usage } from '../helpers/admissionBench.ts';
import { hintsOf } from '../helpers/hintsOf.ts';

const BOTH = { requestsPerMinute: 60, burstRequests: 10, tokensPerMinute: 6000, burstTokens: 1000 };
const REQUESTS = { requestsPerMinute: 60, burstRequests: 10 };
const TOKENS = { tokensPerMinute: 6000, burstTokens: 1000 };
const COST: LayerCost = { requests: 1, tokens: 100 };

const layer = (options: LayerOptions = BOTH): QuotaLayer => new QuotaLayer('m', options, 0, 0);
const levels = (of: QuotaLayer, nowMs = 0): readonly (number | undefined)[] => {
  const { requests, tokens } = of.snapshot(nowMs);
  return [requests?.level, tokens?.level];
};
/** An attempt that takes `cost` of it, and gets back what `refund` says if it fails. */
const attempt = (of: QuotaLayer, cost = COST, refund: Refund = 'all'): QuotaReservation => {
  const route = new QuotaRoute([of], new Cooldown({}, () => 0), of);
  return new QuotaReservation(0, route, cost, { settle: 'usage', refundOn: { server_error: refund } });
};
const FAILED: Outcome = { kind: 'failure', error: new SluiceError('server_error', 'failed') };

describe('QuotaLayer', () => {
  for (const [name, options, shown] of [
    ['requests and tokens', BOTH, [9, 900]],
    ['requests only', REQUESTS, [9, undefined]],
    ['tokens only', TOKENS, [undefined, 900]],
    ['neither', {}, [undefined, undefined]],
  ] as const) {
    it(`counts ${name} through the whole of an attempt`, () => {
      const of = layer(options);
      const one = attempt(of, COST, 'requests');
      expect(levels(of)).to.deep.equal(shown);
      one.dispatched(0, true);
      one.sent(0);
      one.settle(0, usage(150));
      expect(levels(of)).to.deep.equal([shown[0], shown[1] && 850]);
      one.settle(0, usage(50));
      expect(levels(of)).to.deep.equal([shown[0], shown[1] && 950]);
      one.release(0, FAILED);
      expect(levels(of)).to.deep.equal([shown[0] && 10, shown[1] && 950]);
      expect(of.atRest(0)).to.equal(shown[1] === undefined);
    });

    it(`takes what a provider says is left of ${name}, with and without the attempt that it answered`, () => {
      for (const hints of [
        { requests: left(2), tokens: left(300) },
        { requests: left(2) },
        { tokens: left(300) },
        {},
      ]) {
        const of = layer(options);
        const one = attempt(of);
        one.dispatched(0);
        one.observe(0, hintsOf(hints));
        const due = [hints.requests ? 2 : 9, hints.tokens ? 300 : 900];
        expect(levels(of)).to.deep.equal([shown[0] && due[0], shown[1] && due[1]]);
        const unsent = layer(options);
        unsent.report(0, hintsOf(hints), undefined);
        expect(unsent.atRest(0)).to.equal(
          Object.keys(hints).every((key) => shown[key === 'requests' ? 0 : 1] === undefined),
        );
      }
    });
  }

  it('lets nothing come back of what is being handed over, and all of it once it is', () => {
    const of = layer();
    const one = attempt(of);
    one.dispatched(0, true);
    expect(levels(of, 60_000)).to.deep.equal([9, 900]);
    one.responded(60_000, 200);
    one.responded(60_000, 200);
    expect(levels(of, 60_000)).to.deep.equal([10, 1000]);
  });

  it('begins to give back from when an attempt was really sent', () => {
    const of = layer();
    const one = attempt(of);
    one.sent(500);
    expect(levels(of, 1000)).to.deep.equal([9.5, 950]);
    one.release(1000, FAILED);
    expect(levels(of, 1000)).to.deep.equal([10, 1000]);
  });

  it('is at rest once everything is back', () => {
    for (const cost of [
      { requests: 1, tokens: 0 },
      { requests: 0, tokens: 100 },
    ]) {
      const of = layer();
      attempt(of, cost);
      expect(of.atRest(999)).to.equal(false);
      expect(of.atRest(1000)).to.equal(true);
    }
  });

  it('takes other rates for the buckets that it has, and no others', () => {
    const of = layer();
    of.setRate(0, { requestsPerMinute: 120, burstRequests: 5 });
    expect(of.snapshot(0)).to.deep.equal({
      layer: 'm',
      requests: { level: 5, burst: 5, perMinute: 120 },
      tokens: { level: 1000, burst: 1000, perMinute: 6000 },
    });
    of.setRate(0, { tokensPerMinute: 3000, burstTokens: 500 });
    expect(of.snapshot(0).tokens).to.deep.equal({ level: 500, burst: 500, perMinute: 3000 });
    expect(of.snapshot(0).requests?.perMinute).to.equal(120);

    const requests = layer(REQUESTS);
    expect(() => requests.setRate(0, BOTH)).to.throw('m.tokensPerMinute at creation must be finite and above 0');
    expect(requests.snapshot(0)).to.deep.equal({
      layer: 'm',
      requests: { level: 10, burst: 10, perMinute: 60 },
      tokens: undefined,
    });
    expect(() => layer(TOKENS).setRate(0, BOTH)).to.throw('m.requestsPerMinute at creation must be finite and above 0');
  });

  it('changes the rate that is named, and leaves the other as it is', () => {
    const both = layer();
    both.setRate(0, { tokensPerMinute: 1200 });
    expect([both.requests?.perMinute, both.tokens?.perMinute]).to.deep.equal([60, 1200]);
    both.setRate(0, { requestsPerMinute: 90 });
    expect([both.requests?.perMinute, both.tokens?.perMinute]).to.deep.equal([90, 1200]);
    const tokens = layer(TOKENS);
    tokens.setRate(0, { tokensPerMinute: 1200 });
    expect(tokens.tokens?.perMinute).to.equal(1200);
    const requests = layer(REQUESTS);
    requests.setRate(0, { requestsPerMinute: 90 });
    expect(requests.requests?.perMinute).to.equal(90);
  });

  describe('as what has not been sent', () => {
    const shown = (of: QuotaLayer, one: QuotaReservation): readonly (number | undefined)[] => {
      one.observe(30, hintsOf({ requests: left(5), tokens: left(500) }));
      return levels(of, 30).map((level) => level && Math.round(level));
    };

    it('is taken off what is left, as it stands after corrections', () => {
      const of = layer();
      const [sent, unsent] = [attempt(of), attempt(of)];
      sent.dispatched(0);
      sent.settle(0, usage(40));
      expect(shown(of, sent)).to.deep.equal([4, 403]);
      unsent.settle(30, usage(60));
      expect(shown(of, sent)).to.deep.equal([4, 443]);
    });

    it('is nothing more once an attempt has ended, sent or not', () => {
      const of = layer();
      const [sent, other, unsent] = [attempt(of), attempt(of), attempt(of)];
      sent.dispatched(0);
      other.dispatched(0);
      other.release(0, FAILED);
      expect(shown(of, sent)).to.deep.equal([4, 403]);
      unsent.release(30, FAILED);
      expect(shown(of, sent)).to.deep.equal([5, 503]);
    });

    it('hears of what is left for now where its own report comes before it was sent', () => {
      const of = layer();
      expect(shown(of, attempt(of))).to.deep.equal([5, 500]);
    });
  });

  it('goes on with the buckets that another one had too', () => {
    const previous = layer();
    const one = attempt(previous);
    const next = layer({ requestsPerMinute: 30, burstRequests: 4 });
    next.succeed(0, previous);
    expect(next.snapshot(0)).to.deep.equal({
      layer: 'm',
      requests: { level: 4, burst: 4, perMinute: 30 },
      tokens: undefined,
    });
    const both = layer({ ...BOTH, requestsPerMinute: 120 });
    const requests = layer(REQUESTS);
    attempt(requests);
    both.succeed(0, requests);
    expect(both.snapshot(0)).to.deep.include({ requests: { level: 9, burst: 10, perMinute: 120 } });
    expect(both.snapshot(0).tokens?.level).to.equal(1000);
    one.release(0, FAILED);
    expect(levels(previous)[1]).to.equal(1000);
  });

  it('counts reserved tokens as back where they may come back', () => {
    const of = layer(TOKENS);
    const one = attempt(of, { requests: 1, tokens: 600 });
    const cost = { requests: 1, tokens: 900 };
    expect(of.waitBehindMs(0, { requests: 0, tokens: 0 }, cost, false)).to.equal(5000);
    expect(of.waitBehindMs(0, { requests: 0, tokens: 0 }, cost, true)).to.equal(0);
    one.settle(0, usage(400));
    expect(of.waitBehindMs(0, { requests: 0, tokens: 0 }, { requests: 1, tokens: 1000 }, true)).to.equal(0);
    one.release(0, SUCCESS);
    expect(of.waitBehindMs(0, { requests: 0, tokens: 0 }, { requests: 1, tokens: 1000 }, true)).to.equal(4000);
  });
});
