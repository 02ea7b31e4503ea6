import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import fc from 'fast-check';
import type { BucketRule, QuotaCall, QuotaOp, SharedQuotaRules } from '../../../lib/stores/redis/QuotaCall.ts';
import { SharedQuota } from '../../../lib/stores/redis/SharedQuota.ts';
import { describeWithRedis } from '../../helpers/redisServer.ts';
import { useRedis } from '../../helpers/useRedis.ts';

/** A multiple of a hundred: `SEQUENCES=10000 npx mocha spec/stores/redis/parity-spec.ts` for the full number. */
const SEQUENCES = Number(process.env['SEQUENCES'] ?? 300);
const AT_ONCE = 100;

/** The script with its clock replaced by a third argument. */
const parts = ['quotaBuckets.lua', 'quotaCooldowns.lua', 'quotaLine.lua', 'quota.lua'];
const source = parts
  .map((part) => readFileSync(new URL(`../../../lib/stores/redis/${part}`, import.meta.url), 'utf8'))
  .join('\n');
const timed = source.replace(
  "redis.call('TIME')",
  '{ math.floor(tonumber(ARGV[3]) / 1000000), tonumber(ARGV[3]) % 1000000 }',
);

const rules: SharedQuotaRules = {
  maxWaiting: 5,
  cooldown: { unhintedMs: 300, jitter: 0.1, trialMs: 400, staggerMs: 20, rampMs: 200 },
  graceUs: 20_000,
  aheadUs: 30_000,
  sliceUs: 100_000,
  planMost: 2,
  leaseUs: 900_000,
  memberUs: 5_000_000,
  keepMs: 60_000,
};

/** Rates as they are at first, and as they are after a reload. */
const rates: readonly Record<string, BucketRule>[] = [
  [
    { key: 'r:account', perMinute: 600, sizeUs: 300_000, lagUs: 50_000 },
    { key: 't:account', perMinute: 70_000, sizeUs: 3_000_000, lagUs: 50_000 },
    { key: 'r:model a', perMinute: 470, sizeUs: 1_000_000, lagUs: 0 },
    { key: 'r:model b', perMinute: 120, sizeUs: 2_000_000, lagUs: 20_000 },
    { key: 't:tenant', perMinute: 9_000, sizeUs: 9_000_000, lagUs: 0 },
  ],
  [
    { key: 'r:account', perMinute: 900, sizeUs: 400_000, lagUs: 60_000 },
    { key: 't:account', perMinute: 70_000, sizeUs: 2_000_000, lagUs: 50_000 },
    { key: 'r:model a', perMinute: 333, sizeUs: 1_000_000, lagUs: 10_000 },
    { key: 'r:model b', perMinute: 120, sizeUs: 4_000_000, lagUs: 20_000 },
    { key: 't:tenant', perMinute: 9_000, sizeUs: 9_000_000, lagUs: 5000 },
  ],
].map((buckets) => Object.fromEntries(buckets.map((bucket) => [bucket.key, bucket])));

/** Some share everything but a bucket, some a pause, some nothing. */
const ROUTES = [
  { cooldown: 'a', keys: ['r:account', 't:account', 'r:model a'] },
  { cooldown: 'b', keys: ['r:account', 't:account', 'r:model b'] },
  { cooldown: 'a', keys: ['r:account', 't:account', 'r:model a', 't:tenant'] },
  { cooldown: 'b', keys: ['r:model b'] },
  { cooldown: 'none', keys: [] },
] as const;

interface Step {
  readonly afterUs: number;
  readonly process: number;
  readonly random: number;
  readonly forgetful: boolean;
  readonly reloaded: boolean;
  readonly alone: boolean;
  readonly ops: readonly {
    readonly kind: number;
    readonly route: number;
    readonly a: number;
    readonly b: number;
    readonly c: number;
  }[];
}

const oneIn = (times: number): fc.Arbitrary<boolean> => fc.nat(times - 1).map((drawn) => drawn === 0);

const step: fc.Arbitrary<Step> = fc.record({
  afterUs: fc.oneof(fc.nat(3000), fc.nat(150_000), fc.nat(3_000_000)),
  process: fc.nat(2),
  random: fc.double({ min: 0, max: 0.999, noNaN: true }),
  forgetful: fc.boolean(),
  reloaded: oneIn(8),
  alone: oneIn(30),
  ops: fc.array(fc.record({ kind: fc.nat(18), route: fc.nat(5), a: fc.nat(1000), b: fc.nat(1000), c: fc.nat(1000) }), {
    minLength: 1,
    maxLength: 4,
  }),
});

/** Makes calls as processes would: they look at what they put in line, and give back what they were given. */
class Caller {
  readonly #ids: { readonly id: string; readonly route: number }[] = [];
  readonly #marks = new Map<number, readonly number[]>();
  #known = 0;

  call({ process, random, forgetful, reloaded, alone, ops }: Step): QuotaCall {
    const name = `p${process}`;
    const made = ops.map((op) => this.#op(name, op));
    const used = [...new Set(made.map(([, route]) => route))];
    const buckets = [...new Set(used.flatMap((route) => ROUTES[route]!.keys))];
    return {
      member: name,
      process: name,
      known: forgetful ? 0 : this.#known,
      waits: this.#ids.some(({ id }) => id.startsWith(name)) ? 1 : 0,
      random,
      buckets: buckets.map((key) => rates[reloaded ? 1 : 0]![key]!),
      routes: used.map((route) => {
        const { cooldown, keys } = ROUTES[route]!;
        return { cooldown, buckets: keys.map((key) => buckets.indexOf(key)) };
      }),
      alone: alone ? [ops[0]!.c * 100, ...buckets.map((_, i) => i * ops[0]!.b * 10)] : [],
      ops: made.map(([kind, route, ...rest]) => [kind, used.indexOf(route), ...rest] as unknown as QuotaOp),
    };
  }

  hear({ ops, routes }: QuotaCall, reply: readonly unknown[]): void {
    this.#known = reply[0] as number;
    (reply[5] as number[][]).forEach((each, i) => {
      const { cooldown, buckets } = routes[ops[i]![1]]!;
      const route = ROUTES.findIndex((one) => one.cooldown === cooldown && one.keys.length === buckets.length);
      if (each[0] === 1) this.#marks.set(route, each.slice(4, 4 + 3 * buckets.length));
    });
  }

  /** With the number of the route among all. */
  #op(process: string, { kind, route: drawn, a, b, c }: Step['ops'][number]): QuotaOp {
    const route = drawn % ROUTES.length;
    const known = this.#ids[a % Math.max(1, this.#ids.length)] ?? { id: 'none/0', route };
    const marks = this.#marks.get(route) ?? [];
    if (kind < 7) {
      const id = `${process}/${this.#ids.length}`;
      this.#ids.push({ id, route });
      return ['enter', route, id, 1 + (a % 2), b * 1.5, c * 5000, kind === 0 ? a % 4 : 0, 40.25];
    }
    if (kind < 11) return ['look', known.route, known.id];
    if (kind === 11) return ['leave', known.route, known.id];
    if (kind === 12) return ['back', route, 1, b, ...marks];
    if (kind === 13) return ['more', route, 0, b * 0.7];
    if (kind === 14) return ['again', route, 1, b, ...marks];
    if (kind === 15) return ['report', route, a % 4, b / 10, c * 100, c % 5 === 0 ? -1 : (marks[3 * (a % 3) + 2] ?? 0)];
    if (kind === 16) return ['hint', route, a];
    if (kind === 17) return ['rejected', route, b];
    return a % 2 ? ['answered', route, 1 + (b % 3)] : ['gaveUp', route, 1 + (b % 3)];
  }
}

describeWithRedis('quota.lua', () => {
  const redis = useRedis();
  let sha: string;

  before(async () => {
    expect(timed).to.not.equal(source);
    sha = await redis.client.scriptLoad(timed);
  });

  it(`decides as the machine in TypeScript does, in ${SEQUENCES} random sequences`, async function () {
    this.timeout(SEQUENCES * 400);
    const started = 1_790_000_000_000_000;
    let granted = 0;
    let waited = 0;
    let sequence = 0;

    const compare = async (steps: readonly Step[]): Promise<void> => {
      const keys = ['state', 'line', 'entries', 'members', 'leases'].map((name) => `{q${sequence}}:${name}`);
      sequence++;
      const caller = new Caller();
      let twin: SharedQuota | undefined;
      let nowUs = started;
      const calls: { readonly args: string[]; readonly expected: unknown }[] = [];
      for (const each of steps) {
        nowUs += each.afterUs;
        const call = caller.call(each);
        twin ??= new SharedQuota(rules, nowUs, call.known);
        const expected = twin.call(nowUs, call);
        caller.hear(call, expected);
        for (const [kind] of expected[5]) {
          if (kind === 1) granted++;
          if (kind === 2) waited++;
        }
        calls.push({ args: [JSON.stringify(rules), JSON.stringify(call), String(nowUs)], expected });
      }
      const replies = await Promise.all(calls.map(({ args }) => redis.client.evalSha(sha, { keys, arguments: args })));
      replies.forEach((reply, i) =>
        expect(reply, JSON.stringify(steps.slice(0, i + 1))).to.deep.equal(calls[i]?.expected),
      );
    };

    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(step, { minLength: 1, maxLength: 12 }), { minLength: AT_ONCE, maxLength: AT_ONCE }),
        async (sequences) => void (await Promise.all(sequences.map(compare))),
      ),
      { numRuns: SEQUENCES / AT_ONCE, interruptAfterTimeLimit: SEQUENCES * 350, endOnFailure: true },
    );
    expect(sequence).to.be.at.least(SEQUENCES);
    expect(granted).to.be.above(SEQUENCES);
    expect(waited).to.be.above(SEQUENCES / 4);
  });

  it('forgets buckets and pauses that nobody has used for long, and none that is in use', async () => {
    const keys = ['state', 'line', 'entries', 'members', 'leases'].map((name) => `{tidy}:${name}`);
    let nowUs = 1_790_000_000_000_000;
    const use = async (tenant: string): Promise<void> => {
      const buckets: BucketRule[] = ['r:account', `r:${tenant}`].map((key) => ({
        key,
        perMinute: 60,
        sizeUs: 30_000_000,
        lagUs: 0,
      }));
      const call: QuotaCall = {
        member: 'p',
        process: 'p',
        known: 0,
        waits: 0,
        random: 0,
        buckets,
        routes: [{ cooldown: tenant, buckets: [0, 1] }],
        alone: [],
        ops: [['more', 0, 1, 0]],
      };
      await redis.client.evalSha(sha, {
        keys,
        arguments: [JSON.stringify(rules), JSON.stringify(call), String(nowUs)],
      });
    };
    for (let i = 0; i < 100; i++) await use(`early ${i}`);
    expect((await redis.client.hKeys(keys[0]!)).filter((key) => key.startsWith('r:early'))).to.have.length(100);

    nowUs += 20 * 60_000_000;
    for (let i = 0; i < 200; i++) await use(`late ${i}`);
    const kept = await redis.client.hKeys(keys[0]!);
    expect(kept.filter((key) => key.startsWith('r:late'))).to.have.length(200);
    expect(kept.filter((key) => key.startsWith('r:early'))).to.have.length.below(60);
    expect(kept).to.include('r:account');
  });
});
