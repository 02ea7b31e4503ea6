import { expect } from 'chai';
import fc from 'fast-check';
import { SluiceError } from '../../lib/core/errors.ts';
import type { ErrorCode } from '../../lib/core/errors.ts';
import { DROPPED, DROPPED_UNSENT, SUCCESS } from '../../lib/core/outcome.ts';
import type { Outcome } from '../../lib/core/outcome.ts';
import type { Cost } from '../../lib/core/ports.ts';
import { Cooldown } from '../../lib/limits/Cooldown.ts';
import { Quota } from '../../lib/limits/Quota.ts';
import type { QuotaAsk, QuotaRefusal, QuotaStep } from '../../lib/limits/Quota.ts';
import { QuotaLayer } from '../../lib/limits/QuotaLayer.ts';
import type { LayerOptions } from '../../lib/limits/QuotaLayer.ts';
import { checkedQuotaRules } from '../../lib/limits/QuotaOptions.ts';
import type { QuotaRules } from '../../lib/limits/QuotaOptions.ts';
import type { QuotaReservation } from '../../lib/limits/QuotaReservation.ts';
import { QuotaRoute } from '../../lib/limits/QuotaRoute.ts';
import type { QuotaTicket } from '../../lib/limits/QuotaRoute.ts';
import { seededRandom } from '../../lib/testing/seededRandom.ts';
import { hintsOf } from '../helpers/hintsOf.ts';

const noRandom = (): number => 0;

function layer(name: string, options: LayerOptions, arrivalMarginMs = 0): QuotaLayer {
  return new QuotaLayer(name, options, arrivalMarginMs, 0);
}

type Expired = Extract<QuotaStep, { kind: 'expired' }>;

/** A quota with one route. No margin and no jitter, so that instants are round. */
class Desk {
  readonly route: QuotaRoute;
  readonly quota: Quota;
  nowMs = 0;

  constructor(layers: readonly QuotaLayer[], rules: QuotaRules = {}) {
    this.quota = new Quota(checkedQuotaRules(rules));
    this.route = new QuotaRoute(layers, new Cooldown({}, noRandom), layers.at(-1));
  }

  enqueue(cost: Partial<Cost> = {}, ask: Partial<QuotaAsk> = {}, route: QuotaRoute = this.route): QuotaTicket {
    const ticket = this.ask(cost, ask, route);
    if (ticket.kind === 'refused') return expect.fail(`refused: ${ticket.code}`);
    return ticket;
  }

  refusal(cost: Partial<Cost> = {}, ask: Partial<QuotaAsk> = {}): QuotaRefusal {
    const refusal = this.ask(cost, ask);
    if (refusal.kind !== 'refused') return expect.fail('not refused');
    return refusal;
  }

  ask(cost: Partial<Cost>, ask: Partial<QuotaAsk>, route: QuotaRoute = this.route): QuotaTicket | QuotaRefusal {
    return this.quota.enqueue(this.nowMs, route, { cost: { requests: 1, tokens: 0, explicit: true, ...cost }, ...ask });
  }

  /** All that can be granted now, with what has expired. */
  drain(): { granted: QuotaTicket[]; reservations: QuotaReservation[]; expired: Expired[]; untilMs: number } {
    const granted: QuotaTicket[] = [];
    const reservations: QuotaReservation[] = [];
    const expired: Expired[] = [];
    for (;;) {
      const step = this.quota.next(this.nowMs);
      if (step.kind === 'wait') return { granted, reservations, expired, untilMs: step.untilMs };
      if (step.kind === 'expired') expired.push(step);
      else {
        granted.push(step.ticket);
        reservations.push(step.reservation);
      }
    }
  }

  /** Enqueues and expects the grant at once. */
  take(cost: Partial<Cost> = {}, route: QuotaRoute = this.route): QuotaReservation {
    const ticket = this.enqueue(cost, {}, route);
    const { granted, reservations } = this.drain();
    expect(granted).to.deep.equal([ticket]);
    return reservations[0]!;
  }

  level(unit: 'requests' | 'tokens', of = 0): number {
    return this.route.layers[of]![unit]!.level(this.nowMs);
  }
}

const failure = (code: ErrorCode, status?: number): Outcome => ({
  kind: 'failure',
  error: new SluiceError(code, code, { status }),
});

const minute = { limit: undefined, resetMs: undefined, windowMs: 60_000 };
const usage = (totalTokens: number) => ({
  inputTokens: totalTokens,
  outputTokens: 0,
  totalTokens,
  cachedInputTokens: undefined,
  reasoningTokens: undefined,
});

/** 10 requests at once, then one a second; 6,000 tokens at once, then 100 a second. */
const both: LayerOptions = { requestsPerMinute: 60, burstRequests: 10, tokensPerMinute: 6000 };

describe('Quota', () => {
  describe('as layers', () => {
    it('takes a cost from every layer', () => {
      const desk = new Desk([layer('account', both), layer('model', { requestsPerMinute: 30, burstRequests: 4 })]);
      desk.take({ tokens: 500 });

      expect(desk.level('requests', 0)).to.equal(9);
      expect(desk.level('tokens', 0)).to.equal(5500);
      expect(desk.level('requests', 1)).to.equal(3);
    });

    it('takes nothing from any layer while one of them has no room', () => {
      const desk = new Desk([layer('account', both), layer('model', { requestsPerMinute: 30, burstRequests: 1 })]);
      desk.take();
      desk.enqueue();

      expect(desk.drain()).to.deep.include({ granted: [], untilMs: 2000 });
      expect(desk.level('requests', 0)).to.equal(9);
    });

    it('starts with a burst of one second of requests, at least one, and one minute of tokens', () => {
      expect(layer('a', { requestsPerMinute: 600 }).requests?.burst).to.equal(10);
      expect(layer('a', { requestsPerMinute: 30 }).requests?.burst).to.equal(1);
      expect(layer('a', { tokensPerMinute: 900 }).tokens?.burst).to.equal(900);
      expect(layer('a', { tokensPerMinute: 900, burstTokens: 50 }).tokens?.burst).to.equal(50);
    });

    for (const option of ['requestsPerMinute', 'burstRequests', 'tokensPerMinute', 'burstTokens'] as const) {
      it(`refuses a wrong ${option}, naming its layer`, () => {
        for (const value of [0, -1, NaN, Infinity]) {
          const options = { requestsPerMinute: 60, tokensPerMinute: 60, [option]: value };
          expect(() => layer('model', options)).to.throw(`model.${option} must be finite and above 0, got ${value}`);
        }
      });
    }

    it('refuses a burst without a rate', () => {
      expect(() => layer('model', { burstRequests: 5 })).to.throw('model.requestsPerMinute');
    });

    it('grants everything where no layer limits', () => {
      const desk = new Desk([]);
      for (let n = 0; n < 100; n++) desk.enqueue({ tokens: 1e9 });

      expect(desk.drain().granted).to.have.length(100);
    });
  });

  describe('as a line', () => {
    it('grants in the order of coming, however small a later one is', () => {
      const desk = new Desk([layer('account', both)]);
      desk.take({ tokens: 5900 });
      const big = desk.enqueue({ tokens: 1000 });
      const small = desk.enqueue({ tokens: 1 });

      expect(desk.drain()).to.deep.include({ granted: [], untilMs: 9000 });
      desk.nowMs = 9000;
      expect(desk.drain().granted).to.deep.equal([big]);
      desk.nowMs = 9010;
      expect(desk.drain().granted).to.deep.equal([small]);
    });

    it('lets the waiter go first when a newcomer comes in the tick of a refill', () => {
      const desk = new Desk([layer('account', { requestsPerMinute: 60 })]);
      desk.take();
      const waiter = desk.enqueue();
      desk.nowMs = 1000;
      const newcomer = desk.enqueue();

      expect(desk.drain().granted).to.deep.equal([waiter]);
      expect(newcomer.position).to.equal(2);
    });

    it('moves the others up when one leaves', () => {
      const desk = new Desk([layer('account', { requestsPerMinute: 60 })]);
      desk.take();
      const [first, second, third] = [desk.enqueue(), desk.enqueue(), desk.enqueue()];

      expect(desk.quota.cancel(second)).to.be.true;
      expect(desk.quota.cancel(second)).to.be.false;
      expect(desk.quota.waiting).to.equal(2);
      desk.nowMs = 1000;
      expect(desk.drain().granted).to.deep.equal([first]);
      desk.nowMs = 2000;
      expect(desk.drain()).to.deep.include({ granted: [third], untilMs: Infinity });
    });

    it('says how long the wait is at least', () => {
      const desk = new Desk([layer('account', both)]);
      for (let n = 0; n < 10; n++) desk.take();

      expect(desk.enqueue().foreseenMs).to.equal(1000);
      expect(desk.enqueue().foreseenMs).to.equal(2000);
      expect(desk.enqueue({ tokens: 6000 }).foreseenMs).to.equal(3000);
    });

    it('lets those on another route pass one that waits for a layer of its own', () => {
      const account = layer('account', both);
      const desk = new Desk([account, layer('model', { requestsPerMinute: 1, burstRequests: 1 })]);
      const other = new QuotaRoute([account], new Cooldown({}, noRandom), account);
      desk.take();
      desk.enqueue({}, { maxWaitMs: Infinity });

      desk.take({}, other);
      expect(account.requests?.level(0)).to.equal(8);
    });

    it('keeps what routes share for the one that came first', () => {
      const account = layer('account', { requestsPerMinute: 60, burstRequests: 2 });
      const desk = new Desk([account]);
      const other = new QuotaRoute([account], new Cooldown({}, noRandom), account);
      desk.take({ requests: 2 });
      const big = desk.enqueue({ requests: 2 });
      const small = desk.enqueue({ requests: 1 }, {}, other);

      desk.nowMs = 1000;
      expect(desk.drain()).to.deep.include({ granted: [], untilMs: 2000 });
      desk.nowMs = 2000;
      expect(desk.drain().granted).to.deep.equal([big]);
      desk.nowMs = 3000;
      expect(desk.drain().granted).to.deep.equal([small]);
    });

    it('holds one up behind an earlier one on another route that waits for one of its layers', () => {
      const account = layer('account', { requestsPerMinute: 60, burstRequests: 2 });
      const desk = new Desk([account, layer('a', both)]);
      const other = new QuotaRoute([layer('b', both), account], new Cooldown({}, noRandom), account);
      desk.take();
      const big = desk.enqueue({ requests: 2 });
      const small = desk.enqueue({}, {}, other);
      expect(desk.drain()).to.deep.include({ granted: [], untilMs: 1000 });
      desk.nowMs = 1000;
      expect(desk.drain().granted).to.deep.equal([big]);
      desk.nowMs = 2000;
      expect(desk.drain().granted).to.deep.equal([small]);
    });

    it('grants in the order of coming over all routes that share a layer, whoever leaves', () => {
      const account = layer('account', { requestsPerMinute: 60 });
      const desk = new Desk([account], { maxWaiting: Infinity, maxWaitMs: Infinity });
      const routes = Array.from({ length: 5 }, () => new QuotaRoute([account], new Cooldown({}, noRandom), account));
      const random = seededRandom(7);
      desk.take();
      let tickets = Array.from({ length: 60 }, () => desk.enqueue({}, {}, routes[Math.floor(random() * 5)]));
      tickets = tickets.filter((ticket, i) => i % 4 !== 1 || !desk.quota.cancel(ticket));
      const granted: QuotaTicket[] = [];
      while (desk.quota.waiting > 0) {
        desk.nowMs += 1000;
        granted.push(...desk.drain().granted);
        if (granted.length === 10) tickets = tickets.filter((ticket, i) => i % 7 !== 6 || !desk.quota.cancel(ticket));
      }
      expect(granted.map(({ order }) => order)).to.deep.equal(granted.map(({ order }) => order).sort((a, b) => a - b));
      expect(granted.length).to.equal(new Set([...granted.slice(0, 10), ...tickets]).size);
    });

    it('says that it granted', () => {
      const desk = new Desk([layer('account', both)]);
      const ticket = desk.enqueue();
      expect(desk.quota.next(0)).to.include({ kind: 'granted', ticket });
    });

    it('costs no more with 100,000 waiting than with 100, but for the logarithm', () => {
      const operations = (count: number): number => {
        const account = layer('account', { requestsPerMinute: 60 });
        let asked = 0;
        const plain = account.waitMs.bind(account);
        account.waitMs = (...args) => (asked++, plain(...args));
        const desk = new Desk([account], { maxWaiting: Infinity, maxWaitMs: Infinity });
        const tickets = Array.from({ length: count }, () => desk.enqueue({}, { deadlineAtMs: 1e9 }));
        asked = 0;
        for (let n = 0; n < 50; n++) {
          desk.quota.cancel(tickets[(count >> 1) - n]!);
          desk.enqueue();
          desk.nowMs += 1000;
          desk.drain();
        }
        return asked;
      };

      expect(operations(100_000)).to.be.at.most(operations(100) * 1.5);
    });

    it('grants and gives up 100,000 in the order of coming', function () {
      const desk = new Desk([layer('account', { requestsPerMinute: 60_000, burstRequests: 1 })], {
        maxWaiting: Infinity,
        maxWaitMs: Infinity,
      });
      const tickets = Array.from({ length: 100_000 }, () => desk.enqueue());
      tickets.forEach((ticket, i) => i % 2 === 1 && desk.quota.cancel(ticket));
      const granted: QuotaTicket[] = [];
      while (desk.quota.waiting > 0) {
        const drained = desk.drain();
        granted.push(...drained.granted);
        if (drained.untilMs !== Infinity) desk.nowMs = drained.untilMs;
      }

      expect(granted).to.have.length(50_000);
      expect(granted.every((ticket, i) => ticket === tickets[2 * i])).to.be.true;
      expect(desk.nowMs).to.be.within(49_999, 52_000);
    });
  });

  describe('as bounds', () => {
    it('refuses an explicit cost above one minute at once, without holding up those behind it', () => {
      const desk = new Desk([layer('account', { tokensPerMinute: 40_000, burstTokens: 667 })]);

      expect(desk.refusal({ tokens: 60_000 })).to.deep.equal({
        kind: 'refused',
        code: 'cost_too_large',
        retryAfterMs: undefined,
        limit: 40_000,
        requested: 60_000,
        unit: 'tokens',
      });
      desk.take({ tokens: 10 });
    });

    it('measures a cost against the smallest layer', () => {
      const desk = new Desk([layer('account', { requestsPerMinute: 60 }), layer('model', { requestsPerMinute: 30 })]);

      expect(desk.refusal({ requests: 31 })).to.include({ code: 'cost_too_large', limit: 30, unit: 'requests' });
    });

    it('clamps a guess to one minute', () => {
      const desk = new Desk([layer('account', { tokensPerMinute: 6000 })]);

      expect(desk.take({ tokens: 60_000, explicit: false }).reservedTokens).to.equal(6000);
    });

    it('borrows what is above the burst from the future', () => {
      const desk = new Desk([layer('account', { tokensPerMinute: 6000, burstTokens: 100 })]);
      desk.take({ tokens: 2000 });
      expect(desk.level('tokens')).to.equal(-1900);

      desk.enqueue({ tokens: 1 });
      expect(desk.drain().untilMs).to.equal(19_010);
    });

    it('refuses when too many wait, with the wait that the line stands for', () => {
      const desk = new Desk([layer('account', { requestsPerMinute: 60 })], { maxWaiting: 2 });
      desk.take();
      desk.enqueue();
      desk.enqueue();

      expect(desk.refusal()).to.deep.include({ code: 'queue_full', limit: 2, retryAfterMs: 3000 });
    });

    it('refuses behind a full queue what fits, but would go before one that came earlier', () => {
      const desk = new Desk([layer('account', { requestsPerMinute: 60, burstRequests: 2 })], { maxWaiting: 1 });
      desk.take();
      desk.enqueue({ requests: 2 });
      expect(desk.refusal()).to.deep.include({ code: 'queue_full', unit: 'requests' });
    });

    it('refuses during a pause where nobody may wait', () => {
      const desk = new Desk([layer('account', both)], { maxWaiting: 0 });
      desk.route.cooldown.hint(0, 2000);
      expect(desk.refusal()).to.deep.include({ code: 'queue_full', retryAfterMs: 2000 });
    });

    it('waits as long as it may, and not a millisecond longer', () => {
      const desk = new Desk([layer('account', { requestsPerMinute: 60 })]);
      desk.take();
      expect(desk.refusal({}, { maxWaitMs: 999 })).to.deep.equal({
        kind: 'refused',
        code: 'queue_timeout',
        retryAfterMs: 1000,
        limit: 999,
        requested: undefined,
        unit: 'ms',
      });
      const ticket = desk.enqueue({}, { maxWaitMs: 1000 });
      expect(desk.drain()).to.deep.include({ expired: [], untilMs: 1000 });
      desk.nowMs = 1000;
      expect(desk.drain().granted).to.deep.equal([ticket]);
    });

    it('names the deadline where it comes with the end of the wait', () => {
      const desk = new Desk([layer('account', { requestsPerMinute: 60 })]);
      desk.take();
      expect(desk.refusal({}, { maxWaitMs: 500, deadlineAtMs: 500 }).code).to.equal('timeout_deadline');
      expect(desk.refusal({}, { maxWaitMs: 500, deadlineAtMs: 501 }).code).to.equal('queue_timeout');
    });

    it('counts on nothing that is reserved where the provider counts the reservation', () => {
      const desk = new Desk([layer('account', { tokensPerMinute: 6000 })]);
      desk.take({ tokens: 3000 }).dispatched(0);
      expect(desk.refusal({ tokens: 4000 }, { maxWaitMs: 9000 })).to.include({ retryAfterMs: 10_000 });
      desk.enqueue({ tokens: 4000 }, { maxWaitMs: 15_000 });
      expect(desk.drain().expired).to.deep.equal([]);
      desk.route.layers[0]?.tokens?.lower(0, 0);
      expect(desk.drain().expired).to.have.length(1);
    });

    it('says how long one whose wait is over would have had to wait, with nothing coming back', () => {
      const desk = new Desk([layer('account', { tokensPerMinute: 6000 })], { settle: 'usage' });
      desk.take({ tokens: 6000 });
      desk.enqueue({ tokens: 6000 }, { maxWaitMs: 500 });
      desk.nowMs = 500;
      expect(desk.drain().expired.map(({ refusal }) => refusal.retryAfterMs)).to.deep.equal([59_500]);
    });

    it('grants what can go at once where nobody may wait', () => {
      const desk = new Desk([layer('account', { requestsPerMinute: 20 })], { maxWaiting: 0 });
      desk.take();

      expect(desk.refusal()).to.deep.include({ code: 'queue_full', retryAfterMs: 3000 });
    });

    it('refuses on entry a wait that cannot end in time', () => {
      const desk = new Desk([layer('account', { requestsPerMinute: 1, burstRequests: 1 })]);
      desk.take();

      expect(desk.refusal()).to.include({ code: 'queue_timeout', limit: 30_000, retryAfterMs: 60_000 });
      expect(desk.refusal({}, { maxWaitMs: 5 })).to.include({ code: 'queue_timeout', limit: 5 });
      expect(desk.refusal({}, { deadlineAtMs: 200 })).to.include({ code: 'timeout_deadline', limit: 200 });
      expect(desk.quota.waiting).to.equal(0);
      desk.enqueue({}, { maxWaitMs: 60_000 });
    });

    it('refuses what comes at or after its deadline, though there is room', () => {
      const desk = new Desk([layer('account', both)]);
      desk.nowMs = 500;

      expect(desk.refusal({}, { deadlineAtMs: 500 }).code).to.equal('timeout_deadline');
      expect(desk.refusal({}, { deadlineAtMs: 400 }).code).to.equal('timeout_deadline');
    });

    it('ends a wait that has become too long as soon as that is known', () => {
      const desk = new Desk([layer('account', { requestsPerMinute: 60 })]);
      desk.take();
      desk.enqueue({}, { deadlineAtMs: 1500 });
      const patient = desk.enqueue();
      desk.nowMs = 100;
      desk.route.cooldown.hint(100, 5000);

      const { expired, untilMs } = desk.drain();
      expect(expired.map(({ refusal }) => [refusal.code, refusal.retryAfterMs])).to.deep.equal([
        ['timeout_deadline', 5000],
      ]);
      expect(untilMs).to.equal(5100);
      desk.nowMs = 5100;
      expect(desk.drain().granted).to.deep.equal([patient]);
    });

    it('ends waits in the order in which they run out, also behind the head', () => {
      const desk = new Desk([layer('account', { tokensPerMinute: 6000 })], { settle: 'usage' });
      const held = desk.take({ tokens: 6000 });
      // Not known to be too long: the usage may turn out to be small.
      const head = desk.enqueue({ tokens: 6000 }, { maxWaitMs: 9000 });
      desk.enqueue({ tokens: 1 }, { maxWaitMs: 400 });

      expect(desk.drain()).to.deep.include({ granted: [], expired: [], untilMs: 400 });
      desk.nowMs = 400;
      expect(desk.drain().expired).to.have.length(1);
      desk.nowMs = 500;
      held.dispatched(500);
      held.settle(500, usage(50));
      expect(desk.drain().granted).to.deep.equal([head]);
    });

    it('counts on what may come back only while it may', () => {
      const desk = new Desk([layer('account', { tokensPerMinute: 6000 })], { settle: 'usage' });
      const held = desk.take({ tokens: 6000 });
      const waiting = desk.enqueue({ tokens: 6000 }, { maxWaitMs: 500 });
      desk.quota.cancel(waiting);

      held.release(0, SUCCESS);
      expect(desk.refusal({ tokens: 6000 }, { maxWaitMs: 500 }).code).to.equal('queue_timeout');
    });

    it('refuses a wrong rule, naming it', () => {
      for (const [rules, option] of [
        [{ maxWaiting: -1 }, 'maxWaiting'],
        [{ maxWaiting: NaN }, 'maxWaiting'],
        [{ maxWaitMs: NaN }, 'maxWaitMs'],
        [{ arrivalMarginMs: -1 }, 'arrivalMarginMs'],
        [{ settle: 'never' as 'usage' }, 'settle'],
        [{ refundOn: { overload: 'all' } as object }, 'refundOn'],
        [{ refundOn: { overloaded: 'some' } as object }, 'refundOn.overloaded'],
      ] as const) {
        expect(() => checkedQuotaRules(rules))
          .to.throw(option)
          .with.property('code', 'invalid_option');
      }
    });
  });

  describe('as settling and refunds', () => {
    const settled = (rules: QuotaRules, tokens: number | undefined, outcome: Outcome = SUCCESS): [number, number] => {
      const desk = new Desk([layer('account', both)], rules);
      const reservation = desk.take({ tokens: 1000 });
      if (outcome !== DROPPED_UNSENT) reservation.dispatched(0);
      if (tokens !== undefined) reservation.settle(0, usage(tokens));
      reservation.release(0, outcome);
      return [desk.level('requests') - 10, desk.level('tokens') - 6000];
    };

    it('corrects a reservation upwards only, by default', () => {
      expect(settled({}, 300)).to.deep.equal([-1, -1000]);
      expect(settled({}, 1500)).to.deep.equal([-1, -1500]);
    });

    it('corrects a reservation both ways where the provider counts usage', () => {
      expect(settled({ settle: 'usage' }, 300)).to.deep.equal([-1, -300]);
      expect(settled({ settle: 'usage' }, 1500)).to.deep.equal([-1, -1500]);
    });

    it('lets the estimate stand where no usage came', () => {
      expect(settled({}, undefined)).to.deep.equal([-1, -1000]);
      expect(settled({ settle: 'usage' }, undefined)).to.deep.equal([-1, -1000]);
    });

    it('gives back by the way an attempt ended', () => {
      expect(settled({}, undefined, DROPPED_UNSENT)).to.deep.equal([0, 0]);
      expect(settled({}, undefined, DROPPED)).to.deep.equal([-1, -1000]);
      expect(settled({}, undefined, failure('connection'))).to.deep.equal([0, 0]);
      expect(settled({}, undefined, failure('server_error', 500))).to.deep.equal([-1, 0]);
      expect(settled({}, undefined, failure('overloaded', 503))).to.deep.equal([-1, 0]);
      expect(settled({}, undefined, failure('rate_limited', 429))).to.deep.equal([-1, -1000]);
      expect(settled({}, undefined, failure('timeout'))).to.deep.equal([-1, -1000]);
      expect(settled({}, undefined, failure('bad_request', 400))).to.deep.equal([-1, -1000]);
    });

    it('gives nothing back for a connection that failed after a response had begun', () => {
      const desk = new Desk([layer('account', both)]);
      const reservation = desk.take({ tokens: 1000 });
      reservation.dispatched(0);
      reservation.responded(0, 200);
      reservation.release(0, failure('connection'));

      expect(desk.level('requests')).to.equal(9);
      expect(desk.level('tokens')).to.equal(5000);
    });

    it('gives back as told, per cause', () => {
      const refundOn = {
        rate_limited: 'all',
        server_error: 'none',
        overloaded: 'requests',
        cancelled: 'tokens',
      } as const;

      expect(settled({ refundOn }, undefined, failure('rate_limited', 429))).to.deep.equal([0, 0]);
      expect(settled({ refundOn }, undefined, failure('server_error', 500))).to.deep.equal([-1, -1000]);
      expect(settled({ refundOn }, undefined, failure('overloaded', 503))).to.deep.equal([0, -1000]);
      expect(settled({ refundOn }, undefined, DROPPED)).to.deep.equal([-1, 0]);
      expect(settled({ refundOn }, undefined, failure('connection'))).to.deep.equal([0, 0]);
    });

    it('gives back no more than was reserved', () => {
      expect(settled({}, 1500, failure('server_error', 500))).to.deep.equal([-1, -500]);
    });

    it('says what was reserved, used and given back', () => {
      const desk = new Desk([layer('account', both)], { settle: 'usage' });
      const reservation = desk.take({ tokens: 1000 });
      reservation.dispatched(0);
      reservation.settle(0, usage(200));
      reservation.settle(0, usage(300));

      expect(reservation.release(0, SUCCESS)).to.deep.equal({
        reservedTokens: 1000,
        usedTokens: 300,
        refundedTokens: 700,
        cooldownMs: 0,
      });
    });

    it('ends once', () => {
      const desk = new Desk([layer('account', both)]);
      const reservation = desk.take({ tokens: 1000 });

      expect(reservation.release(0, DROPPED_UNSENT)).to.not.be.undefined;
      expect(reservation.release(0, DROPPED_UNSENT)).to.be.undefined;
      reservation.settle(0, usage(5000));
      reservation.dispatched(0);
      expect(desk.level('tokens')).to.equal(6000);
    });
  });

  describe('as what the provider reports', () => {
    it('corrects the level down to what is left, less what was granted since', () => {
      const desk = new Desk([layer('account', both)]);
      const [first, second] = [desk.take(), desk.take()];
      first.dispatched(0);
      second.dispatched(20);
      desk.take();

      first.observe(20, hintsOf({ requests: { ...minute, remaining: 5 } }));
      expect(desk.level('requests')).to.be.closeTo(3, 0.03);
    });

    it('takes what was sent in one moment to have arrived in any order', () => {
      const desk = new Desk([layer('account', both)]);
      const [first, second, third] = [desk.take(), desk.take(), desk.take()];
      for (const [at, one] of [first, second, third].entries()) one.dispatched(at);

      // The first one arrived last, and its report has counted the others; the second one's is older.
      third.observe(2, hintsOf({ requests: { ...minute, remaining: 6 } }));
      first.observe(2, hintsOf({ requests: { ...minute, remaining: 4 } }));
      second.observe(2, hintsOf({ requests: { ...minute, remaining: 5 } }));
      expect(desk.level('requests')).to.be.closeTo(4, 0.01);
    });

    it('counts what has come back since the attempt arrived', () => {
      const desk = new Desk([layer('account', both)]);
      const reservation = desk.take();
      reservation.dispatched(0);
      desk.nowMs = 2000;

      reservation.observe(2000, hintsOf({ requests: { ...minute, remaining: 1 } }));
      expect(desk.level('requests')).to.equal(3);
    });

    it('never corrects upwards', () => {
      const desk = new Desk([layer('account', both)]);
      const reservation = desk.take({ tokens: 1000 });
      reservation.dispatched(0);

      reservation.observe(
        0,
        hintsOf({ requests: { ...minute, remaining: 500 }, tokens: { ...minute, remaining: 1e6 } }),
      );
      expect([desk.level('requests'), desk.level('tokens')]).to.deep.equal([9, 5000]);
    });

    it('ignores a report that is older than one it has', () => {
      const desk = new Desk([layer('account', both)]);
      const [first, second] = [desk.take(), desk.take()];
      first.dispatched(0);
      second.dispatched(20);

      second.observe(20, hintsOf({ requests: { ...minute, remaining: 6 } }));
      first.observe(20, hintsOf({ requests: { ...minute, remaining: 2 } }));
      expect(desk.level('requests')).to.be.closeTo(6, 0.03);
    });

    it('ignores reports of windows above a minute, and of less than nothing', () => {
      const desk = new Desk([layer('account', both)]);
      const reservation = desk.take();
      reservation.dispatched(0);

      reservation.observe(0, hintsOf({ requests: { ...minute, remaining: 0, windowMs: 86_400_000 } }));
      reservation.observe(0, hintsOf({ requests: { ...minute, remaining: -1 } }));
      expect(desk.level('requests')).to.equal(9);
    });

    it('reads what is left from the time until the limit is full again', () => {
      const desk = new Desk([layer('account', both)]);
      const reservation = desk.take();
      reservation.dispatched(0);

      reservation.observe(
        0,
        hintsOf({ tokens: { limit: 6000, remaining: undefined, resetMs: 45_000, windowMs: 60_000 } }),
      );
      expect(desk.level('tokens')).to.equal(1500);
    });

    it('corrects the layer that it is about, and no other', () => {
      const desk = new Desk([layer('account', both), layer('model', both)]);
      const reservation = desk.take();
      reservation.dispatched(0);

      reservation.observe(0, hintsOf({ requests: { ...minute, remaining: 2 } }));
      expect([desk.level('requests', 0), desk.level('requests', 1)]).to.deep.equal([9, 2]);
    });

    it('pauses everyone for the wait that one was told', () => {
      const desk = new Desk([layer('account', both)]);
      const reservation = desk.take();
      reservation.dispatched(0);

      expect(reservation.observe(0, hintsOf({ retryAfterMs: 2000 }))).to.equal(2000);
      desk.enqueue();
      expect(desk.drain()).to.deep.include({ granted: [], untilMs: 2000 });
    });

    it('pauses for a rejection that named no wait, and for one that named it in its error only', () => {
      const desk = new Desk([layer('account', both)]);
      desk.take().release(0, failure('rate_limited', 429));
      expect(desk.route.cooldown.waitMs(0)).to.equal(1000);

      const error = new SluiceError('overloaded', 'busy', { status: 503, retryAfterMs: 4000 });
      const other = new Desk([layer('account', both)]);
      expect(other.take().release(0, { kind: 'failure', error })?.cooldownMs).to.equal(4000);
    });

    it('does not count the hint of one attempt twice', () => {
      const desk = new Desk([layer('account', both)]);
      const reservation = desk.take();
      reservation.observe(0, hintsOf({ retryAfterMs: 2000 }));

      const error = new SluiceError('rate_limited', 'wait', { status: 429, retryAfterMs: 2000 });
      reservation.release(900, { kind: 'failure', error });
      expect(desk.route.cooldown.waitMs(900)).to.equal(1100);
    });

    it('lets the first one back go alone until its answer begins', () => {
      const desk = new Desk([layer('account', both)]);
      desk.route.cooldown.hint(0, 1000);
      const [first, second] = [desk.enqueue(), desk.enqueue()];
      desk.nowMs = 1000;
      const { granted, reservations } = desk.drain();
      expect(granted).to.deep.equal([first]);

      reservations[0]!.responded(1100, 429);
      desk.nowMs = 1300;
      expect(desk.drain().granted, 'a rejection is no all-clear').to.deep.equal([]);
      reservations[0]!.responded(1300, 200);
      desk.nowMs = desk.drain().untilMs;
      expect(desk.drain().granted).to.deep.equal([second]);
      expect(desk.nowMs).to.equal(1320);
    });

    it('sends the next one alone where the first one back was cancelled', () => {
      const desk = new Desk([layer('account', both)]);
      desk.route.cooldown.hint(0, 1000);
      const [, second, third] = [desk.enqueue(), desk.enqueue(), desk.enqueue()];
      desk.nowMs = 1000;
      desk.drain().reservations[0]!.release(1000, DROPPED_UNSENT);

      expect(desk.drain().granted).to.deep.equal([second]);
      expect(desk.quota.cancel(third)).to.be.true;
    });
  });

  it('keeps its promises for every history', () => {
    const step = fc.record({
      gapMs: fc.oneof(fc.constant(0), fc.nat(50), fc.nat(5000)),
      kind: fc.nat(9),
      pick: fc.nat(),
      tokens: fc.nat(3000),
    });
    const rates = fc.record({
      requestsPerMinute: fc.integer({ min: 1, max: 6000 }),
      burstRequests: fc.integer({ min: 1, max: 50 }),
      tokensPerMinute: fc.integer({ min: 100, max: 1e6 }),
      burstTokens: fc.integer({ min: 100, max: 1e5 }),
    });
    const outcomes = [SUCCESS, DROPPED, DROPPED_UNSENT, failure('server_error', 500), failure('connection')];
    const rules = fc.record({ settle: fc.constantFrom('usage' as const, 'reserved' as const), maxWaiting: fc.nat(30) });
    fc.assert(
      fc.property(fc.array(rates, { minLength: 1, maxLength: 3 }), rules, fc.array(step), (layers, given, steps) => {
        const desk = new Desk(
          layers.map((options, i) => layer(`layer ${i}`, options, 100)),
          given,
        );
        const waiting: QuotaTicket[] = [];
        const open: QuotaReservation[] = [];
        let released = 0;
        let granted = 0;
        for (const { gapMs, kind, pick, tokens } of steps) {
          desk.nowMs += gapMs;
          if (kind < 5) {
            const ticket = desk.ask({ tokens, explicit: pick % 2 === 0 }, { maxWaitMs: pick % 20_000 });
            if (ticket.kind === 'ticket') waiting.push(ticket);
          } else if (kind === 5 && waiting.length > 0) {
            const [ticket] = waiting.splice(pick % waiting.length, 1);
            expect(desk.quota.cancel(ticket!)).to.be.true;
          } else if (open.length > 0) {
            const [reservation] = open.splice(pick % open.length, 1);
            const outcome = outcomes[pick % outcomes.length]!;
            if (outcome !== DROPPED_UNSENT) reservation!.dispatched(desk.nowMs);
            if (pick % 3 === 0) reservation!.settle(desk.nowMs, usage(tokens));
            reservation!.release(desk.nowMs, outcome);
            released++;
          }
          const drained = desk.drain();
          for (const { ticket } of drained.expired) waiting.splice(waiting.indexOf(ticket), 1);
          for (const ticket of drained.granted) {
            // Strictly in order, and within the bound of the wait.
            expect(waiting.find(({ order }) => order < ticket.order)).to.be.undefined;
            expect(desk.nowMs - ticket.enqueuedAtMs).to.be.at.most(ticket.bound.limitMs + gapMs);
            waiting.splice(waiting.indexOf(ticket), 1);
          }
          expect(desk.quota.waiting).to.equal(waiting.length);
          granted += drained.granted.length;
          open.push(...drained.reservations);
          expect(drained.untilMs).to.be.above(desk.nowMs);
          expect(granted).to.equal(released + open.length);
          expect(desk.route.open).to.equal(open.length);
          for (let n = 0; n < layers.length; n++) {
            expect(desk.level('requests', n)).to.be.at.most(layers[n]!.burstRequests * (1 + 1e-9));
            expect(desk.level('tokens', n)).to.be.at.most(layers[n]!.burstTokens * (1 + 1e-9));
            expect(desk.level('tokens', n)).to.be.finite;
          }
        }
      }),
      { numRuns: 100 },
    );
  });
});
