import { expect } from 'chai';
import fc from 'fast-check';
import { DROPPED, DROPPED_UNSENT, SUCCESS } from '../../lib/core/outcome.ts';
import { Cooldown } from '../../lib/limits/Cooldown.ts';
import { Quota } from '../../lib/limits/Quota.ts';
import type { QuotaAsk, QuotaRefusal } from '../../lib/limits/Quota.ts';
import { QuotaLayer } from '../../lib/limits/QuotaLayer.ts';
import { checkedQuotaRules } from '../../lib/limits/QuotaOptions.ts';
import { QuotaReservation } from '../../lib/limits/QuotaReservation.ts';
import { QuotaRoute } from '../../lib/limits/QuotaRoute.ts';
import type { QuotaTicket } from '../../lib/limits/QuotaRoute.ts';
import { failure, usage } from '../helpers/admissionBench.ts';

const OUTCOMES = [
  SUCCESS,
  failure('server_error', { status: 500 }),
  failure('rate_limited', { status: 429, retryAfterMs: 80 }),
  failure('rate_limited', { status: 429 }),
  DROPPED,
  DROPPED_UNSENT,
];

/** One of two quotas that see the same: it says all that it did, and where it stands. */
class Side {
  readonly quota: Quota;
  readonly tickets = new Map<QuotaTicket, number>();
  readonly reservations: QuotaReservation[] = [];
  readonly routes: readonly QuotaRoute[];
  readonly #layers: readonly QuotaLayer[];
  readonly #cooldown: Cooldown;
  #events: unknown[] = [];
  #draws = 0;

  constructor(maxWaiting: number) {
    this.quota = new Quota(checkedQuotaRules({ settle: 'usage', maxWaiting, maxWaitMs: 200 }));
    const account = new QuotaLayer('account', { requestsPerMinute: 1200, burstRequests: 3 }, 10, 0);
    const own = new QuotaLayer('own', { requestsPerMinute: 6000, tokensPerMinute: 60_000, burstTokens: 600 }, 10, 0);
    const random = (): number => ((this.#draws = (this.#draws * 7 + 3) % 97), this.#draws / 97);
    this.#layers = [account, own];
    this.#cooldown = new Cooldown({ unhintedMs: 50, trialMs: 40, rampMs: 60 }, random);
    this.routes = [[account], [account, own]].map((layers) => new QuotaRoute(layers, this.#cooldown, account));
  }

  enter(answer: QuotaReservation | QuotaTicket | QuotaRefusal, name: number, nowMs: number): void {
    if (answer instanceof QuotaReservation) this.#granted(answer, name);
    else if (answer.kind === 'refused') this.#events.push([name, answer]);
    else this.tickets.set(answer, name);
    this.serve(nowMs);
  }

  serve(nowMs: number): void {
    for (let step = this.quota.next(nowMs); ; step = this.quota.next(nowMs)) {
      if (step.kind === 'wait') return void this.#events.push(step);
      const name = this.tickets.get(step.ticket) as number;
      this.tickets.delete(step.ticket);
      if (step.kind === 'granted') this.#granted(step.reservation, name);
      else this.#events.push([name, step.refusal]);
    }
  }

  shown(nowMs: number): unknown {
    const events = this.#events;
    this.#events = [];
    const levels = this.#layers.map((layer) => layer.snapshot(nowMs));
    const open = this.routes.map((route) => [route.open, route.line.size]);
    return [events, levels, open, this.quota.waiting, this.#cooldown.certainMs(nowMs), this.#cooldown.waitMs(nowMs)];
  }

  #granted(reservation: QuotaReservation, name: number): void {
    this.reservations.push(reservation);
    this.#events.push([name, 'goes', reservation.reservedTokens]);
  }
}

const deed = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('asks' as const),
      route: fc.nat(1),
      ask: fc.record({
        cost: fc.record({
          requests: fc.constantFrom(0, 1, 1, 1),
          tokens: fc.constantFrom(0, 50, 400, 90_000),
          explicit: fc.boolean(),
        }),
        maxWaitMs: fc.constantFrom(undefined, undefined, 0, 60, Infinity),
        deadlineAtMs: fc.constantFrom(undefined, undefined, 300, 1000),
      }),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constantFrom(
        'is sent' as const,
        'settles' as const,
        'ends' as const,
        'ends' as const,
        'leaves' as const,
      ),
      at: fc.nat(10),
      outcome: fc.constantFrom(0, 0, 0, 1, 2, 3, 4, 5),
    }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('passes' as const), ms: fc.constantFrom(1, 20, 90, 400) }) },
);

describe('Quota at once', () => {
  it('grants, refuses and counts as if everyone had taken a place in line', () => {
    const same = fc.property(fc.constantFrom(0, 2, 100), fc.array(deed, { maxLength: 60 }), (maxWaiting, deeds) => {
      const [queued, direct] = [new Side(maxWaiting), new Side(maxWaiting)];
      let nowMs = 0;
      deeds.forEach((step, name) => {
        if (step.kind === 'passes') nowMs += step.ms;
        for (const side of [queued, direct]) {
          const { quota, routes, tickets, reservations } = side;
          if (step.kind === 'asks') {
            const way = side === queued ? 'enqueue' : 'take';
            side.enter(quota[way](nowMs, routes[step.route] as QuotaRoute, step.ask), name, nowMs);
          } else if (step.kind !== 'passes') {
            const one = reservations[step.at % (reservations.length || 1)];
            if (step.kind === 'is sent') one?.dispatched(nowMs, step.at % 2 === 0);
            else if (step.kind === 'settles') one?.settle(nowMs, usage(step.at * 60));
            else if (step.kind === 'ends' && one) {
              one.release(nowMs, OUTCOMES[step.outcome] ?? SUCCESS);
              reservations.splice(reservations.indexOf(one), 1);
            } else if (step.kind === 'leaves') {
              const ticket = [...tickets.keys()][step.at % (tickets.size || 1)];
              if (ticket && quota.cancel(ticket)) tickets.delete(ticket);
            }
          }
          side.serve(nowMs);
        }
        expect(direct.shown(nowMs)).to.deep.equal(queued.shown(nowMs));
      });
    });
    fc.assert(same, { numRuns: 250 });
  });

  const taken = ({ quota, routes }: Side, ask: Partial<QuotaAsk> = {}, route = 0): string => {
    const cost = { requests: 1, tokens: 0, explicit: false };
    const answer = quota.take(5, routes[route] as QuotaRoute, { cost, ...ask });
    return answer instanceof QuotaReservation ? 'goes' : answer.kind;
  };

  it('takes no place for one for whom nobody waits, and there is room and time', () => {
    const side = new Side(100);
    expect([taken(side, { maxWaitMs: 0 }), taken(side, { deadlineAtMs: 6 }), side.quota.waiting]).to.deep.equal([
      ...['goes', 'goes'],
      0,
    ]);
    expect(taken(side, { deadlineAtMs: 5 })).to.equal('refused');
    expect([taken(side), taken(side)]).to.deep.equal(['goes', 'ticket']);
    const nothing = { requests: 0, tokens: 0, explicit: false };
    expect(taken(side, { cost: nothing }, 1), 'someone waits on another way').to.equal('ticket');
  });
});
