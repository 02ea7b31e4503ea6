import { expect } from 'chai';
import { SluiceError } from '../../lib/core/errors.ts';
import type { ErrorCode } from '../../lib/core/errors.ts';
import type { LimitReading } from '../../lib/core/hints.ts';
import { DROPPED, DROPPED_UNSENT, SUCCESS } from '../../lib/core/outcome.ts';
import type { Outcome } from '../../lib/core/outcome.ts';
import { Cooldown } from '../../lib/limits/Cooldown.ts';
import { QuotaLayer } from '../../lib/limits/QuotaLayer.ts';
import { QuotaReservation } from '../../lib/limits/QuotaReservation.ts';
import type { SettleRules } from '../../lib/limits/QuotaReservation.ts';
import { QuotaRoute } from '../../lib/limits/QuotaRoute.ts';
import { hintsOf } from '../helpers/hintsOf.ts';

const failure = (code: ErrorCode, status?: number): Outcome => ({
  kind: 'failure',
  error: new SluiceError(code, code, { status }),
});
const left = (remaining: number): LimitReading => ({
  limit: undefined,
  remaining,
  resetMs: undefined,
  windowMs: 60_000,
});
const usage = (totalTokens: number) => ({
  inputTokens: totalTokens,
  outputTokens: 0,
  totalTokens,
  cachedInputTokens: undefined,
  reasoningTokens: undefined,
});

describe('QuotaReservation', () => {
  let layer: QuotaLayer;
  let cooldown: Cooldown;
  let route: QuotaRoute;
  beforeEach(() => {
    layer = new QuotaLayer('m', { requestsPerMinute: 60, burstRequests: 10, tokensPerMinute: 6000 }, 0, 0);
    cooldown = new Cooldown({}, () => 0);
    route = new QuotaRoute([layer], cooldown, layer);
  });
  const reserve = (nowMs: number, rules: Partial<SettleRules> = {}): QuotaReservation =>
    new QuotaReservation(nowMs, route, { requests: 1, tokens: 1000 }, { settle: 'reserved', refundOn: {}, ...rules });
  const requests = (nowMs: number): number => layer.requests?.level(nowMs) ?? NaN;
  const tokens = (nowMs: number): number => layer.tokens?.level(nowMs) ?? NaN;

  describe('as handing over', () => {
    it('lets nothing come back before it was sent, and from then on all', () => {
      const one = reserve(0);
      one.dispatched(0, true);
      expect([requests(5000), tokens(20_000)]).to.deep.equal([9, 5000]);
      one.sent(20_000);
      expect([requests(20_000), tokens(20_000)]).to.deep.equal([9, 5000]);
      expect(requests(20_500)).to.be.closeTo(9.5, 1e-9);
      expect(tokens(25_000)).to.be.closeTo(5500, 1e-9);
    });

    it('holds nothing where it is sent as it is dispatched', () => {
      const one = reserve(0);
      one.dispatched(0);
      expect([requests(1000), tokens(10_000)]).to.deep.equal([10, 6000]);
      one.sent(0);
      expect([requests(1000), tokens(10_000)]).to.deep.equal([10, 6000]);
    });

    it('ends with the first word of an answer, which was charged when it was granted', () => {
      const one = reserve(0);
      one.dispatched(0, true);
      one.responded(3000, 200);
      expect(requests(3000)).to.equal(10);
      one.sent(3000);
      expect(requests(3000)).to.equal(10);
    });

    it('ends with the attempt', () => {
      const one = reserve(0);
      one.dispatched(0, true);
      one.release(3000, SUCCESS);
      expect(requests(3000)).to.equal(10);
      one.sent(3000);
      expect(requests(3000)).to.equal(10);
    });
  });

  describe('as dispatching', () => {
    it('counts once', () => {
      const one = reserve(0);
      one.dispatched(0);
      one.dispatched(30);
      one.observe(30, hintsOf({ requests: left(5) }));
      expect(requests(30)).to.be.closeTo(5, 0.1);
    });

    it('counts nothing for one that has ended', () => {
      const ended = reserve(0);
      ended.release(0, DROPPED_UNSENT);
      ended.dispatched(30);
      const one = reserve(30);
      one.dispatched(30);
      one.observe(30, hintsOf({ requests: left(5) }));
      expect(requests(30)).to.be.closeTo(5, 0.1);
    });
  });

  describe('as an answer', () => {
    for (const [name, answer] of [
      ['a response', (one: QuotaReservation) => one.responded(0, 200)],
      ['a report', (one: QuotaReservation) => one.observe(0, hintsOf())],
      ['usage', (one: QuotaReservation) => one.settle(0, usage(1000))],
    ] as const) {
      it(`gives nothing back for a connection that failed after ${name}`, () => {
        const one = reserve(0);
        one.dispatched(0);
        answer(one);
        expect(one.release(0, failure('connection'))).to.include({ refundedTokens: 0 });
        expect([requests(0), tokens(0)]).to.deep.equal([9, 5000]);
      });
    }

    it('tells nothing after the end', () => {
      const one = reserve(0);
      one.dispatched(0);
      one.release(0, SUCCESS);
      expect(one.observe(0, hintsOf({ retryAfterMs: 500, requests: left(0) }))).to.equal(0);
      expect([requests(0), cooldown.waitMs(0)]).to.deep.equal([9, 0]);
    });

    it('is no hint where it names no wait', () => {
      const one = reserve(0);
      one.dispatched(0);
      expect(one.observe(0, hintsOf())).to.equal(0);
      expect(one.release(0, failure('rate_limited', 429))).to.include({ cooldownMs: 1000 });
    });

    it('is told to nobody where no layer is reported on', () => {
      const own = new QuotaRoute([layer], cooldown, undefined);
      const one = new QuotaReservation(0, own, { requests: 1, tokens: 0 }, { settle: 'usage', refundOn: {} });
      one.dispatched(0);
      one.observe(0, hintsOf({ requests: left(0) }));
      expect(requests(0)).to.equal(9);
    });
  });

  describe('as settling', () => {
    it('takes no usage for all, and passes over one that is no number', () => {
      const one = reserve(0, { settle: 'usage' });
      one.settle(0, usage(NaN));
      expect(tokens(0)).to.equal(5000);
      one.settle(0, usage(0));
      expect(tokens(0)).to.equal(6000);
    });

    it('says what came back by usage and by the end together', () => {
      const less = reserve(0, { settle: 'usage' });
      less.settle(0, usage(300));
      expect(less.release(0, failure('server_error', 500))).to.include({ usedTokens: 300, refundedTokens: 1000 });
      expect(tokens(0)).to.equal(6000);
      const more = reserve(0);
      more.settle(0, usage(1500));
      expect(more.release(0, failure('server_error', 500))).to.include({ usedTokens: 1500, refundedTokens: 1000 });
      expect(tokens(0)).to.equal(5500);
    });
  });

  describe('as pauses', () => {
    it('pauses for a rejection without a wait, if told to, and for no other failure', () => {
      expect(reserve(0).release(0, failure('server_error', 500))).to.include({ cooldownMs: 0 });
      expect(reserve(0).release(0, failure('rate_limited', 429), false)).to.include({ cooldownMs: 0 });
      expect(cooldown.waitMs(0)).to.equal(0);
      expect(reserve(0).release(0, failure('rate_limited', 429))).to.include({ cooldownMs: 1000 });
    });

    it('takes a rejection of one that left before the last pause for the same', () => {
      const one = reserve(0);
      one.dispatched(50);
      cooldown.hint(100, 50);
      expect(one.release(200, failure('rate_limited', 429))).to.include({ cooldownMs: 0 });
    });

    for (const [name, end, waitMs] of [
      ['failed without an answer', (one: QuotaReservation) => one.release(150, failure('connection')), 20],
      ['was cancelled after a rejection', (one: QuotaReservation) => one.release(150, DROPPED), 20],
    ] as const) {
      it(`lets the others follow the first one back where it ${name}`, () => {
        cooldown.hint(0, 100);
        const first = reserve(100);
        first.dispatched(100);
        if (name.includes('rejection')) first.responded(120, 429);
        expect(cooldown.waitMs(150)).to.equal(1950);
        end(first);
        expect(cooldown.waitMs(150)).to.equal(waitMs);
      });
    }

    it('sends the next one alone where the first one back was cancelled before an answer', () => {
      cooldown.hint(0, 100);
      const first = reserve(100);
      first.dispatched(100);
      first.release(150, DROPPED);
      expect(cooldown.waitMs(150)).to.equal(0);
      reserve(150);
      expect(cooldown.waitMs(150)).to.equal(2000);
    });

    it('leaves a pause alone that one did not go first after', () => {
      const early = reserve(0);
      cooldown.hint(0, 100);
      const first = reserve(100);
      early.responded(150, 200);
      expect(cooldown.waitMs(150)).to.equal(1950);
      early.release(150, SUCCESS);
      expect(cooldown.waitMs(150)).to.equal(1950);
      first.responded(150, 200);
      expect(cooldown.waitMs(150)).to.equal(20);
    });
  });
});
