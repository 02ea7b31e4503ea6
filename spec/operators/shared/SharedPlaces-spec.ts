import { expect } from 'chai';
import { PlacesBench, requestRate, storeSays, tokenRate } from '../../helpers/placesBench.ts';

describe('SharedPlaces', () => {
  describe('asks', () => {
    it('for each that waits, with its cost, bounds and names', () => {
      const bench = new PlacesBench({ quota: { account: { ...requestRate, ...tokenRate } } });
      bench.wait({ tenant: 'acme', priority: 'batch', tokens: 9, deadlineAtMs: 5000, maxWaitMs: 700 });
      bench.runtime.advance(200);
      expect(bench.arrange()).to.equal(Infinity);
      const { onQueued, onCooldown, ...request } = bench.ask().request;
      expect([typeof onQueued, typeof onCooldown]).to.deep.equal(['function', 'function']);
      expect(request).to.deep.equal({
        cost: { requests: 1, tokens: 9, explicit: true },
        model: 'm',
        tenant: 'acme',
        priority: 'batch',
        maxWaitMs: 500,
        deadlineAtMs: 5000,
      });
      bench.wait({ maxWaitMs: 10 });
      bench.runtime.advance(20);
      bench.arrange();
      expect(bench.ask(1).request.maxWaitMs).to.equal(0);
    });

    it('once for each of them, and for all at once', () => {
      const bench = new PlacesBench();
      for (let i = 0; i < 3; i++) bench.wait();
      bench.arrange();
      bench.arrange();
      expect(bench.route().asks).to.have.length(3);
    });

    it('for nobody where no quota decides', () => {
      const bench = new PlacesBench({});
      const ticket = bench.wait();
      bench.arrange();
      expect(bench.targetOf(ticket).asking).to.equal(0);
    });

    it('for as many as could go: of all, of a priority and of a tenant', () => {
      for (const bound of [
        { maxInFlight: 2 },
        { priorities: { order: ['now'], levels: { now: { maxInFlight: 2 } } } },
        { tenants: { acme: { maxInFlight: 2 } } },
        { models: { m: { concurrency: { limit: 2 } } } },
      ]) {
        const bench = new PlacesBench({ quota: { account: requestRate }, ...bound });
        for (let i = 0; i < 4; i++) bench.wait({ tenant: 'acme' });
        bench.arrange();
        expect(bench.route().open).to.have.length(2);
        bench.ask().refuse(storeSays());
        bench.arrange();
        expect(bench.route().open, JSON.stringify(bound)).to.have.length(2);
      }
    });

    it('for others where one tenant, priority or model has no room', () => {
      const bench = new PlacesBench({
        quota: { account: requestRate },
        tenants: { full: { maxInFlight: 1 } },
        priorities: { order: ['now', 'later'], levels: { now: { maxInFlight: 2 } } },
        models: { m: {}, n: { concurrency: { limit: 1 } } },
      });
      for (let i = 0; i < 2; i++) bench.wait({ tenant: 'full' });
      bench.wait({ tenant: 'other' });
      for (let i = 0; i < 2; i++) bench.wait({ tenant: 'other', priority: 'later', model: 'n' });
      bench.wait({ tenant: 'other', priority: 'later' });
      bench.arrange();
      expect(bench.route().open.map(({ request: { tenant } }) => tenant)).to.deep.equal(['full', 'other', 'other']);
      expect(bench.route('account n').open).to.have.length(1);
    });

    it('nowhere where a deployment is left alone', () => {
      const bench = new PlacesBench();
      const ticket = bench.wait();
      bench.targetOf(ticket).rest(100);
      bench.arrange();
      bench.targetOf(ticket).lineOf('');
      expect(bench.route().asks).to.have.length(0);
      bench.runtime.advance(100);
      bench.arrange();
      expect(bench.route().asks).to.have.length(1);
    });

    it('for the most urgent first, then for the tenant that is furthest behind, then for who came first', () => {
      const bench = new PlacesBench({
        quota: { account: { ...requestRate, ...tokenRate } },
        priorities: { order: ['now', 'later'] },
      });
      // What was charged before: the first one has had more.
      for (const name of ['had much', 'had little']) bench.machine.tenants.at(name, 0, 0);
      const tag = (name: string, to: number): unknown =>
        Object.assign(bench.machine.tenants.find(name) ?? {}, { tag: to });
      bench.wait({ tenant: 'late', priority: 'later' });
      bench.wait({ tenant: 'had much' });
      bench.wait({ tenant: 'had little' });
      bench.wait({ tenant: 'equal' });
      bench.wait({ tenant: 'nothing', priority: 'later' });
      tag('late', 0);
      tag('had much', 9);
      tag('had little', 4);
      tag('equal', 4);
      tag('nothing', 0);
      bench.arrange();
      expect(bench.route().asks.map(({ request: { tenant } }) => tenant)).to.deep.equal([
        'had little',
        'equal',
        'had much',
        'late',
        'nothing',
      ]);
    });

    it('for the first of those that came at once, where they are taken up again in another order', () => {
      const bench = new PlacesBench();
      for (const tenant of ['a', 'b']) bench.wait({ tenant });
      bench.arrange();
      bench.arrange();
      for (const at of [1, 0]) {
        bench.ask(at).grant();
        bench.places.giveBack();
      }
      bench.runtime.advance(25);
      bench.arrange();
      expect(bench.route().open.map(({ request: { tenant } }) => tenant)).to.deep.equal(['a', 'b']);
    });

    it('for nobody else once something has come at once, as whoever is next gets that', () => {
      const bench = new PlacesBench();
      const [first] = [bench.wait(), bench.wait(), bench.wait()];
      bench.targetOf(first).lineOf('');
      bench.route().answer = (each) => each.grant();
      expect(bench.places.came).to.equal(false);
      bench.arrange();
      expect(bench.route().asks).to.have.length(1);
      expect([bench.places.came, bench.places.came, bench.serves]).to.deep.equal([true, false, 1]);
    });
  });

  it('refuses in its own words what a store fails with that is no error of ours', () => {
    const bench = new PlacesBench();
    const ticket = bench.wait();
    bench.arrange();
    bench.ask().refuse(new Error('of a client'));
    const [[refusedTicket, error] = []] = bench.refused;
    expect(refusedTicket).to.equal(ticket);
    expect(error).to.include({ code: 'limiter_unavailable', while: 'queue', model: 'm' });
    expect(error?.message).to.include('the store has failed');
  });
});
