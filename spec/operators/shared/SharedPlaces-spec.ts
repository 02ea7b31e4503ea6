import { expect } from 'chai';
import { SluiceError } from '../../../lib/core/errors.ts';
import { DROPPED_UNSENT } from '../../../lib/core/outcome.ts';
import type { AdmissionRequest } from '../../../lib/core/ports.ts';
import { Admission } from '../../../lib/limits/Admission.ts';
import type { AdmissionOptions } from '../../../lib/limits/AdmissionOptions.ts';
import type { AdmissionTicket } from '../../../lib/limits/AdmissionPool.ts';
import { localPart } from '../../../lib/operators/shared/localPart.ts';
import type { Credit } from '../../../lib/operators/shared/SharedLine.ts';
import { SharedPlaces } from '../../../lib/operators/shared/SharedPlaces.ts';
import type { SharedTarget } from '../../../lib/operators/shared/SharedTarget.ts';
import { SharedTargets } from '../../../lib/operators/shared/SharedTargets.ts';
import { virtualRuntime } from '../../../lib/testing/virtualRuntime.ts';
import type { VirtualRuntime } from '../../../lib/testing/virtualRuntime.ts';
import { ScriptedStore } from '../../helpers/scriptedStore.ts';
import type { ScriptedAsk, ScriptedRoute } from '../../helpers/scriptedStore.ts';

interface Wait extends Partial<Omit<AdmissionRequest, 'cost'>> {
  readonly tokens?: number;
  readonly requests?: number;
}

const account = { requestsPerMinute: 60 };
const tokens = { tokensPerMinute: 6000 };

describe('SharedPlaces', () => {
  let runtime: VirtualRuntime;
  let store: ScriptedStore;
  let machine: Admission;
  let targets: SharedTargets;
  let places: SharedPlaces;
  let serves: number;
  let refused: [AdmissionTicket, SluiceError][];

  function start(options: AdmissionOptions = { quota: { account } }): void {
    runtime = virtualRuntime();
    store = new ScriptedStore();
    machine = new Admission(localPart(options), runtime.clock, runtime.random);
    const limits = store.connect();
    const parts = { store: limits, quotas: limits.quotas('calls', {}), clock: runtime.clock, changed: () => {} };
    targets = new SharedTargets(machine, options, parts);
    serves = 0;
    refused = [];
    places = new SharedPlaces({
      clock: runtime.clock,
      machine,
      targetsOf: ({ pool }) => targets.of(pool),
      serve: () => serves++,
      refuse: (ticket, error) => {
        refused.push([ticket, error]);
        places.leave(ticket);
      },
    });
  }
  const reload = (options: AdmissionOptions): void => {
    machine.reload(localPart(options));
    targets.reload(options);
    places.rearrange();
  };
  /** Comes now. Its own bound ends its wait after `maxWaitMs`, a minute by default. */
  const wait = ({ requests = 1, tokens: count = 0, maxWaitMs = 60_000, ...more }: Wait = {}): AdmissionTicket => {
    const request = { model: 'm', ...more, maxWaitMs, cost: { requests, tokens: count, explicit: true } };
    const ticket = machine.ask(request);
    if (ticket.kind !== 'ticket') throw new Error(ticket.code);
    targets.know(ticket.pool, request.model);
    places.join({
      ticket,
      request,
      untilMs: runtime.clock.now() + maxWaitMs,
      places: new Map(),
      refused: new Map(),
      restUntilMs: -Infinity,
      told: false,
    });
    return ticket;
  };
  const targetOf = (ticket: AdmissionTicket, at = 0): SharedTarget => targets.of(ticket.pool)[at] as SharedTarget;
  const route = (names = 'account m'): ScriptedRoute => store.routeOf(names);
  const ask = (at = 0, names?: string): ScriptedAsk => route(names).asks[at] as ScriptedAsk;
  /** `ticket` goes at the first deployment. */
  const take = (ticket: AdmissionTicket, at = 0): Credit | undefined => {
    machine.cancel(ticket);
    return places.take(ticket, targetOf(ticket, at));
  };
  /** As one does who has seen to what has come. */
  const arrange = (): number => {
    expect(places.came).to.be.a('boolean');
    return places.arrange();
  };
  const failed = (code: SluiceError['code'] = 'queue_timeout'): SluiceError => new SluiceError(code, 'of the store');
  const two = {
    m: {
      deployments: [
        { client: 'a', quota: account },
        { client: 'b', quota: account },
      ],
    },
  };

  describe('asks', () => {
    it('for each that waits, with its cost, bounds and names', () => {
      start({ quota: { account: { ...account, ...tokens } } });
      wait({ tenant: 'acme', priority: 'batch', tokens: 9, deadlineAtMs: 5000, maxWaitMs: 700 });
      runtime.advance(200);
      expect(arrange()).to.equal(Infinity);
      const { onQueued, onCooldown, ...request } = ask().request;
      expect([typeof onQueued, typeof onCooldown]).to.deep.equal(['function', 'function']);
      expect(request).to.deep.equal({
        cost: { requests: 1, tokens: 9, explicit: true },
        model: 'm',
        tenant: 'acme',
        priority: 'batch',
        maxWaitMs: 500,
        deadlineAtMs: 5000,
      });
      wait({ maxWaitMs: 10 });
      runtime.advance(20);
      arrange();
      expect(ask(1).request.maxWaitMs).to.equal(0);
    });

    it('once for each of them, and for all at once', () => {
      start();
      for (let i = 0; i < 3; i++) wait();
      arrange();
      arrange();
      expect(route().asks).to.have.length(3);
    });

    it('for nobody where no quota decides', () => {
      start({});
      const ticket = wait();
      arrange();
      expect(targetOf(ticket).asking).to.equal(0);
    });

    it('for as many as could go: of all, of a priority and of a tenant', () => {
      for (const bound of [
        { maxInFlight: 2 },
        { priorities: { order: ['now'], levels: { now: { maxInFlight: 2 } } } },
        { tenants: { acme: { maxInFlight: 2 } } },
        { models: { m: { concurrency: { limit: 2 } } } },
      ]) {
        start({ quota: { account }, ...bound });
        for (let i = 0; i < 4; i++) wait({ tenant: 'acme' });
        arrange();
        expect(route().open).to.have.length(2);
        ask().refuse(failed());
        arrange();
        expect(route().open, JSON.stringify(bound)).to.have.length(2);
      }
    });

    it('for others where one tenant, priority or model has no room', () => {
      start({
        quota: { account },
        tenants: { full: { maxInFlight: 1 } },
        priorities: { order: ['now', 'later'], levels: { now: { maxInFlight: 2 } } },
        models: { m: {}, n: { concurrency: { limit: 1 } } },
      });
      for (let i = 0; i < 2; i++) wait({ tenant: 'full' });
      wait({ tenant: 'other' });
      for (let i = 0; i < 2; i++) wait({ tenant: 'other', priority: 'later', model: 'n' });
      wait({ tenant: 'other', priority: 'later' });
      arrange();
      expect(route().open.map(({ request: { tenant } }) => tenant)).to.deep.equal(['full', 'other', 'other']);
      expect(route('account n').open).to.have.length(1);
    });

    it('nowhere where a deployment is left alone', () => {
      start();
      const ticket = wait();
      targetOf(ticket).rest(100);
      arrange();
      targetOf(ticket).lineOf('');
      expect(route().asks).to.have.length(0);
      runtime.advance(100);
      arrange();
      expect(route().asks).to.have.length(1);
    });

    it('for the most urgent first, then for the tenant that is furthest behind, then for who came first', () => {
      start({ quota: { account: { ...account, ...tokens } }, priorities: { order: ['now', 'later'] } });
      // What was charged before: the first one has had more.
      for (const name of ['had much', 'had little']) machine.tenants.at(name, 0, 0);
      const tag = (name: string, to: number): unknown => Object.assign(machine.tenants.find(name) ?? {}, { tag: to });
      wait({ tenant: 'late', priority: 'later' });
      wait({ tenant: 'had much' });
      wait({ tenant: 'had little' });
      wait({ tenant: 'equal' });
      wait({ tenant: 'nothing', priority: 'later' });
      tag('late', 0);
      tag('had much', 9);
      tag('had little', 4);
      tag('equal', 4);
      tag('nothing', 0);
      arrange();
      expect(route().asks.map(({ request: { tenant } }) => tenant)).to.deep.equal([
        'had little',
        'equal',
        'had much',
        'late',
        'nothing',
      ]);
    });

    it('for the first of those that came at once, where they are taken up again in another order', () => {
      start();
      for (const tenant of ['a', 'b']) wait({ tenant });
      arrange();
      arrange();
      for (const at of [1, 0]) {
        ask(at).grant();
        places.giveBack();
      }
      runtime.advance(25);
      arrange();
      expect(route().open.map(({ request: { tenant } }) => tenant)).to.deep.equal(['a', 'b']);
    });

    it('for nobody else once something has come at once, as whoever is next gets that', () => {
      start();
      const [first] = [wait(), wait(), wait()];
      targetOf(first as AdmissionTicket).lineOf('');
      route().answer = (each) => each.grant();
      expect(places.came).to.equal(false);
      arrange();
      expect(route().asks).to.have.length(1);
      expect([places.came, places.came, serves]).to.deep.equal([true, false, 1]);
    });
  });

  describe('of several deployments', () => {
    const at = (name: string): ScriptedRoute => route(`m@${name}`);
    const known = (): void => targets.of(machine.poolOf('m')).forEach((target) => void target.lineOf(''));

    it('asks where the wait is shortest, as far as newcomers have been told', () => {
      start({ models: two });
      known();
      const [a, b] = targets.of(machine.poolOf('m'));
      a?.lineOf('').waits(0, 300);
      b?.lineOf('').waits(0, 200);
      wait();
      arrange();
      expect([at('a').open.length, at('b').open.length]).to.deep.equal([0, 1]);
      at('b').asks[0]?.queued(1, 400);
      expect([at('a').open.length, at('b').open.length], 'and then at the other one too').to.deep.equal([1, 1]);
      runtime.advance(1);
      wait();
      arrange();
      expect([at('a').open.length, at('b').open.length]).to.deep.equal([2, 1]);
    });

    it('asks the least loaded where the waits are alike', () => {
      start({ models: two });
      known();
      const unit = (level: number) => ({ level, burst: 10, perMinute: 60 });
      at('a').shown = [{ layer: 'm@a', requests: unit(3), tokens: undefined }];
      at('b').shown = [{ layer: 'm@b', requests: unit(4), tokens: undefined }];
      wait();
      arrange();
      expect([at('a').open.length, at('b').open.length]).to.deep.equal([0, 1]);
      at('a').shown = [{ layer: 'm@a', requests: unit(5), tokens: undefined }];
      wait();
      arrange();
      expect([at('a').open.length, at('b').open.length]).to.deep.equal([1, 1]);
    });

    it('asks the first where nothing tells them apart', () => {
      start({ models: two });
      wait();
      arrange();
      expect(at('a').open).to.have.length(1);
    });

    it('counts one that has a place at both as one', () => {
      start({ models: two, maxInFlight: 2 });
      known();
      wait();
      arrange();
      at('a').asks[0]?.queued(1, 100);
      wait();
      arrange();
      expect(at('a').open.length + at('b').open.length).to.equal(3);
      at('b').asks[0]?.refuse(failed());
      wait();
      arrange();
      expect(at('a').open.length + at('b').open.length, 'the first one still has one').to.equal(2);
    });

    it('asks no further for one that leaves as it is told that it waits', () => {
      start({ models: two });
      known();
      const ticket = wait({ onQueued: () => places.leave(ticket) });
      arrange();
      at('a').asks[0]?.queued(3, 100);
      expect([at('a').open.length, at('b').asks.length]).to.deep.equal([0, 0]);
    });

    it('refuses one only when all have refused it, with what the last one said', () => {
      start({ models: two });
      known();
      const ticket = wait({ model: 'm' });
      arrange();
      at('a').asks[0]?.refuse(failed('cost_too_large'));
      expect([refused.length, serves, places.came]).to.deep.equal([0, 1, true]);
      arrange();
      expect([at('a').asks.length, at('b').open.length], 'not where it has been refused').to.deep.equal([1, 1]);
      at('b').asks[0]?.refuse(failed('queue_timeout'));
      expect(refused.map(([each, { code, model }]) => [each, code, model])).to.deep.equal([
        [ticket, 'queue_timeout', 'm'],
      ]);
      expect([serves, places.came]).to.deep.equal([2, true]);
    });

    it('leaves one that waits elsewhere too where it waits', () => {
      start({ models: two });
      known();
      const ticket = wait();
      arrange();
      at('a').asks[0]?.queued(1, 100);
      at('a').asks[0]?.refuse(failed());
      expect(refused).to.have.length(0);
      expect(places.waiterOf(ticket)?.places.size).to.equal(1);
      arrange();
      expect([at('a').asks.length, at('b').asks.length]).to.deep.equal([1, 1]);
    });

    it('asks for the next one where the first has been refused and there is no room elsewhere', () => {
      const [a, b] = two.m.deployments;
      start({ models: { m: { deployments: [a as object, { ...b, concurrency: { limit: 1 } }] } } });
      known();
      const [first] = [wait(), wait()];
      arrange();
      for (const each of at('a').asks) each.refuse(failed());
      arrange();
      expect(at('b').open, 'one of them').to.have.length(1);
      wait();
      arrange();
      expect(at('a').open, 'the third').to.have.length(1);
      expect(places.waiterOf(first as AdmissionTicket)?.refused.size).to.equal(1);
    });
  });

  it('tells one that waits in the store, once', () => {
    start({ models: two });
    const told: unknown[] = [];
    wait({ onQueued: (position, waitMs) => void told.push([position, waitMs]) });
    wait();
    arrange();
    ask(0, 'm@a').queued(7, 300);
    ask(0, 'm@b').queued(2, 100);
    expect(told).to.deep.equal([[7, 300]]);
  });

  it('refuses in its own words what a store fails with that is no error of ours', () => {
    start();
    const ticket = wait();
    arrange();
    ask().refuse(new Error('of a client'));
    const [[refusedTicket, error] = []] = refused;
    expect(refusedTicket).to.equal(ticket);
    expect(error).to.include({ code: 'limiter_unavailable', while: 'queue', model: 'm' });
    expect(error?.message).to.include('the store has failed');
  });

  describe('gives', () => {
    it('what has come to whoever goes, who is told of pauses from then on', () => {
      start();
      const ticket = wait();
      arrange();
      const paused = ask().request.onCooldown;
      paused?.(5, 'rate_limited');
      ask().grant();
      expect([serves, places.came]).to.deep.equal([1, true]);
      const credit = take(ticket) as Credit;
      expect(credit.ticket).to.equal(ticket);
      paused?.(6, 'rate_limited');
      const told: unknown[] = [];
      credit.onCooldown = (waitMs, reason) => void told.push([waitMs, reason]);
      paused?.(7, 'rate_limited');
      expect(told).to.deep.equal([[7, 'rate_limited']]);
      expect(places.waiterOf(ticket)).to.equal(undefined);
      expect(ask().released).to.deep.equal([]);
    });

    it('nothing to one for whom nothing has come', () => {
      start();
      const ticket = wait();
      arrange();
      expect(take(ticket)).to.equal(undefined);
      expect(route().open).to.have.length(0);
    });

    it('a tenant that waits for its own quota its turn again, as it has come', () => {
      start({ tenants: { acme: { requestsPerMinute: 60 } } });
      const ticket = wait({ tenant: 'acme' });
      expect(machine.next().kind).to.equal('wait');
      expect(ticket.from.parkedIn.size).to.equal(1);
      arrange();
      ask(0, 'm tenant:acme').grant();
      expect(ticket.from.parkedIn.size).to.equal(0);
      expect(machine.next()).to.include({ kind: 'granted', ticket });
    });

    it('back what nobody takes, and asks for nothing for a while for whom it was', () => {
      start();
      wait();
      arrange();
      ask().grant();
      places.giveBack();
      expect(ask().released).to.deep.equal([DROPPED_UNSENT]);
      places.giveBack();
      expect(ask().released).to.have.length(1);
      expect(arrange()).to.equal(25);
      runtime.advance(24);
      expect(arrange()).to.equal(25);
      expect(route().asks).to.have.length(1);
      runtime.advance(1);
      expect(arrange()).to.equal(Infinity);
      expect(route().asks).to.have.length(2);
    });

    it('back what came for one that has left meanwhile', () => {
      start();
      const ticket = wait();
      arrange();
      ask().grant();
      places.leave(ticket);
      places.giveBack();
      expect(ask().released).to.deep.equal([DROPPED_UNSENT]);
      expect(arrange()).to.equal(Infinity);
    });

    it('others their turn while one rests, and looks again when the first rest is over', () => {
      start();
      for (let i = 0; i < 2; i++) wait();
      arrange();
      ask(0).grant();
      places.giveBack();
      runtime.advance(10);
      ask(1).grant();
      places.giveBack();
      wait();
      expect(arrange()).to.equal(25);
      expect(route().asks).to.have.length(3);
      runtime.advance(15);
      arrange();
      expect(route().asks).to.have.length(4);
    });
  });

  describe('of one that goes by what another one’s place has brought', () => {
    it('passes its place on, if it is as good', () => {
      start({ quota: { account: { ...account, ...tokens } } });
      const [first, second] = [wait({ tokens: 5 }), wait({ tokens: 5 })];
      arrange();
      ask(0).grant();
      expect(take(second)?.ticket).to.equal(first);
      expect(ask(1).open).to.equal(true);
      arrange();
      expect(route().asks, 'nobody asks anew').to.have.length(2);
      ask(1).grant();
      expect(take(first)?.ticket).to.equal(first);
    });

    it('takes no refusal of that place for one of its own', () => {
      start();
      const [first, second] = [wait(), wait()];
      arrange();
      ask(0).grant();
      take(second);
      ask(1).refuse(failed());
      expect(refused).to.have.length(0);
      arrange();
      expect(route().asks).to.have.length(3);
      ask(2).refuse(failed());
      expect(refused.map(([ticket]) => ticket)).to.deep.equal([first]);
    });

    for (const [what, own] of [
      ['fewer tokens', { tokens: 4 }],
      ['fewer requests', { tokens: 5, requests: 0.5 }],
    ] as const) {
      it(`leaves a place for ${what}, and asks anew`, () => {
        start({ quota: { account: { ...account, ...tokens } } });
        const [first, second] = [wait({ tokens: 5 }), wait(own)];
        arrange();
        ask(0).grant();
        expect(take(second)?.ticket).to.equal(first);
        expect(ask(1).open).to.equal(false);
        arrange();
        expect(route().asks[2]?.request.cost).to.deep.equal({ requests: 1, tokens: 5, explicit: true });
      });
    }

    it('leaves it where the other one has a place again', () => {
      start();
      const [first, second] = [wait(), wait()];
      arrange();
      ask(0).grant();
      arrange();
      expect(route().open, 'before anybody has looked at what came').to.have.length(2);
      take(second);
      expect([1, 2].map((at) => ask(at).open)).to.deep.equal([false, true]);
      expect(places.waiterOf(first)?.places.size).to.equal(1);
      expect(targetOf(first).asking).to.equal(1);
    });

    it('leaves it where the other one has left', () => {
      start();
      const [first, second] = [wait(), wait()];
      arrange();
      ask(0).grant();
      places.leave(first);
      take(second);
      expect([ask(1).open, targetOf(second).asking]).to.deep.equal([false, 0]);
    });

    it('has none to pass on if it never asked', () => {
      start({ quota: { account }, maxInFlight: 1 });
      const [first, second] = [wait(), wait()];
      arrange();
      ask(0).grant();
      take(second);
      expect(targetOf(first).asking).to.equal(0);
      arrange();
      expect(ask(1).open).to.equal(true);
    });

    it('leaves it where the other one’s tenant has a quota of its own by now', () => {
      start();
      const [first, second] = [wait({ tenant: 'acme' }), wait()];
      arrange();
      ask(0).grant();
      reload({ quota: { account }, tenants: { acme: account } });
      expect(take(second)?.ticket).to.equal(first);
      expect(ask(1).open).to.equal(false);
      arrange();
      expect(route('account m tenant:acme').open).to.have.length(1);
    });
  });

  describe('left', () => {
    it('are given up in the store, and are free for others', () => {
      start({ quota: { account }, models: { m: { concurrency: { limit: 1 } } } });
      const [first] = [wait(), wait()];
      const target = targetOf(first as AdmissionTicket);
      arrange();
      expect([target.asking, target.lineOf('').places]).to.deep.equal([1, 1]);
      places.leave(first as AdmissionTicket);
      expect([ask().open, target.asking, target.lineOf('').places]).to.deep.equal([false, 0, 0]);
      places.leave(first as AdmissionTicket);
      expect([target.asking, target.lineOf('').places]).to.deep.equal([0, 0]);
      arrange();
      expect(ask(1).open).to.equal(true);
    });

    it('are never asked for where one leaves before', () => {
      start();
      const ticket = wait();
      places.leave(ticket);
      arrange();
      expect(targetOf(ticket).asking).to.equal(0);
    });

    it('are given up where one leaves within the asking, and what comes then goes back', () => {
      start({ quota: { account }, maxInFlight: 1 });
      const ticket = wait({ onQueued: () => places.leave(ticket) });
      const target = targetOf(ticket);
      target.lineOf('');
      route().answer = (each) => each.queued(1);
      arrange();
      expect([ask().open, target.asking]).to.deep.equal([false, 0]);
      const next = wait({ onQueued: () => places.leave(next) });
      route().answer = (each) => {
        each.queued(1);
        each.grant();
      };
      arrange();
      places.giveBack();
      expect(ask(1).released).to.deep.equal([DROPPED_UNSENT]);
      expect([target.asking, target.lineOf('').places]).to.deep.equal([0, 0]);
      route().answer = undefined;
      for (let i = 0; i < 2; i++) wait();
      arrange();
      expect(route().open, 'as many as may').to.have.length(1);
    });
  });

  describe('when other options hold', () => {
    it('stay where they lead to the same quota', () => {
      start({ models: two });
      wait();
      arrange();
      reload({ models: two, maxInFlight: 9 });
      arrange();
      expect(ask(0, 'm@a').open).to.equal(true);
      expect(targets.of(machine.poolOf('m')).map(({ asking }) => asking)).to.deep.equal([1, 0]);
    });

    it('are left where a deployment is gone or its quota is another one, and asked for anew', () => {
      start({ models: two });
      wait();
      arrange();
      reload({ models: { m: { deployments: two.m.deployments.slice(1) } } });
      expect(ask(0, 'm@a').open).to.equal(false);
      arrange();
      const [target] = targets.of(machine.poolOf('m'));
      expect(target?.asking).to.equal(1);
      reload({ models: { m: { deployments: [{ client: 'b', quota: tokens }] } } });
      expect(target?.asking).to.equal(0);
      arrange();
      expect(target?.asking).to.equal(1);
    });

    it('are counted by the priorities that hold now', () => {
      const priorities = (...order: string[]) => ({ order, levels: { later: { maxInFlight: 1 } } });
      start({ quota: { account }, priorities: priorities('now', 'later') });
      wait({ priority: 'later' });
      arrange();
      reload({ quota: { account }, priorities: priorities('later') });
      wait({ priority: 'later' });
      arrange();
      expect(route().open).to.have.length(1);
    });

    it('are asked for by the priorities that hold now, for those who still wait', () => {
      start({ quota: { account }, priorities: { order: ['now', 'later'] } });
      const [stays, leaves] = [wait({ priority: 'later' }), wait({ priority: 'later' })];
      reload({ quota: { account }, priorities: { order: ['later'] } });
      places.leave(leaves);
      arrange();
      expect(route().open).to.have.length(1);
      expect(places.waiterOf(stays)?.places.size).to.equal(1);
    });
  });
});
