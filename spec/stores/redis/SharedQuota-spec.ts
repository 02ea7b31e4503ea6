import { expect } from 'chai';
import fc from 'fast-check';
import { REPLY } from '../../../lib/stores/redis/QuotaCall.ts';
import type { BucketRule, OpReply, QuotaOp, SharedQuotaRules } from '../../../lib/stores/redis/QuotaCall.ts';
import { SharedQuota } from '../../../lib/stores/redis/SharedQuota.ts';

const MINUTE_US = 60_000_000;
const LONG_US = 1e12;

const bucketOf = (key: string, perMinute: number, burst: number): BucketRule => ({
  key,
  perMinute,
  sizeUs: Math.floor((burst * MINUTE_US) / perMinute),
  lagUs: Math.floor(Math.min(100_000, ((burst - 1 + 0.03) * MINUTE_US) / perMinute)),
});

const rules: SharedQuotaRules = {
  maxWaiting: 1000,
  cooldown: { unhintedMs: 1000, jitter: 0, trialMs: 2000, staggerMs: 20, rampMs: 1000 },
  graceUs: 20_000,
  aheadUs: 20_000,
  sliceUs: 100_000,
  planMost: 100,
  leaseUs: 3_000_000,
  memberUs: 60_000_000,
  keepMs: 86_400_000,
};

/** A quota, and the buckets of the routes that calls name by number. */
interface Made {
  readonly quota: SharedQuota;
  readonly routes: readonly (readonly BucketRule[])[];
}

const quotaOf = (...routes: readonly (readonly BucketRule[])[]): Made => ({
  quota: new SharedQuota(rules, 0, 0),
  routes,
});
const oneOf = (perMinute: number, burst: number): Made => quotaOf([bucketOf('r:account', perMinute, burst)]);

const ask = ({ quota, routes }: Made, nowUs: number, ops: readonly QuotaOp[], process = 'p', waits: 0 | 1 = 1) => {
  const buckets = [...new Map(routes.flat().map((rule) => [rule.key, rule])).values()];
  return quota.call(nowUs, {
    member: process,
    process,
    known: 0,
    waits,
    random: 0,
    buckets,
    routes: routes.map((route, i) => ({
      cooldown: `${i}`,
      buckets: route.map(({ key }) => buckets.findIndex((rule) => rule.key === key)),
    })),
    alone: [],
    ops,
  });
};

describe('SharedQuota', () => {
  const call = (made: Made, nowUs: number, ops: readonly QuotaOp[], process = 'p'): readonly OpReply[] =>
    ask(made, nowUs, ops, process)[5];
  const enter = (id: string, requests = 1, spare = 0, route = 0): QuotaOp => [
    'enter',
    route,
    id,
    requests,
    0,
    LONG_US,
    spare,
    0,
  ];

  it('grants a burst less the margin at once, and the rest at the rate', () => {
    const quota = oneOf(3000, 50);
    const replies = call(
      quota,
      0,
      Array.from({ length: 60 }, (_, i) => enter(`p/${i}`)),
    );

    expect(replies.filter(([kind]) => kind === REPLY.granted)).to.have.length(45);
    expect(replies[45]?.slice(0, 2)).to.deep.equal([REPLY.wait, 20_000]);
    expect(replies[59]?.slice(0, 2)).to.deep.equal([REPLY.wait, 300_000]);
  });

  it('moves up those behind one who leaves', () => {
    const quota = oneOf(60, 1);
    call(quota, 0, [enter('p/0'), enter('p/1', 30), enter('p/2')]);
    const [before] = call(quota, 500_000, [['look', 0, 'p/2']]);
    call(quota, 600_000, [['leave', 0, 'p/1']]);
    const [after] = call(quota, 700_000, [['look', 0, 'p/2']]);

    expect(before?.[1]).to.be.above(30_000_000);
    expect(after?.[1]).to.be.below(400_000);
  });

  it('forgets the line of a process that was not heard of for its lease, and no earlier', () => {
    const quota = oneOf(60, 1);
    call(quota, 0, [enter('p/0'), enter('p/1')]);
    call(quota, 0, [enter('q/0')], 'q');

    expect(call(quota, 3_000_000, [['look', 0, 'p/1']], 'r')[0]?.[0]).to.equal(REPLY.granted);
    expect(call(quota, 3_000_001, [['look', 0, 'q/0']], 'r')[0]?.[0]).to.equal(REPLY.gone);
  });

  it('takes ahead of need at most half of what there is', () => {
    const quota = oneOf(60, 100);
    const [reply] = call(quota, 0, [enter('p/0', 1, 1000)]);

    expect(reply?.[3]).to.equal(48);
    expect(call(quota, 0, [enter('p/1', 1, 1000)])[0]?.[3]).to.equal(0);
  });

  it('counts the processes that it heard of within the time of a member', () => {
    const quota = oneOf(60, 1);
    for (const process of ['a', 'b', 'c']) call(quota, 0, [], process);
    const members = (nowUs: number): number => ask(quota, nowUs, [], 'd')[1];

    expect(members(60_000_000)).to.equal(4);
    expect(members(60_000_001)).to.equal(1);
  });

  it('never grants more than the quota in any stretch of time, whatever is asked, left and given back', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 30 }),
        fc.array(fc.tuple(fc.nat(400_000), fc.nat(9), fc.nat(20)), { minLength: 1, maxLength: 60 }),
        (burst, steps) => {
          const perMinute = 1200;
          const quota = oneOf(perMinute, burst);
          const granted: number[] = [];
          const waiting: string[] = [];
          const hear = (id: string, nowUs: number, [kind, inUs = 0]: OpReply = []): void => {
            if (kind === REPLY.wait) {
              if (!waiting.includes(id)) waiting.push(id);
              return;
            }
            const at = waiting.indexOf(id);
            if (at >= 0) waiting.splice(at, 1);
            if (kind === REPLY.granted) granted.push(nowUs + inUs);
          };
          let nowUs = 0;
          steps.forEach(([afterUs, kind, pick], i) => {
            nowUs += afterUs;
            const id = waiting[pick % Math.max(1, waiting.length)];
            if (id === undefined || kind < 5) hear(`p/${i}`, nowUs, call(quota, nowUs, [enter(`p/${i}`)])[0]);
            else if (kind === 5) {
              call(quota, nowUs, [['leave', 0, id]]);
              waiting.splice(waiting.indexOf(id), 1);
            } else hear(id, nowUs, call(quota, nowUs, [['look', 0, id]])[0]);
          });
          granted.sort((a, b) => a - b);
          let lowest = Infinity;
          granted.forEach((atUs, i) => {
            lowest = Math.min(lowest, i - (perMinute * atUs) / MINUTE_US);
            // What is taken up within the grace counts as taken in time: the margin covers it.
            const late = (perMinute * 20_000) / MINUTE_US;
            expect(i + 1 - (perMinute * atUs) / MINUTE_US - lowest).to.be.at.most(burst + late + 1e-9);
          });
        },
      ),
      { numRuns: 300 },
    );
  });

  it('grants everyone at the turn it named, if nothing else happens', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 20 }),
        fc.array(fc.integer({ min: 1, max: 4 }), { maxLength: 40 }),
        (burst, costs) => {
          const quota = oneOf(600, burst);
          const replies = call(
            quota,
            0,
            costs.map((cost, i) => enter(`p/${i}`, cost)),
          );
          replies.forEach(([kind, us = 0], i) => {
            if (kind === REPLY.wait)
              expect(call(quota, us, [['look', 0, `p/${i}`]])[0]?.slice(0, 2)).to.deep.equal([1, 0]);
          });
        },
      ),
      { numRuns: 200 },
    );
  });

  it('gives back no more than would be there had it never been taken', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.nat(300_000), fc.integer({ min: 1, max: 5 }), fc.boolean()), { maxLength: 20 }),
        (steps) => {
          const quota = oneOf(600, 10);
          const without = oneOf(600, 10);
          const drain = (of: Made, nowUs: number, ops: readonly QuotaOp[]): number =>
            ask(of, nowUs, ops, '', 0)[4][0] ?? 0;
          let nowUs = 0;
          const taken: { readonly cost: number; readonly marks: readonly number[] }[] = [];
          for (const [afterUs, cost, kept] of steps) {
            nowUs += afterUs;
            const [reply] = call(quota, nowUs, [['enter', 0, `p/${nowUs}`, cost, 0, 0, 0, 0]]);
            if (reply?.[0] !== REPLY.granted) continue;
            if (kept) drain(without, nowUs, [['more', 0, cost, 0]]);
            else taken.push({ cost, marks: reply.slice(4) });
          }
          const ops = taken.map(({ cost, marks }): QuotaOp => ['back', 0, cost, 0, ...marks]);
          expect(drain(quota, nowUs, ops)).to.be.at.least(drain(without, nowUs, []));
        },
      ),
      { numRuns: 300 },
    );
  });

  describe('on routes that share a layer', () => {
    const account = bucketOf('r:account', 3000, 50);
    const a = bucketOf('r:a', 60, 1);
    const b = bucketOf('r:b', 3000, 50);

    it('does not hold up one for those who wait for the room of another', () => {
      const made = quotaOf([account, a], [account, b]);
      const many = Array.from({ length: 500 }, (_, i) => enter(`p/a${i}`));
      call(made, 0, many);
      const replies = call(
        made,
        1000,
        Array.from({ length: 20 }, (_, i) => enter(`p/b${i}`, 1, 0, 1)),
      );

      expect(replies.map(([kind]) => kind)).to.deep.equal(Array(20).fill(REPLY.granted));
    });

    it('gives what is shared in the order in which they came', () => {
      const made = quotaOf([bucketOf('r:account', 60, 1), b], [bucketOf('r:account', 60, 1)]);
      call(made, 0, [enter('p/0')]);
      const turns = call(
        made,
        0,
        [1, 0, 1, 0].map((route, i) => enter(`p/${i + 1}`, 1, 0, route)),
      ).map(([, us = 0]) => us);

      expect(turns).to.deep.equal([1, 2, 3, 4].map((second) => second * 1_030_000));
    });

    it('gives one its turn as soon as its own room allows, though others want all that is shared', () => {
      const shared = bucketOf('r:account', 600, 5);
      const made = quotaOf([shared, bucketOf('r:a', 300, 5)], [shared]);
      const waiting = new Map<string, number>();
      const granted = [0, 0];
      let id = 0;
      for (let nowUs = 0; nowUs < 60_000_000; nowUs += 20_000) {
        // Route 0 wants as much as it may have, route 1 more than all there is.
        const asked: QuotaOp[] = [];
        for (const route of nowUs % 200_000 === 0 ? [0, 1, 1, 1] : []) {
          waiting.set(`p/${id}`, route);
          asked.push(enter(`p/${id++}`, 1, 0, route));
        }
        const looks = [...waiting].slice(0, 40).map(([each, route]): QuotaOp => ['look', route, each]);
        const ops = [...looks.filter(([, , each]) => !asked.some((one) => one[2] === each)), ...asked];
        call(made, nowUs, ops).forEach(([kind], i) => {
          const op = ops[i]!;
          if (kind !== REPLY.granted) return;
          granted[op[1]]!++;
          waiting.delete(op[2] as string);
        });
      }

      expect(granted[0]! + granted[1]!).to.be.within(595, 606);
      // Who came first: a quarter of those who came.
      expect(granted[0]).to.be.within(135, 165);
    });

    it('plans a long line part by part, in as many calls as it takes', () => {
      const made = quotaOf([bucketOf('r:account', 6000, 1)]);
      const nowUs = 1_000_000_000;
      call(
        made,
        nowUs,
        Array.from({ length: 450 }, (_, i) => enter(`p/${i}`)),
      );
      call(made, nowUs, [['leave', 0, 'p/10']]);
      const waits = Array.from({ length: 5 }, () => call(made, nowUs, [['look', 0, 'p/449']])[0]?.[1] ?? 0);

      // One of ten milliseconds before it is gone.
      expect(waits.slice(0, 4)).to.deep.equal(Array(4).fill(waits[0]));
      expect(waits[0]! - waits[4]!).to.be.within(9_000, 12_000);
    });

    it('never grants more of any bucket than it holds, in any stretch of time', () => {
      const rate = (perMinute: number, burst: number) => ({ perMinute, burst });
      const of = { account: rate(1200, 12), a: rate(600, 5), b: rate(900, 3) };
      const shared = bucketOf('r:account', of.account.perMinute, of.account.burst);
      fc.assert(
        fc.property(
          fc.array(fc.tuple(fc.nat(300_000), fc.nat(9), fc.nat(20), fc.boolean()), { minLength: 1, maxLength: 80 }),
          (steps) => {
            const made = quotaOf(
              [shared, bucketOf('r:a', of.a.perMinute, of.a.burst)],
              [shared, bucketOf('r:b', of.b.perMinute, of.b.burst)],
            );
            const granted: { readonly atUs: number; readonly route: number }[] = [];
            const waiting: { readonly id: string; readonly route: number }[] = [];
            let nowUs = 0;
            steps.forEach(([afterUs, kind, pick, onB], i) => {
              nowUs += afterUs;
              const known = waiting[pick % Math.max(1, waiting.length)];
              const at = kind < 6 || !known ? { id: `p/${i}`, route: onB ? 1 : 0 } : known;
              const op: QuotaOp = at === known ? ['look', at.route, at.id] : enter(at.id, 1, 0, at.route);
              const [reply] = call(made, nowUs, [op]);
              if (reply?.[0] === REPLY.wait && at !== known) waiting.push(at);
              if (reply?.[0] === REPLY.granted) {
                granted.push({ atUs: nowUs + (reply[1] ?? 0), route: at.route });
                if (at === known) waiting.splice(waiting.indexOf(known), 1);
              }
            });
            for (const [which, { perMinute, burst }] of Object.entries(of)) {
              const inBucket = granted.filter(
                ({ route }) => which === 'account' || which === (route === 0 ? 'a' : 'b'),
              );
              let lowest = Infinity;
              inBucket
                .map(({ atUs }) => (perMinute * atUs) / MINUTE_US)
                .sort((x, y) => x - y)
                .forEach((refilled, i) => {
                  lowest = Math.min(lowest, i - refilled);
                  expect(i + 1 - refilled - lowest, which).to.be.at.most(
                    burst + (perMinute * 20_000) / MINUTE_US + 1e-9,
                  );
                });
            }
          },
        ),
        { numRuns: 200 },
      );
    });
  });

  describe('when its rates change', () => {
    const drainOf = (made: Made, nowUs: number): number => ask(made, nowUs, [], '', 0)[4][0] ?? 0;
    const withRates = ({ quota }: Made, perMinute: number, burst: number): Made => ({
      quota,
      routes: [[bucketOf('r:account', perMinute, burst)]],
    });

    it('keeps what there is, and refills nothing', () => {
      const made = oneOf(600, 10);
      call(made, 0, [enter('p/0', 7)]);
      const faster = withRates(made, 1200, 30);

      // Two of ten are there, the margin aside; 28 of 30 are missing then, at twenty a second.
      expect(drainOf(faster, 0)).to.equal(28 * 50_000);
      expect(drainOf(withRates(made, 600, 10), 100_000)).to.be.at.least(500_000);
    });

    it('holds no more than its new burst', () => {
      const made = oneOf(600, 100);
      call(made, 0, [enter('p/0', 10)]);
      const smaller = withRates(made, 600, 20);

      expect(drainOf(smaller, 0)).to.equal(0);
      expect(
        call(
          smaller,
          0,
          Array.from({ length: 30 }, (_, i) => enter(`p/s${i}`)),
        ).filter(([kind]) => kind === 1),
      ).to.have.length.within(18, 20);
    });

    it('plans the turns of those who wait anew', () => {
      const made = oneOf(60, 1);
      call(made, 0, [enter('p/0'), enter('p/1'), enter('p/2')]);
      const faster = withRates(made, 600, 1);
      call(faster, 10_000, []);

      expect(call(faster, 20_000, [['look', 0, 'p/2']])[0]?.[1]).to.be.below(1_300_000);
    });

    it('gives nothing back that was charged at other rates', () => {
      const made = oneOf(60, 10);
      const [, , , , ...marks] = call(made, 0, [enter('p/0', 10)])[0] ?? [];
      const faster = withRates(made, 600, 10);
      const before = drainOf(faster, 5_000_000);
      call(faster, 5_000_000, [['back', 0, 10, 0, ...marks]]);

      expect(drainOf(faster, 5_000_000)).to.equal(before);
    });
  });
});
