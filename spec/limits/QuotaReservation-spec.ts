import { expect } from 'chai';
import fc from 'fast-check';
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

  it('takes of each layer, and gives back there, as if it were the only one', () => {
    const rates = [
      { tokensPerMinute: 60_000, burstTokens: 3000 },
      { requestsPerMinute: 600, burstRequests: 5, tokensPerMinute: 30_000 },
      { requestsPerMinute: 60, burstRequests: 10 },
    ];
    const rules: SettleRules = { settle: 'usage', refundOn: { server_error: 'all', overloaded: 'requests' } };
    const ends = [SUCCESS, failure('server_error'), failure('overloaded'), DROPPED_UNSENT];
    const deed = fc.record({
      kind: fc.constantFrom('asks', 'is sent', 'is handed over', 'hears', 'settles', 'ends'),
      at: fc.nat(4),
      amount: fc.integer({ min: 0, max: 2000 }),
      afterMs: fc.constantFrom(0, 10, 300),
    });
    fc.assert(
      fc.property(fc.array(deed, { maxLength: 30 }), fc.constantFrom(0, 50), (deeds, marginMs) => {
        const layersOf = (): QuotaLayer[] => rates.map((each) => new QuotaLayer('m', each, marginMs, 0));
        const [together, alone] = [layersOf(), layersOf()];
        const still = new Cooldown({}, () => 0);
        const all = new QuotaRoute(together, still, together[1]);
        const each = alone.map((one, i) => new QuotaRoute([one], still, i === 1 ? one : undefined));
        const taken: QuotaReservation[][] = [];
        let nowMs = 0;
        for (const { kind, at, amount, afterMs } of deeds) {
          nowMs += afterMs;
          const ones = taken[at] ?? [];
          if (kind === 'asks') {
            const cost = { requests: 1, tokens: amount };
            taken.unshift([all, ...each].map((way) => new QuotaReservation(nowMs, way, cost, rules)));
          }
          for (const one of ones) {
            if (kind === 'is sent') one.dispatched(nowMs, amount % 2 === 0);
            else if (kind === 'is handed over') one.sent(nowMs);
            else if (kind === 'hears') one.observe(nowMs, hintsOf({ requests: left(2), tokens: left(amount) }));
            else if (kind === 'settles') one.settle(nowMs, usage(amount));
            else if (kind === 'ends') one.release(nowMs, ends[amount % 4] as Outcome);
          }
          const shown = (of: QuotaLayer): unknown => {
            const behind = of.waitBehindMs(nowMs, { requests: 0, tokens: 0 }, { requests: 2, tokens: 2500 }, true);
            return [of.snapshot(nowMs), behind];
          };
          expect(together.map(shown)).to.deep.equal(alone.map(shown));
          const cost = { requests: 3, tokens: amount };
          expect(all.layersWaitMs(nowMs, cost)).to.equal(Math.max(...alone.map((one) => one.waitMs(nowMs, cost))));
        }
      }),
      { numRuns: 150 },
    );
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
