import { expect } from 'chai';
import fc from 'fast-check';
import { SluiceError } from '../../lib/core/errors.ts';
import { SUCCESS } from '../../lib/core/outcome.ts';
import type { Outcome } from '../../lib/core/outcome.ts';
import { Admission } from '../../lib/limits/Admission.ts';
import type { AdmissionGrant } from '../../lib/limits/AdmissionGrant.ts';
import type { AdmissionOptions } from '../../lib/limits/AdmissionOptions.ts';
import type { AdmissionTicket } from '../../lib/limits/AdmissionPool.ts';
import type { AdmissionAsk } from '../../lib/limits/AdmissionStep.ts';
import { parsePolicy } from '../../lib/policy/parsePolicy.ts';
import { seededRandom } from '../../lib/testing/seededRandom.ts';

const failure = (code: ConstructorParameters<typeof SluiceError>[0], fields = {}): Outcome => ({
  kind: 'failure',
  error: new SluiceError(code, 'it failed', fields),
});

/** A machine in time that is moved by hand. */
class Bench {
  nowMs = 0;
  readonly machine: Admission;
  readonly running = new Map<AdmissionGrant, AdmissionTicket>();
  readonly refused: string[] = [];

  constructor(options: AdmissionOptions) {
    this.machine = new Admission(options, { now: () => this.nowMs }, seededRandom(1));
  }

  ask(ask: Partial<AdmissionAsk> = {}): AdmissionTicket {
    const ticket = this.machine.ask({ model: 'm', cost: { requests: 1, tokens: 0, explicit: true }, ...ask });
    if (ticket.kind === 'refused') throw new Error(ticket.code);
    return ticket;
  }

  /** Grants what may go now. Returns whom. */
  serve(): AdmissionTicket[] {
    const granted: AdmissionTicket[] = [];
    for (let step = this.machine.next(); step.kind !== 'wait'; step = this.machine.next()) {
      if (step.kind === 'refused') this.refused.push(step.refusal.code);
      if (step.kind !== 'granted') continue;
      step.grant.dispatched(this.nowMs);
      this.running.set(step.grant, step.ticket);
      granted.push(step.ticket);
    }
    return granted;
  }

  /** Ends the one that runs longest, or another. */
  end(outcome: Outcome = SUCCESS, grant: AdmissionGrant | undefined = this.running.keys().next().value): void {
    if (grant === undefined) throw new Error('nothing runs');
    this.running.delete(grant);
    this.machine.end(grant, outcome);
    this.machine.close(grant);
  }

  reload(options: AdmissionOptions): AdmissionTicket[] {
    this.machine.reload(options);
    return this.serve();
  }

  requests(name: string, model = 'm'): number | undefined {
    const layers = this.machine.poolOf(model).targets.flatMap((target) => target.snapshotLayers(this.nowMs));
    return layers.find(({ layer }) => layer === name)?.requests?.level;
  }
}

const perMinute = (requestsPerMinute: number, burstRequests: number): AdmissionOptions => ({
  quota: { account: { requestsPerMinute, burstRequests, arrivalMarginMs: 0 } },
});

describe('Admission.reload', () => {
  it('keeps what is in flight in every count, and gives it back there', () => {
    const bench = new Bench({ tenants: { t: { maxInFlight: 5 } } });
    for (let i = 0; i < 3; i++) bench.ask({ tenant: 't', priority: 'batch' });
    bench.serve();
    const waiting = bench.ask({ tenant: 't', priority: 'batch' });
    bench.reload({
      maxInFlight: 3,
      tenants: { t: { maxInFlight: 3 } },
      models: { m: { concurrency: { limit: 3 } } },
      priorities: { order: ['interactive', 'batch'], levels: { batch: { maxInFlight: 3 } } },
    });
    const { machine } = bench;
    const counts = (): number[] => {
      const [target] = machine.poolOf('m').targets;
      return [
        machine.inFlight,
        ...machine.levels.inFlight,
        machine.tenants.find('t')?.inFlight ?? -1,
        target?.inFlight ?? -1,
      ];
    };
    expect(counts()).to.deep.equal([3, 0, 3, 3, 3]);
    expect(bench.serve()).to.deep.equal([]);
    bench.end();
    expect(bench.serve()).to.deep.equal([waiting]);
    for (let i = 0; i < 3; i++) bench.end();
    expect(counts()).to.deep.equal([0, 0, 0, 0, 0]);
  });

  it('lets those who wait go at once where a limit rises, in their order, and wait where it falls', () => {
    for (const [few, more] of [
      [{ maxInFlight: 1 }, { maxInFlight: 3 }],
      [{ models: { m: { concurrency: { limit: 1 } } } }, { models: { m: { concurrency: { limit: 3 } } } }],
      [{ tenants: { t: { maxInFlight: 1 } } }, { tenants: { t: { maxInFlight: 3 } } }],
      [
        { priorities: { order: ['only'], levels: { only: { maxInFlight: 1 } } } },
        { priorities: { order: ['only'], levels: { only: { maxInFlight: 3 } } } },
      ],
    ] as const) {
      const bench = new Bench(few);
      const tickets = Array.from({ length: 4 }, () => bench.ask({ tenant: 't' }));
      expect(bench.serve()).to.deep.equal(tickets.slice(0, 1));
      expect(bench.reload(more)).to.deep.equal(tickets.slice(1, 3));
      bench.reload(few);
      bench.end();
      bench.end();
      expect(bench.serve()).to.deep.equal([]);
      bench.end();
      expect(bench.serve()).to.deep.equal(tickets.slice(3));
    }
  });

  it('keeps the levels of buckets, as far as they fit', () => {
    const bench = new Bench(perMinute(60, 10));
    for (let i = 0; i < 4; i++) bench.ask();
    bench.serve();
    expect(bench.requests('account')).to.equal(6);
    bench.reload(perMinute(120, 20));
    expect(bench.requests('account')).to.equal(6);
    bench.nowMs += 1000;
    expect(bench.requests('account')).to.equal(8);
    bench.reload(perMinute(120, 5));
    expect(bench.requests('account')).to.equal(5);
  });

  it('lets debts stand, and corrects by usage what was taken before it', () => {
    const tokens = (tokensPerMinute: number): AdmissionOptions => ({
      quota: { account: { tokensPerMinute, burstTokens: 1000, settle: 'usage', arrivalMarginMs: 0 } },
      models: { m: { quota: { tokensPerMinute, burstTokens: 1000 } } },
      tenants: { t: { tokensPerMinute, burstTokens: 1000 } },
    });
    const bench = new Bench(tokens(6000));
    bench.ask({ tenant: 't', cost: { requests: 1, tokens: 5000, explicit: true } });
    bench.serve();
    bench.reload(tokens(60_000));
    const levels = (): (number | undefined)[] => {
      const [target] = bench.machine.poolOf('m').targets;
      const shown = (target?.snapshotLayers(bench.nowMs) ?? []).map((layer) => layer.tokens?.level);
      return [...shown.slice(0, 2), bench.machine.tenants.find('t')?.layer?.tokens?.level(bench.nowMs)];
    };
    expect(levels()).to.deep.equal([-4000, -4000, -4000]);
    const [grant] = bench.running.keys();
    const usage = { inputTokens: 100, outputTokens: 200, cachedInputTokens: undefined, reasoningTokens: undefined };
    grant?.settle(bench.nowMs, { ...usage, totalTokens: 300 });
    bench.end();
    expect(levels()).to.deep.equal([700, 700, 700]);
  });

  it('lets a new arrival margin hold for what is taken from then on', () => {
    const rates = (arrivalMarginMs: number): AdmissionOptions => ({
      quota: { account: { requestsPerMinute: 600, burstRequests: 5, arrivalMarginMs } },
    });
    const startsAfter = (...margins: number[]): number => {
      const [first = 0, ...others] = margins;
      const bench = new Bench(rates(first));
      for (let i = 0; i < 5; i++) bench.ask();
      bench.serve();
      bench.nowMs += 1000;
      for (const margin of others) bench.reload(rates(margin));
      for (let i = 0; i < 6; i++) bench.ask();
      const fromMs = bench.nowMs;
      for (let granted = bench.serve().length; granted < 6; granted += bench.serve().length) bench.nowMs++;
      return bench.nowMs - fromMs;
    };
    expect(startsAfter(0)).to.be.within(100, 101);
    expect(startsAfter(200, 0)).to.be.within(100, 101);
    expect(startsAfter(200)).to.be.within(300, 306);
    expect(startsAfter(0, 200)).to.be.within(300, 306);
    expect(startsAfter(0, 200, 50, 0, 100)).to.be.within(200, 204);
  });

  it('keeps to the margin of arrival that a model has, and to the widest of its deployments', () => {
    const startsAfter = (models: AdmissionOptions['models']): number => {
      const bench = new Bench({ models });
      for (let i = 0; i < 6; i++) bench.ask();
      for (let granted = bench.serve().length; granted < 6; granted += bench.serve().length) bench.nowMs++;
      return bench.nowMs;
    };
    const quota = { requestsPerMinute: 600, burstRequests: 5 };
    const at = (...margins: number[]): AdmissionOptions['models'] => ({
      m: { quota, deployments: margins.map((arrivalMarginMs, i) => ({ client: `c${i}`, quota: { arrivalMarginMs } })) },
    });
    expect(startsAfter({ m: { quota } })).to.be.within(200, 204);
    expect(startsAfter(at(0))).to.be.within(100, 101);
    expect(startsAfter(at(50, 300))).to.be.within(400, 408);
    const { models } = parsePolicy({ models: { m: { quota: { ...quota, arrivalMarginMs: 50 } } } });
    expect(startsAfter(models)).to.be.within(150, 152);
  });

  it('begins a rate no fuller than what stood there: a limit that moves to another layer is no second burst', () => {
    const bench = new Bench(perMinute(60, 10));
    for (let i = 0; i < 10; i++) bench.ask();
    expect(bench.serve()).to.have.length(10);
    for (let i = 0; i < 5; i++) bench.ask();
    const rates = { requestsPerMinute: 60, burstRequests: 10 };
    expect(bench.reload({ models: { m: { deployments: [{ quota: rates }] } } })).to.have.length(0);
    expect(bench.reload({ models: { m: { quota: rates } } })).to.have.length(0);
    expect(bench.reload({ quota: { clients: { main: rates } } })).to.have.length(0);
    bench.nowMs += 2000;
    expect(bench.serve()).to.have.length(2);
  });

  it('keeps cooldowns and exhausted accounts', () => {
    const bench = new Bench({});
    bench.ask();
    bench.serve();
    bench.end(failure('rate_limited', { status: 429, retryAfterMs: 5000 }));
    const waiting = bench.ask();
    expect(bench.reload({ maxInFlight: 9, quota: { account: { cooldown: { jitter: 0 } } } })).to.deep.equal([]);
    bench.nowMs += 6000;
    expect(bench.serve()).to.deep.equal([waiting]);
    bench.end(failure('quota_exhausted', { status: 429, retryAfterMs: 60_000 }));
    bench.reload({ maxInFlight: 8 });
    expect(() => bench.ask()).to.throw('circuit_open');
  });

  it('keeps an open breaker open as long as it was to be, and counts by the new rules from then on', () => {
    const rules = (consecutiveFailures: number, openMs: number): AdmissionOptions => ({
      models: { m: { breaker: { consecutiveFailures, openMs, errorRatio: Infinity } } },
    });
    const bench = new Bench(rules(2, 10_000));
    const fail = (): void => {
      bench.ask();
      bench.serve();
      bench.end(failure('server_error', { status: 500 }));
    };
    fail();
    bench.reload(rules(3, 10_000));
    fail();
    bench.ask();
    bench.reload(rules(2, 10_000));
    expect(bench.serve()).to.deep.equal([]);
    bench.end(failure('server_error', { status: 500 }));
    expect(bench.machine.poolOf('m').targets[0]?.breaker.state).to.equal('open');
    bench.reload(rules(2, 60_000));
    bench.nowMs += 9000;
    expect(() => bench.ask()).to.throw('circuit_open');
    bench.nowMs += 1000;
    bench.ask();
    expect(bench.serve()).to.have.length(1);
  });

  it('brings adaptive limits between their new bounds', () => {
    const limits = (min: number, max: number): AdmissionOptions => ({
      models: { m: { concurrency: { initial: max, min, max } } },
    });
    const bench = new Bench(limits(4, 20));
    bench.ask();
    bench.serve();
    bench.end(failure('rate_limited', { status: 429, retryAfterMs: 1 }));
    const limit = (): number | undefined => bench.machine.poolOf('m').targets[0]?.limit;
    expect(limit()).to.equal(14);
    bench.reload(limits(4, 30));
    expect(limit()).to.equal(14);
    bench.reload(limits(16, 30));
    expect(limit()).to.equal(16);
    bench.reload(limits(2, 9));
    expect(limit()).to.equal(9);
  });

  it('keeps a learned rate while what is configured there is the same, and else begins from that', () => {
    const bench = new Bench(perMinute(6000, 100));
    const learned = (): number | undefined => {
      const [target] = bench.machine.poolOf('m').targets;
      return target?.learned.layer.requests?.perMinute;
    };
    for (let i = 0; i < 20; i++) bench.ask();
    bench.serve();
    const [first, second] = bench.running.keys();
    bench.nowMs += 100;
    bench.end(failure('rate_limited', { status: 429, retryAfterMs: 1 }), first);
    const found = learned();
    expect(found).to.be.below(6000);
    bench.reload({ ...perMinute(6000, 100), maxInFlight: 50 });
    expect(learned()).to.equal(found);
    bench.reload(perMinute(3000, 100));
    expect(learned()).to.be.above(100_000);
    // It was sent under the rate that there was before.
    bench.end(failure('rate_limited', { status: 429, retryAfterMs: 1 }), second);
    expect(learned()).to.be.above(100_000);
  });

  it('keeps the waiters of a model that is listed no more, by the rules of the default', () => {
    const bench = new Bench({ models: { m: { concurrency: { limit: 1 } }, default: { concurrency: { limit: 3 } } } });
    const tickets = [bench.ask(), bench.ask(), bench.ask(), bench.ask()];
    bench.serve();
    expect(bench.reload({ models: { default: { concurrency: { limit: 3 } } } })).to.deep.equal(tickets.slice(1, 3));
  });

  it('sends waiters to deployments that come, and none to one that goes, whose own come back to it', () => {
    const bench = new Bench({ models: { m: { deployments: [{ client: 'a', concurrency: { limit: 1 } }] } } });
    const tickets = [bench.ask(), bench.ask(), bench.ask()];
    bench.serve();
    const [atA] = bench.running.keys();
    bench.reload({ models: { m: { deployments: [{ client: 'b', model: 'mb', concurrency: { limit: 1 } }] } } });
    expect([...bench.running.values()]).to.deep.equal(tickets.slice(0, 2));
    expect([...bench.running.keys()].map(({ target }) => target.client)).to.deep.equal(['a', 'b']);
    bench.end(SUCCESS, atA);
    expect(bench.serve()).to.deep.equal([]);
    expect(atA?.target.inFlight).to.equal(0);
    bench.end();
    expect(bench.serve()).to.deep.equal(tickets.slice(2));
  });

  it('knows a deployment by its client and its name there, whatever it is called', () => {
    const open = { breaker: { consecutiveFailures: 1 } };
    const bench = new Bench({ models: { m: open } });
    bench.ask();
    bench.serve();
    bench.end(failure('server_error', { status: 500 }));
    bench.reload({ models: { m: { ...open, deployments: [{ client: 'other' }, {}] } } });
    const states = bench.machine.poolOf('m').targets.map(({ name, breaker }) => [name, breaker.state]);
    expect(states).to.deep.equal([
      ['m@other', 'closed'],
      ['m@main', 'open'],
    ]);
    bench.ask();
    bench.serve();
    expect([...bench.running.keys()].map(({ target }) => target.name)).to.deep.equal(['m@other']);
    expect(bench.machine.poolOf('m').targets.map(({ deployment }) => deployment)).to.deep.equal([
      { name: 'm@other', client: 'other', model: 'm' },
      { name: 'm@main', client: 'main', model: 'm' },
    ]);
  });

  it('gives waiters of a priority that is gone its place in the order, or the last, with those that wait there', () => {
    const order = (...names: string[]): AdmissionOptions => ({ maxInFlight: 1, priorities: { order: names } });
    const bench = new Bench(order('a', 'b', 'c'));
    bench.ask();
    bench.serve();
    const [c, b, a] = ['c', 'b', 'a'].map((priority) => bench.ask({ priority }));
    const early = bench.ask({ priority: 'b' });
    bench.reload(order('z', 'a'));
    expect([a, b, c, early].map((ticket) => ticket?.level)).to.deep.equal([1, 1, 1, 1]);
    const rest: (AdmissionTicket | undefined)[] = [];
    for (let i = 0; i < 4; i++) {
      bench.end();
      rest.push(...bench.serve());
    }
    expect(rest).to.deep.equal([c, b, a, early]);
    bench.end();
    expect(bench.machine.levels.inFlight).to.deep.equal([0, 0]);
  });

  it('weighs waiters anew', () => {
    const weight = (heavy: number): AdmissionOptions => ({ maxInFlight: 1, tenants: { heavy: { weight: heavy } } });
    const bench = new Bench(weight(1));
    bench.ask();
    bench.serve();
    for (let i = 0; i < 40; i++) bench.ask({ tenant: i % 2 ? 'heavy' : 'light' });
    bench.reload(weight(3));
    const served: AdmissionTicket[] = [];
    for (let i = 0; i < 20; i++) {
      bench.end();
      served.push(...bench.serve());
    }
    expect(served.filter(({ tenant }) => tenant === 'heavy').length).to.be.within(14, 16);
  });

  it('makes reserves claims at once', () => {
    const bench = new Bench({ maxInFlight: 2 });
    for (let i = 0; i < 4; i++) bench.ask({ tenant: 'crowd' });
    bench.serve();
    const own = bench.ask({ tenant: 'own' });
    for (let i = 0; i < 4; i++) bench.ask({ tenant: 'crowd', priority: 'interactive' });
    bench.reload({ maxInFlight: 2, tenants: { own: { reservedInFlight: 1 } } });
    expect(bench.machine.tenants.owedSlots).to.equal(1);
    bench.end();
    expect(bench.serve()).to.deep.equal([own]);
  });

  it('changes nothing where an option is wrong', () => {
    const bench = new Bench({ maxInFlight: 2 });
    expect(() => bench.machine.reload({ maxInFlight: 5, tenants: { t: { weight: -1 } } })).to.throw('weight');
    expect(() => bench.machine.reload({ maxInFlight: 5, models: { m: { breaker: { openMs: 0 } } } })).to.throw(
      'openMs',
    );
    expect(bench.machine.rules.maxInFlight).to.equal(2);
  });

  it('leaves everything as it is where nothing has changed', () => {
    const options: AdmissionOptions = {
      ...perMinute(60, 3),
      models: { m: { concurrency: { initial: 4, max: 8 } }, n: {} },
      tenants: { t: { requestsPerMinute: 30, burstRequests: 2 } },
    };
    const run = (reloads: boolean): unknown => {
      const bench = new Bench(options);
      const served: number[][] = [];
      for (let i = 0; i < 60; i++) {
        bench.ask({ model: i % 3 ? 'm' : 'n', tenant: i % 2 ? 't' : 'u', priority: i % 5 ? 'interactive' : 'batch' });
        bench.nowMs += 300;
        if (reloads) bench.machine.reload(options);
        served.push(bench.serve().map(({ order }) => order));
        if (i % 4 === 0 && bench.running.size > 0)
          bench.end(i % 8 ? SUCCESS : failure('rate_limited', { status: 429 }));
      }
      return [served, bench.refused];
    };
    expect(run(true)).to.deep.equal(run(false));
  });

  it('keeps whose turn it is, also where a priority in which nobody waits has gone', () => {
    const options = (...order: string[]): AdmissionOptions => ({ maxInFlight: 1, priorities: { order } });
    const bench = new Bench(options('p', 'q'));
    for (const tenant of ['a', 'a', 'b']) bench.ask({ tenant });
    expect(bench.serve().map(({ tenant }) => tenant)).to.deep.equal(['a']);
    expect(bench.reload(options('p'))).to.deep.equal([]);
    bench.end();
    expect(bench.serve().map(({ tenant }) => tenant)).to.deep.equal(['b']);
  });

  it('loses nobody and counts right, whatever is reloaded between what', () => {
    const maybe = <T>(value: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> => fc.option(value, { nil: undefined });
    const slots = fc.integer({ min: 1, max: 6 });
    const optionsOf = fc.record({
      maxInFlight: maybe(slots),
      quota: maybe(
        fc.record({
          account: fc.record({ requestsPerMinute: maybe(fc.integer({ min: 600, max: 6000 })) }),
          clients: maybe(fc.constant({ other: { tokensPerMinute: 60_000 } })),
        }),
      ),
      models: fc.record({
        default: fc.record({ concurrency: maybe(fc.record({ limit: slots })) }),
        ...{ m: fc.record({ deployments: fc.constantFrom([{}], [{ client: 'other' }, {}], [{ client: 'other' }]) }) },
      }),
      tenants: maybe(
        fc.record({
          default: fc.record({ maxInFlight: maybe(slots), weight: maybe(slots) }),
          t0: fc.record({ reservedInFlight: maybe(slots), requestsPerMinute: maybe(fc.constant(1200)) }),
        }),
      ),
      priorities: fc.record({
        order: fc.constantFrom(['a', 'b'], ['b', 'a'], ['a'], ['c', 'a', 'b']),
        levels: fc.record({ a: fc.record({ maxInFlight: maybe(slots) }) }),
      }),
    }) as fc.Arbitrary<AdmissionOptions>;
    const operation = fc.oneof(
      fc.record({
        kind: fc.constant('ask' as const),
        model: fc.constantFrom('m', 'n', 'o'),
        tenant: fc.constantFrom('t0', 't1', 't2', undefined),
        level: fc.nat(2),
        tokens: fc.constantFrom(0, 10, 2000),
      }),
      fc.record({ kind: fc.constant('end' as const), outcome: fc.nat(2) }),
      fc.record({ kind: fc.constant('cancel' as const) }),
      fc.record({ kind: fc.constant('wait' as const), ms: fc.nat(300) }),
      fc.record({ kind: fc.constant('reload' as const), options: optionsOf }),
    );
    const outcomes = [SUCCESS, failure('server_error', { status: 500 }), failure('rate_limited', { status: 429 })];
    const sound = fc.property(
      optionsOf,
      fc.array(operation, { minLength: 20, maxLength: 120 }),
      (first, operations) => {
        const bench = new Bench(first);
        const { machine, running } = bench;
        const waiting = new Set<AdmissionTicket>();
        let nowOptions = first;
        const within = (count: number, limit: number | undefined): void =>
          void expect(count).to.be.at.most(limit ?? Infinity);
        const serve = (): void => {
          for (let step = machine.next(); step.kind !== 'wait'; step = machine.next()) {
            if (step.kind === 'changed') continue;
            expect(waiting.delete(step.ticket)).to.equal(true);
            if (step.kind === 'refused') continue;
            step.grant.dispatched(bench.nowMs);
            running.set(step.grant, step.ticket);
            const { from, level } = step.ticket;
            within(machine.inFlight, nowOptions.maxInFlight);
            within(
              from.inFlight,
              from.name && from.name !== 't0' ? nowOptions.tenants?.['default']?.maxInFlight : Infinity,
            );
            within(machine.levels.inFlight[level] ?? 0, machine.rules.levels[level]?.maxInFlight);
            within(step.grant.target.inFlight, step.grant.target.limit);
          }
        };
        for (const step of operations) {
          if (step.kind === 'ask') {
            const order = machine.rules.levels.map(({ name }) => name);
            const priority = order[step.level % order.length];
            const cost = { requests: 1, tokens: step.tokens, explicit: false };
            const ticket = machine.ask({ model: step.model, tenant: step.tenant, priority, cost });
            if (ticket.kind === 'ticket') waiting.add(ticket);
          } else if (step.kind === 'end' && running.size > 0) bench.end(outcomes[step.outcome]);
          else if (step.kind === 'cancel' && waiting.size > 0) {
            const [ticket] = waiting as Set<AdmissionTicket> & Iterable<AdmissionTicket>;
            if (ticket && machine.cancel(ticket)) waiting.delete(ticket);
          } else if (step.kind === 'wait') bench.nowMs += step.ms;
          else if (step.kind === 'reload') machine.reload((nowOptions = step.options));
          serve();
          expect(machine.waiting).to.equal(waiting.size);
          expect(machine.inFlight).to.equal(running.size);
          machine.levels.inFlight.forEach((count, level) => {
            const places = [...running.keys()].map(({ place }) => machine.levels.levelOf(place));
            expect(count).to.equal(places.filter((at) => at === level).length);
          });
          const tenants = Object.values(machine.tenants.snapshot());
          expect(tenants.reduce((sum, { inFlight }) => sum + inFlight, 0)).to.equal(running.size);
          expect(tenants.reduce((sum, tenant) => sum + tenant.waiting, 0)).to.equal(waiting.size);
        }
        nowOptions = { models: { default: { breaker: { consecutiveFailures: Infinity, errorRatio: Infinity } } } };
        machine.reload(nowOptions);
        while (running.size > 0) bench.end();
        for (let turn = 0; turn < 2000 && waiting.size > 0; turn++) {
          bench.nowMs += 50;
          serve();
          while (running.size > 0) bench.end();
        }
        expect([waiting.size, machine.waiting, machine.inFlight, machine.tenants.owedSlots]).to.deep.equal([
          0, 0, 0, 0,
        ]);
      },
    );
    fc.assert(sound, { numRuns: 40 });
  });
});
