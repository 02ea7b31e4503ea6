import { expect } from 'chai';
import { SUCCESS } from '../../lib/core/outcome.ts';
import type { AdmissionOptions } from '../../lib/limits/AdmissionOptions.ts';
import type { AdmissionTicket } from '../../lib/limits/AdmissionPool.ts';
import { AdmissionBench, failure } from '../helpers/admissionBench.ts';
import type { BenchAsk } from '../helpers/admissionBench.ts';

/** Serves until all are granted, each as soon as it can be: when, and who, by the names of `tickets`. */
function served(bench: AdmissionBench, tickets: Readonly<Record<string, AdmissionTicket>>): [number, string][] {
  const names = new Map(Object.entries(tickets).map(([name, ticket]) => [ticket, name]));
  const out: [number, string][] = [];
  for (let turns = 0; turns < 100 && out.length < names.size; turns++) {
    const { granted, untilMs } = bench.serve();
    for (const ticket of granted) out.push([bench.nowMs, names.get(ticket) ?? '?']);
    if (untilMs === Infinity) break;
    bench.nowMs = untilMs;
  }
  return out;
}

const waiting = (bench: AdmissionBench, asks: Readonly<Record<string, BenchAsk>>): Record<string, AdmissionTicket> =>
  Object.fromEntries(Object.entries(asks).map(([name, ask]) => [name, bench.join({ maxWaitMs: Infinity, ...ask })]));

describe('chooseNext', () => {
  describe('between those that have a reserve and others', () => {
    const options: AdmissionOptions = {
      maxInFlight: 2,
      tenants: { owed: { reservedInFlight: 1 }, default: {} },
      priorities: { order: ['high', 'low'], levels: { low: { maxInFlight: 1 } } },
    };

    it('gives the last slots to those who are owed one, whatever the priority', () => {
      const bench = new AdmissionBench(options);
      const { first, second, owed } = waiting(bench, {
        first: { tenant: 'a' },
        second: { tenant: 'a' },
        owed: { tenant: 'owed', priority: 'low' },
      });
      expect(bench.serve().granted).to.deep.equal([first, owed]);
      expect(second?.pool.waiting).to.equal(1);
    });

    it('gives none above the ceiling of its priority', () => {
      const bench = new AdmissionBench(options);
      bench.take({ tenant: 'a', priority: 'low' });
      const { first } = waiting(bench, { owed: { tenant: 'owed', priority: 'low' }, first: { tenant: 'a' } });
      expect(bench.serve().granted).to.deep.equal([first]);
    });

    it('gives none to one that is held back by something of its own', () => {
      const bench = new AdmissionBench({
        maxInFlight: 2,
        tenants: { owed: { reservedInFlight: 2, tokensPerMinute: 600 } },
      });
      bench.take({ tenant: 'owed', tokens: 600 });
      const { first } = waiting(bench, { owed: { tenant: 'owed', tokens: 10 }, first: { tenant: 'a' } });
      expect(bench.serve().granted).to.deep.equal([first]);
    });

    it('gives them in turn, each its most urgent that fits', () => {
      const bench = new AdmissionBench({
        maxInFlight: 2,
        tenants: { a: { reservedInFlight: 2 }, b: { reservedInFlight: 2 } },
        models: { full: { concurrency: { limit: 1 } } },
      });
      bench.take({ model: 'full' });
      const { mine, high } = waiting(bench, {
        other: { tenant: 'c' },
        closed: { tenant: 'a', model: 'full' },
        low: { tenant: 'a', priority: 'batch' },
        mine: { tenant: 'b', priority: 'batch' },
        high: { tenant: 'a' },
      });
      expect(bench.serve().granted).to.deep.equal([high]);
      bench.machine.lent = 3;
      expect(bench.serve().granted).to.deep.equal([]);
      bench.machine.reload({
        maxInFlight: 3,
        tenants: { a: { reservedInFlight: 2 }, b: { reservedInFlight: 2 } },
        models: { full: { concurrency: { limit: 1 } } },
      });
      expect(bench.serve().granted).to.deep.equal([mine]);
    });

    it('tries the smaller ones of those who are owed a slot too', () => {
      const bench = new AdmissionBench({
        maxInFlight: 1,
        quota: { account: { tokensPerMinute: 6000, burstTokens: 1000, passShare: 0 } },
        tenants: { owed: { reservedInFlight: 1 } },
      });
      bench.end(bench.take({ tokens: 900 }), SUCCESS);
      const { small } = waiting(bench, {
        large: { tenant: 'owed', tokens: 800 },
        small: { tenant: 'owed', tokens: 50 },
      });
      expect(bench.serve().granted).to.deep.equal([small]);
    });

    it('keeps nothing for one that is owed a slot and lacks tokens', () => {
      const bench = new AdmissionBench({
        maxInFlight: 1,
        quota: { account: { tokensPerMinute: 6000, burstTokens: 1000 } },
        tenants: { owed: { reservedInFlight: 1 } },
      });
      bench.end(bench.take({ tokens: 900 }), SUCCESS);
      const { small } = waiting(bench, { large: { tenant: 'owed', tokens: 800 }, small: { tenant: 'a', tokens: 50 } });
      expect(bench.serve().granted).to.deep.equal([small]);
    });
  });

  describe('between models', () => {
    it('takes the more urgent first, then the tenant that has had less, then the one that came first', () => {
      const bench = new AdmissionBench({ maxInFlight: 1 });
      const grant = bench.take({ tenant: 'c', tokens: 500 });
      const tickets = waiting(bench, {
        low: { model: 'a', tenant: 'x', priority: 'batch' },
        later: { model: 'b', tenant: 'c' },
        first: { model: 'd', tenant: 'y' },
        second: { model: 'e', tenant: 'z' },
      });
      bench.machine.end(grant, SUCCESS);
      bench.machine.close(grant);
      const order: (string | undefined)[] = [];
      for (let i = 0; i < 4; i++) {
        const step = bench.granted();
        order.push(Object.entries(tickets).find(([, ticket]) => ticket === step.ticket)?.[0]);
        bench.end(step.grant, SUCCESS);
      }
      expect(order).to.deep.equal(['first', 'second', 'later', 'low']);
    });

    it('goes by the most urgent of each', () => {
      const bench = new AdmissionBench({ maxInFlight: 1 });
      const grant = bench.take();
      const { urgent } = waiting(bench, {
        urgent: { model: 'a' },
        low: { model: 'a', priority: 'batch' },
        later: { model: 'b' },
      });
      bench.end(grant, SUCCESS);
      expect(bench.granted().ticket).to.equal(urgent);
    });

    it('goes by who came first, whichever model was asked for first', () => {
      const bench = new AdmissionBench({ maxInFlight: 1 });
      const grant = bench.take();
      const { left, first } = waiting(bench, { left: { model: 'a' }, first: { model: 'b' }, second: { model: 'a' } });
      bench.machine.cancel(left as AdmissionTicket);
      bench.end(grant, SUCCESS);
      expect(bench.granted().ticket).to.equal(first);
    });

    it('takes one whose turn it is with the first, whatever its priority', () => {
      const bench = new AdmissionBench({ maxInFlight: 1, priorities: { ageingMs: 100 } });
      const grant = bench.take({ tenant: 'x' });
      const { aged } = waiting(bench, { aged: { tenant: 'a', priority: 'batch' } });
      bench.nowMs = 100;
      bench.end(grant, SUCCESS);
      for (let i = 0; i < 7; i++) bench.end(grantOf(bench, bench.join({ tenant: 'x' })), SUCCESS);
      bench.join({ tenant: 'y', model: 'n' });
      bench.join({ tenant: 'x' });
      expect(bench.granted().ticket).to.equal(aged);
    });
  });

  describe('within a priority', () => {
    it('goes on to those behind one that its own tenant holds back, until that lets go', () => {
      const bench = new AdmissionBench({ tenants: { a: { requestsPerMinute: 60 } } });
      bench.take({ tenant: 'a' });
      const tickets = waiting(bench, { held: { tenant: 'a' }, other: { tenant: 'b' }, again: { tenant: 'a' } });
      expect(served(bench, tickets)).to.deep.equal([
        [0, 'other'],
        [1000, 'held'],
        [2000, 'again'],
      ]);
    });

    it('lets others go before one that waits alone for what is decided elsewhere', () => {
      const bench = new AdmissionBench({ models: { m: {} } });
      bench.target().gate = {
        closedMs: 0,
        places: Infinity,
        decides: (tenant) => tenant === 'a',
        lets: () => false,
        waitsAlone: (tenant) => tenant === 'a',
      };
      const { other } = waiting(bench, { alone: { tenant: 'a', tokens: 5 }, other: { tenant: 'b', tokens: 5 } });
      expect(bench.serve().granted).to.deep.equal([other]);
      const tenant = bench.machine.tenants.find('a');
      expect(tenant?.parkedIn.size).to.equal(1);
    });

    it('passes over a priority at its ceiling', () => {
      const bench = new AdmissionBench({
        priorities: { order: ['high', 'low'], levels: { high: { maxInFlight: 1 } } },
      });
      bench.take();
      const { low } = waiting(bench, { high: {}, low: { priority: 'low' } });
      expect(bench.serve().granted).to.deep.equal([low]);
    });
  });

  describe('where tokens are short', () => {
    const short = (passShare?: number): AdmissionBench => {
      const bench = new AdmissionBench({
        quota: { account: { tokensPerMinute: 6000, burstTokens: 1000, passShare } },
      });
      bench.take({ tenant: 'z', tokens: 1000 });
      return bench;
    };
    const small = { tenant: 's', tokens: 100 };
    const large = { tenant: 'l', tokens: 800 };

    for (const [passShare, instants] of [
      [
        0,
        [
          [8000, 'large'],
          [9000, 'a'],
          [10_000, 'b'],
        ],
      ],
      [
        0.125,
        [
          [1000, 'a'],
          [9000, 'large'],
          [10_000, 'b'],
        ],
      ],
      [
        0.24,
        [
          [1000, 'a'],
          [9000, 'large'],
          [10_000, 'b'],
        ],
      ],
      [
        0.25,
        [
          [1000, 'a'],
          [2000, 'b'],
          [10_000, 'large'],
        ],
      ],
    ] as const) {
      it(`lets small ones pass a large one until they have taken ${passShare} of its tokens`, () => {
        const bench = short(passShare);
        expect(served(bench, waiting(bench, { large, a: small, b: small }))).to.deep.equal(instants);
      });
    }

    it('lets half of its tokens pass where nothing is said', () => {
      const bench = short();
      const tickets = waiting(bench, { large, a: small, b: small, c: small, d: small, e: small });
      expect(tickets['large']?.passed).to.equal(0);
      expect(served(bench, tickets).map(([, name]) => name)).to.deep.equal(['a', 'b', 'c', 'd', 'large', 'e']);
      expect(tickets['large']?.passed).to.equal(400);
    });

    it('lets none pass ahead of the share of its tenant', () => {
      const bench = short();
      const queue = bench.machine.poolOf('m').queues[0];
      const tickets = waiting(bench, { large, a: small });
      queue?.correct('s', 701);
      expect(served(bench, tickets)).to.deep.equal([
        [8000, 'large'],
        [9000, 'a'],
      ]);
      const even = short();
      const same = waiting(even, { large, a: small });
      even.machine.poolOf('m').queues[0]?.correct('s', 700);
      expect(served(even, same)[0]).to.deep.equal([1000, 'a']);
    });

    it('lets those of another model and of other priorities pass, whatever they had', () => {
      for (const other of [{ model: 'n' }, { priority: 'batch' }]) {
        const bench = short();
        const tickets = waiting(bench, { large, a: { ...small, ...other } });
        const queue = tickets['a']?.pool.queueOf(tickets['a']);
        queue?.correct('s', 900);
        expect(served(bench, tickets)).to.deep.equal([
          [1000, 'a'],
          [9000, 'large'],
        ]);
      }
    });

    it('keeps no tokens for one that waits for a request', () => {
      const bench = new AdmissionBench({
        quota: { account: { tokensPerMinute: 6000, burstTokens: 1000, passShare: 0 } },
        models: { m: { deployments: [{ quota: { requestsPerMinute: 6 } }] } },
      });
      bench.take({ tenant: 'z' });
      // The large one waits for a request; there are tokens for it.
      const tickets = waiting(bench, {
        large,
        a: { tenant: 's', model: 'n', tokens: 100 },
        b: { tenant: 's', model: 'n', tokens: 90 },
      });
      expect(served(bench, tickets)).to.deep.equal([
        [0, 'a'],
        [0, 'b'],
        [10_000, 'large'],
      ]);
      expect(tickets['large']?.passed).to.equal(0);
    });

    it('keeps it where tokens are what it waits for longest', () => {
      const bench = new AdmissionBench({
        quota: {
          account: { requestsPerMinute: 60, burstRequests: 5, tokensPerMinute: 6000, burstTokens: 1000, passShare: 0 },
        },
      });
      bench.take({ tenant: 'z', tokens: 1000 });
      const tickets = waiting(bench, { large, a: { ...small, model: 'n' } });
      expect(served(bench, tickets)).to.deep.equal([
        [8000, 'large'],
        [9000, 'a'],
      ]);
    });

    it('counts what passes against the first of those that wait for a layer', () => {
      const bench = short();
      const tickets = waiting(bench, { large, second: { ...large, model: 'n' }, a: { ...small, model: 'o' } });
      bench.nowMs = 1000;
      bench.serve();
      expect([tickets['large']?.passed, tickets['second']?.passed]).to.deep.equal([100, 0]);
    });

    it('counts what passes against all that it passes, once each', () => {
      const bench = new AdmissionBench({
        quota: { account: { tokensPerMinute: 6000, burstTokens: 1000 } },
        models: {
          m: { quota: { tokensPerMinute: 6000, burstTokens: 1000 } },
          n: { quota: { tokensPerMinute: 6000, burstTokens: 1000 } },
        },
      });
      bench.take({ tenant: 'z', tokens: 1000 });
      const tickets = waiting(bench, { large, a: { ...small, model: 'n' }, b: small });
      bench.nowMs = 1000;
      bench.serve();
      expect(tickets['large']?.passed).to.equal(100);
      bench.nowMs = 2000;
      bench.serve();
      expect(tickets['large']?.passed).to.equal(200);
    });
  });

  describe('between deployments', () => {
    const twice = (breaker = {}): AdmissionBench =>
      new AdmissionBench({
        models: {
          m: { breaker, concurrency: { limit: 4 }, deployments: [{}, { client: 'azure' }, { client: 'third' }] },
        },
      });
    const go = (bench: AdmissionBench): string => bench.take().target.client;

    it('takes the one that is loaded least, and the first of those that are alike', () => {
      const bench = twice();
      expect(Array.from({ length: 7 }, () => go(bench))).to.deep.equal([
        ...['main', 'azure', 'third', 'main', 'azure', 'third', 'main'],
      ]);
    });

    it('lets one probe first whose breaker lets a share of the traffic through', () => {
      const bench = twice({ consecutiveFailures: 1, openMs: 100, halfOpenMaxMs: 1000 });
      const azure = [bench.take(), bench.take()][1];
      if (azure === undefined) return expect.fail('nothing granted');
      bench.end(azure, failure('server_error', { status: 500 }));
      for (let i = 0; i < 3; i++) bench.target('m', 1).takeSlot();
      expect([go(bench), go(bench)]).to.deep.equal(['third', 'main']);
      bench.nowMs = 100;
      expect(go(bench)).to.equal('azure');
      expect(go(bench), 'while it probes').to.not.equal('azure');
    });

    it('lets more probe first as long as that breaker lets them', () => {
      const bench = twice({ consecutiveFailures: 1, openMs: 100, halfOpenMaxMs: 1000, halfOpenShare: 1 });
      const azure = [bench.take(), bench.take()][1];
      if (azure === undefined) return expect.fail('nothing granted');
      bench.end(azure, failure('server_error', { status: 500 }));
      bench.nowMs = 100;
      expect([go(bench), go(bench), go(bench)]).to.deep.equal(['azure', 'azure', 'azure']);
    });
  });
});

function grantOf(bench: AdmissionBench, ticket: AdmissionTicket): ReturnType<AdmissionBench['take']> {
  const step = bench.granted();
  expect(step.ticket).to.equal(ticket);
  return step.grant;
}
