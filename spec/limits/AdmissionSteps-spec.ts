import { expect } from 'chai';
import { DROPPED_UNSENT, SUCCESS } from '../../lib/core/outcome.ts';
import type { AdmissionTenant } from '../../lib/limits/AdmissionTenant.ts';
import { account, AdmissionBench, failure, usage } from '../helpers/admissionBench.ts';

const oneASecond = { requestsPerMinute: 60 };

describe('Admission', () => {
  describe('as steps', () => {
    it('waits for nothing where nobody waits', () => {
      expect(new AdmissionBench().machine.next()).to.deep.equal({ kind: 'wait', untilMs: Infinity });
    });

    it('waits until there is room, or a wait ends', () => {
      const bench = account(oneASecond);
      bench.take();
      bench.join({ maxWaitMs: 5000 });
      expect(bench.machine.next()).to.deep.equal({ kind: 'wait', untilMs: 1000 });
      const busy = new AdmissionBench({ maxInFlight: 1 });
      busy.take();
      busy.join({ maxWaitMs: 700, model: 'n' });
      busy.join({ maxWaitMs: 800 });
      expect(busy.machine.next()).to.deep.equal({ kind: 'wait', untilMs: 700 });
      const endless = new AdmissionBench({ maxInFlight: 1 });
      endless.take();
      endless.join({ maxWaitMs: Infinity });
      expect(endless.machine.next()).to.deep.equal({ kind: 'wait', untilMs: Infinity });
    });

    it('ends a wait at its bound', () => {
      const bench = new AdmissionBench({ maxInFlight: 1 });
      bench.take();
      const ticket = bench.join({ maxWaitMs: 700 });
      bench.nowMs = 699;
      expect(bench.serve()).to.deep.equal({ granted: [], refused: [], untilMs: 700 });
      bench.nowMs = 700;
      const step = bench.machine.next();
      if (step.kind !== 'refused') return expect.fail(step.kind);
      expect(step.ticket).to.equal(ticket);
      expect(step.refusal).to.deep.equal({
        kind: 'refused',
        code: 'queue_timeout',
        retryAfterMs: 60_000,
        limit: 700,
        requested: undefined,
        unit: 'ms',
      });
      expect(bench.machine.waiting).to.equal(0);
    });

    it('ends a wait that has become hopeless as soon as that is known', () => {
      const bench = account(oneASecond);
      bench.take();
      const [patient, hopeless] = [bench.join({ maxWaitMs: 3001 }), bench.join({ maxWaitMs: 2999 })];
      bench.target().cooldown.hint(0, 3000);
      expect(bench.serve()).to.deep.equal({ granted: [], refused: [[hopeless, 'queue_timeout']], untilMs: 3000 });
      bench.nowMs = 3000;
      expect(bench.serve().granted).to.deep.equal([patient]);
    });

    it('knows of no wait that it is hopeless which may end with its bound', () => {
      const bench = account(oneASecond);
      bench.take();
      bench.join({ maxWaitMs: 3000 });
      bench.target().cooldown.hint(0, 3000);
      expect(bench.serve().refused).to.deep.equal([]);
    });

    it('lets go at its bound what can go then, and nothing later', () => {
      const bench = account(oneASecond);
      bench.take();
      const [first, second, third] = [1000, 2000, 3000].map((maxWaitMs) => bench.join({ maxWaitMs }));
      bench.nowMs = 1000;
      expect(bench.serve()).to.deep.include({ granted: [first], refused: [] });
      bench.nowMs = 2001;
      expect(bench.serve()).to.deep.equal({
        granted: [third],
        refused: [[second, 'queue_timeout']],
        untilMs: Infinity,
      });
    });

    it('ends at its bound what cannot go, where all that is in flight is taken, too', () => {
      const bench = account(oneASecond, { maxInFlight: 1 });
      bench.take();
      const ticket = bench.join({ maxWaitMs: 1000 });
      bench.nowMs = 1000;
      expect(bench.serve().refused).to.deep.equal([[ticket, 'queue_timeout']]);
    });

    it('counts no tokens that may come back into what is hopeless, but into when to come back', () => {
      const bench = account({ tokensPerMinute: 6000 });
      for (let i = 0; i < 9; i++) bench.end(bench.take(), SUCCESS);
      bench.take({ tokens: 3000 });
      bench.join({ tokens: 4000, maxWaitMs: 11_000 });
      bench.target().layers[0]?.tokens?.lower(0, 0);
      expect(bench.serve()).to.deep.include({ refused: [], untilMs: 11_000 });
      bench.nowMs = 11_000;
      const step = bench.machine.next();
      if (step.kind !== 'refused') return expect.fail(step.kind);
      // 4,000 come in in 40 s, of which 11 are over.
      expect(step.refusal.retryAfterMs).to.equal(29_000);
    });

    it('refuses those who wait for what cannot be asked any more', () => {
      const bench = new AdmissionBench({
        models: { m: { concurrency: { limit: 1 }, breaker: { consecutiveFailures: 1, openMs: 500 } } },
      });
      const grant = bench.take();
      const [urgent, other] = [bench.join(), bench.join({ priority: 'batch' })];
      bench.machine.end(grant, failure('server_error', { status: 500 }));
      expect(bench.serve()).to.deep.equal({
        granted: [],
        refused: [
          [urgent, 'circuit_open'],
          [other, 'circuit_open'],
        ],
        untilMs: Infinity,
      });
    });

    it('grants no more than what this process has of all slots', () => {
      const bench = new AdmissionBench({ maxInFlight: 3 });
      bench.machine.lent = 2;
      const tickets = Array.from({ length: 5 }, () => bench.join());
      expect(bench.serve().granted).to.deep.equal(tickets.slice(0, 2));
      bench.machine.lent = 9;
      expect(bench.serve().granted).to.deep.equal(tickets.slice(2, 3));
      expect([bench.machine.inFlight, bench.machine.waiting]).to.deep.equal([3, 2]);
    });

    it('gives no turn to a priority for the time in which it was at its ceiling', () => {
      const bench = new AdmissionBench({
        models: { m: {} },
        priorities: { order: ['high', 'low'], levels: { low: { maxInFlight: 1 } }, ageingMs: 0 },
      });
      const running = bench.take({ priority: 'low' });
      bench.join({ priority: 'low' });
      for (let i = 0; i < 8; i++) bench.end(bench.take(), SUCCESS);
      bench.machine.lent = 1;
      const urgent = bench.join();
      expect(bench.serve().granted).to.deep.equal([]);
      bench.end(running, SUCCESS);
      expect(bench.granted().ticket).to.equal(urgent);
    });

    it('leaves a breaker alone whose stuck probe has been sent: there is nothing to take back', () => {
      const breaker = { consecutiveFailures: 1, openMs: 10, halfOpenMaxMs: 30 };
      const bench = new AdmissionBench({ models: { m: { breaker } } });
      bench.end(bench.take(), failure('server_error', { status: 500 }));
      bench.nowMs = 10;
      bench.take();
      bench.nowMs = 40;
      expect(bench.machine.next()).to.deep.equal({ kind: 'wait', untilMs: Infinity });
      expect(bench.target().breaker.state).to.equal('half_open');
    });

    it('tells of a breaker that lets one probe, with the grant', () => {
      const bench = new AdmissionBench({ models: { m: { breaker: { consecutiveFailures: 1, openMs: 500 } } } });
      bench.end(bench.take(), failure('server_error', { status: 500 }));
      bench.nowMs = 500;
      bench.join();
      const { changes } = bench.granted();
      expect(
        changes.map(({ target, breaker, revoked }) => [target, breaker.map(({ to }) => to), revoked]),
      ).to.deep.equal([[bench.target(), ['half_open'], []]]);
      bench.join();
      const step = bench.machine.next();
      expect(step).to.deep.include({ kind: 'refused', changes: [] });
      if (step.kind === 'refused') expect(step.refusal).to.include({ code: 'circuit_open', retryAfterMs: 1 });
      expect(bench.machine.waiting).to.equal(0);
    });
  });

  describe('as counts', () => {
    const tenant = (bench: AdmissionBench): Pick<AdmissionTenant, 'inFlight' | 'open' | 'waiting'> => {
      const { inFlight, open, waiting } = bench.machine.tenants.find('a') as AdmissionTenant;
      return { inFlight, open, waiting };
    };

    it('counts what waits, what is in flight and what has not ended, for all and for the tenant', () => {
      const bench = new AdmissionBench();
      const ask = { tenant: 'a', priority: 'batch' };
      const [first, second] = [bench.join(ask), bench.join(ask)];
      expect([first.order, second.order]).to.deep.equal([0, 1]);
      expect([bench.machine.waiting, tenant(bench)]).to.deep.equal([2, { inFlight: 0, open: 0, waiting: 2 }]);
      const { grant } = bench.granted();
      expect([bench.machine.waiting, tenant(bench)]).to.deep.equal([1, { inFlight: 1, open: 1, waiting: 1 }]);
      expect(bench.machine.cancel(second)).to.equal(true);
      expect(bench.machine.cancel(second)).to.equal(false);
      expect([bench.machine.waiting, bench.machine.levels.inFlight]).to.deep.equal([0, [0, 1]]);
      bench.machine.close(grant);
      expect(bench.machine.inFlight).to.equal(1);
      bench.machine.end(grant, SUCCESS);
      expect(bench.machine.end(grant, SUCCESS)).to.equal(undefined);
      expect([bench.machine.inFlight, tenant(bench)]).to.deep.equal([1, { inFlight: 1, open: 0, waiting: 0 }]);
      bench.machine.close(grant);
      bench.machine.close(grant);
      expect([bench.machine.inFlight, tenant(bench)]).to.deep.equal([0, { inFlight: 0, open: 0, waiting: 0 }]);
      expect(bench.machine.levels.inFlight).to.deep.equal([0, 0]);
    });

    it('charges a tenant for what it used beyond what was reserved', () => {
      for (const [used, next] of [
        [1000, 'a'],
        [3000, 'b'],
      ] as const) {
        const bench = account({ settle: 'usage' }, { maxInFlight: 1 });
        for (let i = 0; i < 5; i++) {
          bench.join({ tenant: 'a', tokens: 1000 });
          bench.join({ tenant: 'b', tokens: 1000 });
        }
        const first = bench.granted();
        expect(first.ticket.tenant).to.equal('a');
        first.grant.settle(0, usage(used));
        bench.end(first.grant, SUCCESS);
        bench.end(bench.granted().grant, SUCCESS);
        expect(bench.granted().ticket.tenant).to.equal(next);
      }
    });

    it('lets a tenant go on whose quota came back', () => {
      const bench = new AdmissionBench({ tenants: { a: { tokensPerMinute: 600 } } });
      bench.join({ tenant: 'a', tokens: 600 });
      const { grant } = bench.granted();
      const waiting = bench.join({ tenant: 'a', tokens: 600, maxWaitMs: Infinity });
      expect(bench.serve().untilMs).to.equal(60_000);
      bench.machine.end(grant, DROPPED_UNSENT);
      expect(bench.serve().granted).to.deep.equal([waiting]);
    });
  });
});
