import { expect } from 'chai';
import { SUCCESS } from '../../lib/core/outcome.ts';
import { AdmissionTicket } from '../../lib/limits/AdmissionPool.ts';
import type { AdmissionPool } from '../../lib/limits/AdmissionPool.ts';
import type { TargetGate } from '../../lib/limits/AdmissionTarget.ts';
import { AdmissionBench, failure } from '../helpers/admissionBench.ts';

const noCeiling: (level: number) => boolean = () => false;
const NOTHING = { requests: 0, tokens: 0 };
const ONE = { requests: 1, tokens: 0 };
const twice = {
  models: { m: { deployments: [{ quota: { requestsPerMinute: 60 } }, { quota: { requestsPerMinute: 6 } }] } },
};

describe('AdmissionPool', () => {
  let order = 0;
  const ticketFor = (bench: AdmissionBench, level: number, limitMs = 1000): AdmissionTicket => {
    const tenant = bench.machine.tenants.at('t', 0, 0);
    const pool = bench.machine.poolOf('m');
    return new AdmissionTicket(pool, tenant, level, ONE, order++, bench.nowMs, { code: 'queue_timeout', limitMs }, 7);
  };
  const joined = (bench: AdmissionBench, level: number, limitMs?: number): AdmissionTicket => {
    const ticket = ticketFor(bench, level, limitMs);
    ticket.pool.join(ticket);
    return ticket;
  };

  describe('as a place in the queue', () => {
    it('tells where it stands, whose it is and when its wait ends', () => {
      const bench = new AdmissionBench({ tenants: { t: { weight: 3 } } });
      bench.nowMs = 50;
      joined(bench, 0);
      expect(joined(bench, 1, 400)).to.include({
        kind: 'ticket',
        tenant: 't',
        weight: 3,
        level: 1,
        enqueuedAtMs: 50,
        expiresAtMs: 450,
        position: 2,
        foreseenMs: 7,
        passed: 0,
      });
      expect(ticketFor(bench, 0, 0).expiresAtMs).to.equal(51);
    });
  });

  describe('as a queue', () => {
    it('knows who waits longest, the most urgent first, and whose wait ends first', () => {
      const bench = new AdmissionBench();
      const pool = bench.machine.poolOf('m');
      expect([pool.oldest(), pool.firstToExpire(), pool.waiting]).to.deep.equal([undefined, undefined, 0]);
      const batch = joined(bench, 1, 300);
      joined(bench, 1, Infinity);
      expect([pool.oldest(), pool.firstToExpire()]).to.deep.equal([batch, batch]);
      const [first, second] = [joined(bench, 0, 500), joined(bench, 0, 200)];
      expect([pool.oldest(), pool.firstToExpire(), pool.waiting]).to.deep.equal([first, second, 4]);
      expect(pool.leave(second)).to.equal(true);
      expect(pool.leave(second)).to.equal(false);
      expect([pool.firstToExpire(), pool.waiting]).to.deep.equal([batch, 3]);
      pool.take(batch, 0, noCeiling);
      expect([pool.oldest(), pool.firstToExpire(), pool.waiting]).to.deep.equal([first, first, 2]);
      pool.take(first, 0, noCeiling);
      expect([pool.firstToExpire(), pool.waiting]).to.deep.equal([undefined, 1]);
    });

    it('knows whose wait ends first, whatever the order in which they came and go', () => {
      const bench = new AdmissionBench();
      const tickets = [500, 300, 700, 200, 600, 400].map((limitMs) => joined(bench, 0, limitMs));
      const order: number[] = [];
      for (let first = tickets[0]?.pool.firstToExpire(); first; first = first.pool.firstToExpire()) {
        order.push(first.expiresAtMs);
        first.pool.leave(first);
      }
      expect(order).to.deep.equal([200, 300, 400, 500, 600, 700]);
    });

    it('serves priorities in their order, and only those for which someone waits', () => {
      const bench = new AdmissionBench({ priorities: { order: ['a', 'b', 'c'] } });
      const pool = bench.machine.poolOf('m');
      expect(pool.levels(0)).to.deep.equal([]);
      joined(bench, 2);
      expect(pool.levels(0)).to.deep.equal([2]);
      joined(bench, 0);
      expect(pool.levels(0)).to.deep.equal([0, 2]);
    });

    /** So many of the most urgent are granted, at that time. */
    const overtake = (bench: AdmissionBench, times: number, full = noCeiling): void => {
      for (let i = 0; i < times; i++) {
        const ticket = joined(bench, 0);
        ticket.pool.take(ticket, bench.nowMs, full);
      }
    };
    const aged = (): { bench: AdmissionBench; pool: AdmissionPool } => {
      const bench = new AdmissionBench({ priorities: { order: ['a', 'b', 'c'], ageingMs: 100 } });
      return { bench, pool: bench.machine.poolOf('m') };
    };

    it('gives an aged priority its turn after seven of more urgent ones', () => {
      const { bench, pool } = aged();
      const waiting = joined(bench, 1);
      bench.nowMs = 100;
      overtake(bench, 6);
      joined(bench, 0);
      expect(pool.levels(100)).to.deep.equal([0, 1]);
      overtake(bench, 1);
      expect(pool.levels(100)).to.deep.equal([1, 0]);
      joined(bench, 1);
      pool.take(waiting, 100, noCeiling);
      bench.nowMs = 300;
      expect(pool.levels(300), 'it has had its turn').to.deep.equal([0, 1]);
    });

    it('counts no turns before it has aged, nor while it is at its ceiling', () => {
      const { bench, pool } = aged();
      joined(bench, 1);
      bench.nowMs = 99;
      overtake(bench, 9);
      bench.nowMs = 100;
      overtake(bench, 9, (level) => level === 1);
      overtake(bench, 6);
      joined(bench, 0);
      expect(pool.levels(100)).to.deep.equal([0, 1]);
      overtake(bench, 1);
      expect(pool.levels(100)).to.deep.equal([1, 0]);
    });

    it('ages from when it came, and keeps its turns over a reload', () => {
      const { bench, pool } = aged();
      bench.nowMs = 1000;
      joined(bench, 1);
      bench.nowMs = 1050;
      overtake(bench, 9);
      expect(pool.hasTurn(1, 1050)).to.equal(false);
      bench.nowMs = 1100;
      overtake(bench, 6);
      const { rules } = bench.machine;
      const [queue] = pool.queues;
      pool.reload({ ...rules, ageingMs: 100 }, [0, 1, 2]);
      expect(pool.queues[0], 'with all that it knows').to.equal(queue);
      overtake(bench, 1);
      expect([pool.hasTurn(1, 1100), pool.hasTurn(2, 1100)]).to.deep.equal([true, false]);
      pool.reload({ ageingMs: 100, levels: rules.levels.slice(0, 2) }, [0, 0, 1]);
      expect(pool.queues.map(({ size }) => size)).to.deep.equal([1, 0]);
      expect(pool.hasTurn(1, 1100), 'it begins anew').to.equal(false);
    });

    it('ages twice as slowly one that is twice as far from the first', () => {
      const { bench, pool } = aged();
      joined(bench, 2);
      bench.nowMs = 199;
      overtake(bench, 7);
      joined(bench, 0);
      expect(pool.levels(199)).to.deep.equal([0, 2]);
      bench.nowMs = 200;
      overtake(bench, 7);
      expect(pool.levels(200)).to.deep.equal([2, 0]);
    });

    it('gives the one its turn first that was overtaken more often', () => {
      const { bench, pool } = aged();
      joined(bench, 1);
      bench.nowMs = 100;
      overtake(bench, 3);
      joined(bench, 2);
      joined(bench, 0);
      bench.nowMs = 400;
      overtake(bench, 8);
      expect(pool.levels(400)).to.deep.equal([1, 2, 0]);
      const other = joined(bench, 1);
      other.pool.take(other, 400, noCeiling);
      expect(pool.levels(400), 'level 1 starts again, level 2 was overtaken once more').to.deep.equal([2, 0, 1]);
    });

    it('overtakes nobody that is more urgent, nor a priority for which nobody waits', () => {
      const { bench, pool } = aged();
      joined(bench, 0);
      bench.nowMs = 500;
      for (let i = 0; i < 9; i++) {
        const ticket = joined(bench, 1);
        pool.take(ticket, 500, noCeiling);
      }
      joined(bench, 2);
      expect(pool.levels(900)).to.deep.equal([0, 2]);
      expect([0, 1, 2].map((level) => pool.hasTurn(level, 900))).to.deep.equal([false, false, false]);
    });
  });

  describe('as deployments', () => {
    it('is out of reach only where all of them are, for as long as the first of them', () => {
      const bench = new AdmissionBench(twice);
      const pool = bench.machine.poolOf('m');
      bench.target('m', 0).exhausted(300);
      expect(pool.unavailableMs(0)).to.equal(0);
      bench.target('m', 1).exhausted(200);
      expect(pool.unavailableMs(0)).to.equal(200);
    });

    it('foresees the wait at the best of those that can be asked', () => {
      const bench = new AdmissionBench(twice);
      const pool = bench.machine.poolOf('m');
      for (const target of pool.targets) target.learned.layer.requests?.charge(0, 1);
      // Who waits may go to either: they are not ahead of anyone at one of them.
      expect(pool.foreseenMs(0, { requests: 5, tokens: 0 }, ONE)).to.equal(1000);
      bench.target('m', 0).exhausted(300);
      expect(pool.foreseenMs(0, NOTHING, ONE)).to.equal(10_000);
      bench.target('m', 1).exhausted(300);
      expect(pool.foreseenMs(0, NOTHING, ONE)).to.equal(Infinity);
      const alone = new AdmissionBench({ models: { m: { deployments: [{ quota: { requestsPerMinute: 60 } }] } } });
      alone.target().learned.layer.requests?.charge(0, 1);
      expect(alone.machine.poolOf('m').foreseenMs(0, { requests: 5, tokens: 0 }, ONE)).to.equal(6000);
    });

    it('fits where there is room, and knows where there will be first', () => {
      const bench = new AdmissionBench(twice);
      const pool = bench.machine.poolOf('m');
      const [fast, slow] = pool.targets;
      const ticket = joined(bench, 0);
      expect(pool.fit(0, ticket)).to.deep.equal({ targets: [fast, slow], waitMs: Infinity, soonest: undefined });
      fast?.learned.layer.requests?.charge(0, 1);
      expect(pool.fit(0, ticket)).to.deep.equal({ targets: [slow], waitMs: 1000, soonest: fast });
      slow?.learned.layer.requests?.charge(0, 1);
      expect(pool.fit(0, ticket)).to.deep.equal({ targets: [], waitMs: 1000, soonest: fast });
      fast?.exhausted(20_000);
      expect(pool.fit(0, ticket)).to.deep.equal({ targets: [], waitMs: 10_000, soonest: slow });
    });

    it('fits nowhere that is full, or where others decide against it, until somebody tells', () => {
      const gate: TargetGate = {
        closedMs: 0,
        places: Infinity,
        decides: () => true,
        lets: () => false,
        waitsAlone: (tenant) => tenant === 't',
      };
      const bench = new AdmissionBench({ models: { m: { concurrency: { limit: 1 } } } });
      const pool = bench.machine.poolOf('m');
      const ticket = joined(bench, 0);
      expect(pool.waitsAlone('t')).to.equal(false);
      bench.target().gate = gate;
      expect(pool.fit(0, ticket)).to.deep.equal({ targets: [], waitMs: Infinity, soonest: undefined });
      expect([pool.waitsAlone('t'), pool.waitsAlone('u')]).to.deep.equal([true, false]);
      bench.target().gate = { ...gate, lets: () => true };
      expect(pool.fit(0, ticket).targets).to.have.length(1);
      bench.target().takeSlot();
      expect(pool.fit(0, ticket)).to.deep.equal({ targets: [], waitMs: Infinity, soonest: undefined });
    });

    it('waits alone only where that is so at each deployment', () => {
      const bench = new AdmissionBench(twice);
      const gate: TargetGate = {
        closedMs: 0,
        places: Infinity,
        decides: () => true,
        lets: () => false,
        waitsAlone: () => true,
      };
      bench.target('m', 0).gate = gate;
      expect(bench.machine.poolOf('m').waitsAlone('t')).to.equal(false);
      bench.target('m', 1).gate = gate;
      expect(bench.machine.poolOf('m').waitsAlone('t')).to.equal(true);
    });

    it('fits nowhere that another is entitled to the tokens of a layer', () => {
      const bench = new AdmissionBench({ quota: { account: { tokensPerMinute: 600 } } });
      const pool = bench.machine.poolOf('m');
      const ticket = joined(bench, 0);
      const asked: string[] = [];
      const may = (answer: boolean) => (layer: { name: string }, tokens: number) => {
        asked.push(`${layer.name} ${tokens}`);
        return answer;
      };
      expect(pool.fit(0, ticket, may(true)).targets).to.have.length(1);
      expect(asked).to.deep.equal(['account 0', 'm 0']);
      expect(pool.fit(0, ticket, may(false)).targets).to.deep.equal([]);
    });
  });

  describe('as a guess of when to come back', () => {
    it('follows from how fast the queue has moved of late', () => {
      const bench = new AdmissionBench();
      const pool = bench.machine.poolOf('m');
      expect(pool.retryAfterMs(0, 0)).to.equal(1);
      expect(pool.retryAfterMs(0, 250.5)).to.equal(251);
      joined(bench, 0);
      expect(pool.retryAfterMs(0, 0), 'nothing moved yet').to.equal(1000);
      for (let i = 0; i < 20; i++) {
        const ticket = joined(bench, 0);
        pool.take(ticket, 0, noCeiling);
      }
      expect(pool.retryAfterMs(0, 0)).to.equal(3000);
      expect(pool.retryAfterMs(0, 4000)).to.equal(4000);
      for (let i = 0; i < 99; i++) joined(bench, 0);
      expect(pool.retryAfterMs(0, 0)).to.equal(60_000);
      expect(pool.retryAfterMs(0, 70_000)).to.equal(70_000);
      expect(pool.retryAfterMs(40_000, 0), 'it is long ago').to.equal(1000);
    });
  });

  describe('as memory', () => {
    it('can be forgotten when nobody waits, its layer is at rest, and its deployments can be', () => {
      const bench = new AdmissionBench({ models: { m: { quota: { requestsPerMinute: 60 } } } });
      const pool = bench.machine.poolOf('m');
      expect(pool.forgettable(0)).to.equal(true);
      const ticket = joined(bench, 0);
      expect(pool.forgettable(0)).to.equal(false);
      pool.leave(ticket);
      expect(pool.forgettable(0)).to.equal(true);
      pool.layer?.requests?.charge(0, 1);
      expect(pool.forgettable(0)).to.equal(false);
      expect(pool.forgettable(1000)).to.equal(true);
      bench.target().exhausted(2000);
      expect(pool.forgettable(1000)).to.equal(false);
    });

    it('can be forgotten only where each of its deployments can be, and at once where nobody ever called it', () => {
      const bench = new AdmissionBench(twice);
      bench.target('m', 1).exhausted(100);
      expect(bench.machine.poolOf('m').forgettable(0)).to.equal(false);
      const other = new AdmissionBench({ models: { m: { concurrency: { initial: 8, min: 1, max: 9 } } } });
      const target = other.target();
      target.judge(target.takeSlot(), 0, failure('rate_limited'), undefined);
      target.freeSlot();
      expect(other.machine.poolOf('m').forgettable(0)).to.equal(true);
    });

    it('forgets what was learned ten minutes after the last of its calls', () => {
      const bench = new AdmissionBench({ models: { m: { concurrency: { initial: 8, min: 1, max: 9 } } } });
      const pool = bench.machine.poolOf('m');
      bench.end(bench.take(), failure('rate_limited', { retryAfterMs: 0 }));
      bench.nowMs = 100_000;
      bench.end(bench.take(), SUCCESS);
      expect(bench.target().limit).to.be.below(8);
      expect([pool.forgettable(699_999), pool.forgettable(700_000)]).to.deep.equal([false, true]);
      bench.nowMs = 200_000;
      pool.leave(joined(bench, 0));
      expect([pool.forgettable(799_999), pool.forgettable(800_000)]).to.deep.equal([false, true]);
    });
  });
});
