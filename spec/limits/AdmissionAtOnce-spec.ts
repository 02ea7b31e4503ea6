import { expect } from 'chai';
import fc from 'fast-check';
import { DROPPED, DROPPED_UNSENT, SUCCESS } from '../../lib/core/outcome.ts';
import { Admission } from '../../lib/limits/Admission.ts';
import { AdmissionGrant } from '../../lib/limits/AdmissionGrant.ts';
import type { AdmissionOptions } from '../../lib/limits/AdmissionOptions.ts';
import type { AdmissionTicket } from '../../lib/limits/AdmissionPool.ts';
import type { AdmissionRefusal } from '../../lib/limits/admissionRefusals.ts';
import type { AdmissionAsk } from '../../lib/limits/AdmissionStep.ts';
import { admissionSnapshot } from '../../lib/operators/admissionSnapshot.ts';
import { AdmissionBench, failure, left, usage } from '../helpers/admissionBench.ts';
import { hintsOf } from '../helpers/hintsOf.ts';

const OUTCOMES = [
  SUCCESS,
  failure('server_error', { status: 500 }),
  failure('rate_limited', { status: 429 }),
  failure('rate_limited', { status: 429, retryAfterMs: 150 }),
  failure('overloaded', { status: 529 }),
  failure('connection'),
  failure('quota_exhausted', { status: 429, retryAfterMs: 200 }),
  DROPPED,
  DROPPED_UNSENT,
];

const OPTIONS: readonly AdmissionOptions[] = [
  {},
  {
    maxInFlight: 4,
    quota: { account: { requestsPerMinute: 6000, burstRequests: 3, tokensPerMinute: 60_000, burstTokens: 900 } },
    models: {
      m: {
        breaker: { consecutiveFailures: 2, openMs: 100, rampMs: 100, halfOpenMaxMs: 80, halfOpenShare: 0.5 },
        concurrency: { initial: 2, min: 1, max: 4, growEveryMs: 50 },
      },
      n: {
        deployments: [
          { client: 'a', quota: { requestsPerMinute: 3000, burstRequests: 2 }, concurrency: { limit: 2 } },
          { client: 'b', breaker: { consecutiveFailures: 1, openMs: 60, rampMs: 0 } },
        ],
        quota: { tokensPerMinute: 90_000, burstTokens: 1500 },
      },
    },
    tenants: {
      default: { maxInFlight: 2, requestsPerMinute: 3000, burstRequests: 2 },
      x: { reservedInFlight: 2, weight: 3 },
      y: { tokensPerMinute: 600, burstTokens: 400, weight: 0.7 },
    },
    priorities: { levels: { batch: { maxInFlight: 2 } }, ageingMs: 50 },
  },
  {
    quota: { account: { requestsPerMinute: 1200, burstRequests: 1, settle: 'usage', maxWaiting: 1, maxWaitMs: 90 } },
    models: { default: { concurrency: { limit: 3 } } },
    tenants: { x: { reservedInFlight: 1 }, y: { weight: 0.3 } },
  },
];

/** One of two machines that see the same: it says all that it did, and where it stands. */
class Side {
  nowMs = 0;
  readonly machine: Admission;
  readonly tickets: AdmissionTicket[] = [];
  readonly grants: AdmissionGrant[] = [];
  readonly events: unknown[] = [];
  #draws = 0;

  constructor(options: AdmissionOptions) {
    // Random, and the same on both sides as long as they draw equally often.
    const random = (): number => ((this.#draws = (this.#draws * 7 + 3) % 97), this.#draws / 97);
    this.machine = new Admission(options, { now: () => this.nowMs }, random);
  }

  enter(answer: AdmissionGrant | AdmissionTicket | AdmissionRefusal, name: number): void {
    if (answer instanceof AdmissionGrant) this.#granted(answer, name);
    else if (answer.kind === 'refused') this.events.push([name, answer]);
    else {
      answer.owner = name;
      this.tickets.push(answer);
    }
  }

  serve(): void {
    for (let step = this.machine.next(); ; step = this.machine.next()) {
      if (step.kind === 'wait') return void this.events.push(step);
      for (const { target, breaker, revoked } of step.changes) {
        this.events.push([target.name, breaker, revoked.map(({ owner }) => owner)]);
      }
      if (step.kind === 'changed') continue;
      this.tickets.splice(this.tickets.indexOf(step.ticket), 1);
      if (step.kind === 'granted') this.#granted(step.grant, step.ticket.owner as number);
      else this.events.push([step.ticket.owner, step.refusal]);
    }
  }

  shown(): unknown {
    const { machine, nowMs, events } = this;
    const tenants = [undefined, 'x', 'y', 'z'].map((name) => {
      const { tag, open, inFlight, waiting, layer } = machine.tenants.find(name) ?? {};
      return [tag, open, inFlight, waiting, layer?.snapshot(nowMs)];
    });
    const pools = [...machine.pools].map(([model, pool]) => {
      const targets = pool.targets.map(({ breaker, cooldown, layers, unsent }) => {
        const levels = layers.map((layer) => layer.snapshot(nowMs));
        return [breaker.course, cooldown.waitMs(nowMs), levels, unsent.size];
      });
      const turns = machine.rules.levels.map((_, level) => pool.hasTurn(level, nowMs));
      return [model, pool.retryAfterMs(nowMs, 1), turns, pool.forgettable(nowMs), targets];
    });
    const { owedSlots, nextWakeAtMs } = machine.tenants;
    return [events.splice(0), admissionSnapshot(machine, nowMs), tenants, pools, owedSlots, nextWakeAtMs];
  }

  #granted(grant: AdmissionGrant, name: number): void {
    grant.owner = name;
    this.grants.push(grant);
    this.events.push([name, grant.target.name, grant.reservedTokens, this.machine.levels.levelOf(grant.place)]);
  }
}

const ask: fc.Arbitrary<AdmissionAsk> = fc.record({
  model: fc.constantFrom('m', 'n', 'other', 'another'),
  tenant: fc.constantFrom(undefined, 'x', 'y', 'z'),
  priority: fc.constantFrom(undefined, 'interactive', 'batch'),
  cost: fc.record({
    requests: fc.constantFrom(0, 1, 1, 1, 2),
    tokens: fc.constantFrom(0, 10, 300, 0.1, 100_000),
    explicit: fc.constantFrom(false, false, true),
  }),
  maxWaitMs: fc.constantFrom(undefined, undefined, 0, 40, Infinity),
  deadlineAtMs: fc.constantFrom(undefined, undefined, undefined, 500, 2000),
});

const deed = fc.oneof(
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('ask' as const), ask }) },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constantFrom('send' as const, 'end' as const, 'close' as const, 'close' as const, 'hear' as const),
      at: fc.nat(20),
      outcome: fc.constantFrom(0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('leave' as const), at: fc.nat(20) }) },
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constant('pass' as const), ms: fc.constantFrom(0.5, 10, 40, 120, 400) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('lend' as const), slots: fc.constantFrom(0, 1, 3, Infinity) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('reload' as const), to: fc.constantFrom(...OPTIONS) }) },
);

describe('Admission at once', () => {
  it('grants, refuses and counts as if everyone had taken a place in the queue', () => {
    const same = fc.property(fc.constantFrom(...OPTIONS), fc.array(deed, { maxLength: 60 }), (options, deeds) => {
      const [queued, direct] = [new Side(options), new Side(options)];
      deeds.forEach((step, name) => {
        if (step.kind === 'ask') {
          queued.enter(queued.machine.ask(step.ask), name);
          queued.serve();
          direct.enter(direct.machine.admit(step.ask), name);
          direct.serve();
        } else for (const side of [queued, direct]) act(side, step);
        expect(direct.shown()).to.deep.equal(queued.shown());
      });
    });
    fc.assert(same, { numRuns: 250 });
  });

  it('tells a rate that is being learned that nobody waits for it', () => {
    const rates = (way: 'ask' | 'admit'): unknown[] => {
      const side = new Side({ models: { m: {} } });
      const { machine, grants, tickets } = side;
      const shown: unknown[] = [];
      const go = (afterMs: number, outcome = SUCCESS): void => {
        side.nowMs += afterMs;
        side.enter(machine[way]({ model: 'm', cost: { requests: 1, tokens: 0, explicit: false } }), 0);
        side.serve();
        for (const grant of grants.splice(0)) {
          grant.dispatched(side.nowMs);
          machine.end(grant, outcome);
          machine.close(grant);
        }
        shown.push(machine.poolOf('m').targets[0]?.snapshotLayers(side.nowMs)[0]?.requests?.perMinute);
      };
      const leave = (): void => void tickets.splice(0).forEach((ticket) => machine.cancel(ticket));
      for (let i = 0; i < 40; i++) go(100);
      go(0, failure('rate_limited', { status: 429 }));
      for (let i = 0; i < 200 && tickets.length === 0; i++) go(45 + (i === 0 ? 2500 : 0));
      leave();
      for (const afterMs of [300, 3000, 1000]) {
        go(afterMs);
        for (let i = 0; i < 30; i++) go(0);
        leave();
      }
      return shown;
    };
    const learned = rates('admit');
    expect(learned).to.deep.equal(rates('ask'));
    expect(new Set(learned).size).to.be.above(3);
  });

  describe('where nobody waits', () => {
    const atOnce = (bench: AdmissionBench, more: Partial<AdmissionAsk> = {}): string => {
      const cost = { requests: 1, tokens: 0, explicit: false };
      const answer = bench.machine.admit({ model: 'm', cost, ...more });
      return answer instanceof AdmissionGrant ? answer.target.name : answer.kind;
    };
    const two = { m: { deployments: [{ client: 'a' }, { client: 'b', quota: { requestsPerMinute: 60 } }] } };

    it('grants without a place in the queue, at the deployment that is least loaded', () => {
      const bench = new AdmissionBench({ models: { m: { deployments: [{ client: 'a' }, { client: 'b' }] } } });
      const limited = new AdmissionBench({ models: two });
      expect([atOnce(bench), atOnce(limited)]).to.deep.equal(['m@a', 'm@a']);
      const slots = { deployments: [{ client: 'a' }, { client: 'b' }], concurrency: { limit: 2 } };
      const loaded = new AdmissionBench({ models: { m: slots } });
      expect([1, 2, 3, 4].map(() => atOnce(loaded))).to.deep.equal(['m@a', 'm@b', 'm@a', 'm@b']);
      expect([atOnce(loaded), loaded.machine.waiting, loaded.machine.inFlight]).to.deep.equal(['ticket', 1, 4]);
    });

    it('grants one that need not wait with no time to wait, and none whose deadline has passed', () => {
      const bench = new AdmissionBench();
      bench.nowMs = 100;
      expect(atOnce(bench, { maxWaitMs: 0 })).to.equal('m');
      expect(atOnce(bench, { deadlineAtMs: 101 })).to.equal('m');
      expect(atOnce(bench, { deadlineAtMs: 100 })).to.equal('refused');
      expect(() => atOnce(bench, { maxWaitMs: -1 })).to.throw('maxWaitMs must be 0 or more, or Infinity');
    });

    for (const [name, options, change] of [
      ['slots', { maxInFlight: 1 }, (bench: AdmissionBench) => void bench.take({ model: 'n' })],
      ['slots that are lent', {}, ({ machine }: AdmissionBench) => void (machine.lent = 0)],
      ['a ceiling', { priorities: { levels: { interactive: { maxInFlight: 1 } } } }, undefined],
      ['a slot of the tenant', { tenants: { t: { maxInFlight: 1 } } }, undefined],
      ['a quota of the tenant', { tenants: { t: { requestsPerMinute: 60 } } }, undefined],
      ['a slot of the deployment', { models: { m: { concurrency: { limit: 1 } } } }, undefined],
      ['a quota', { quota: { account: { requestsPerMinute: 60 } } }, undefined],
      ['a quota of tokens', { quota: { account: { tokensPerMinute: 60, burstTokens: 1 } } }, undefined],
      ['the end of a pause', {}, (bench: AdmissionBench) => void bench.target().cooldown.hint(0, 10)],
    ] as const) {
      it(`lets one wait that lacks ${name}`, () => {
        const bench = new AdmissionBench(options as AdmissionOptions);
        const cost = { requests: 1, tokens: 1, explicit: false };
        if (change) change(bench);
        else expect(atOnce(bench, { tenant: 't', cost })).to.equal('m');
        expect(atOnce(bench, { tenant: 't', cost })).to.equal('ticket');
        expect(bench.serve().granted).to.deep.equal([]);
      });
    }

    it('refuses where the account has run out', () => {
      const bench = new AdmissionBench({ models: { m: {} } });
      bench.target().exhausted(5);
      expect(atOnce(bench)).to.equal('refused');
      bench.nowMs = 5;
      expect(atOnce(bench)).to.equal('m');
    });

    it('leaves to the queue what is to be asked elsewhere, or of a breaker', () => {
      const breaker = { consecutiveFailures: 1, openMs: 10, rampMs: 10, halfOpenMaxMs: 30 };
      const gated = new AdmissionBench({ models: { m: {} } });
      gated.target().gate = {
        closedMs: 0,
        places: Infinity,
        decides: () => false,
        lets: () => true,
        waitsAlone: () => false,
      };
      expect(atOnce(gated)).to.equal('ticket');
      const bench = new AdmissionBench({ models: { m: { breaker } } });
      bench.end(bench.take(), failure('server_error', { status: 500 }));
      expect(atOnce(bench)).to.equal('refused');
      bench.nowMs = 10;
      const probe = bench.take();
      bench.serve();
      expect(atOnce(bench, { model: 'n' }), 'nothing is unsent that could be revoked').to.equal('n');
      bench.end(probe, SUCCESS);
      expect(atOnce(bench), 'it is ramping').to.equal('ticket');
    });

    it('leaves to the queue what comes while a probe could get stuck unsent', () => {
      const breaker = { consecutiveFailures: 1, openMs: 10, rampMs: 0, halfOpenMaxMs: 30 };
      const bench = new AdmissionBench({ models: { m: { breaker } } });
      bench.end(bench.take(), failure('server_error', { status: 500 }));
      bench.nowMs = 10;
      bench.join();
      const { grant } = bench.granted();
      expect(bench.machine.next()).to.deep.equal({ kind: 'wait', untilMs: 40 });
      expect(atOnce(bench, { model: 'n' })).to.equal('ticket');
      expect(bench.serve().granted.length).to.equal(1);
      grant.firstContent();
      expect(bench.machine.next()).to.deep.equal({ kind: 'wait', untilMs: Infinity });
      expect(atOnce(bench, { model: 'n' })).to.equal('n');
    });

    it('leaves to the queue what comes before one that had to make room has been told', () => {
      const bench = new AdmissionBench({ maxInFlight: 1, quota: { account: { maxWaiting: 1 } } });
      const running = bench.take();
      bench.join({ priority: 'batch' });
      const urgent = bench.join();
      bench.end(running, SUCCESS);
      bench.machine.cancel(urgent);
      expect(bench.machine.waiting).to.equal(0);
      expect(atOnce(bench)).to.equal('ticket');
      expect(bench.serve()).to.deep.include({ untilMs: Infinity });
    });
  });

  it('lets nobody go before those who wait, for whatever they wait', () => {
    const bench = new AdmissionBench({ quota: { account: { requestsPerMinute: 60 } } });
    bench.take();
    const waiting = bench.join();
    const cost = { requests: 0, tokens: 0, explicit: false };
    const answer = bench.machine.admit({ model: 'n', cost });
    expect(answer).to.include({ kind: 'ticket' });
    expect(bench.serve().granted).to.deep.equal([answer]);
    expect(bench.machine.cancel(waiting)).to.equal(true);
    expect(bench.machine.admit({ model: 'n', cost })).to.be.instanceOf(AdmissionGrant);
  });
});

type Deed = typeof deed extends fc.Arbitrary<infer D> ? D : never;

function act(side: Side, step: Exclude<Deed, { kind: 'ask' }>): void {
  const { machine, nowMs, grants, tickets } = side;
  if (step.kind === 'pass') side.nowMs += step.ms;
  else if (step.kind === 'lend') machine.lent = step.slots;
  else if (step.kind === 'reload') machine.reload(step.to);
  else if (step.kind === 'leave') {
    const [ticket] = tickets.splice(step.at % (tickets.length || 1), 1);
    if (ticket) machine.cancel(ticket);
  } else {
    const grant = grants[step.at % (grants.length || 1)];
    if (grant === undefined) return;
    if (step.kind === 'send') grant.dispatched(nowMs, step.at % 2 === 0);
    else if (step.kind === 'hear') {
      grant.sent(nowMs);
      grant.responded(nowMs, step.outcome === 0 ? 200 : 429);
      const requests = step.outcome > 4 ? { ...left(1), limit: 60 } : undefined;
      grant.observe(nowMs, hintsOf({ retryAfterMs: step.outcome === 3 ? 60 : undefined, requests }));
      grant.settle(nowMs, usage(step.at * 10));
      grant.firstContent();
    } else {
      const outcome = OUTCOMES[step.outcome] ?? SUCCESS;
      if (outcome !== DROPPED_UNSENT) grant.dispatched(nowMs);
      side.events.push(machine.end(grant, outcome, 30)?.settlement);
      if (step.kind === 'close') {
        machine.close(grant);
        grants.splice(grants.indexOf(grant), 1);
      }
    }
  }
  side.serve();
}
