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
    routes: routes.map((route, i) => ({ cooldown: `${i}`, buckets: route.map((rule) => buckets.indexOf(rule)) })),
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
});
