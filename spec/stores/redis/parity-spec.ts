import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import fc from 'fast-check';
import { createClient } from 'redis';
import type { RedisClientType } from 'redis';
import type { QuotaCall, QuotaOp, SharedQuotaRules } from '../../../lib/stores/redis/QuotaCall.ts';
import { SharedQuota } from '../../../lib/stores/redis/SharedQuota.ts';
import { describeWithRedis, startRedisServer } from '../../helpers/redisServer.ts';
import type { RedisServer } from '../../helpers/redisServer.ts';

const SEQUENCES = 300;
const AT_ONCE = 100;

/** The script with its clock replaced by a third argument. */
const source = readFileSync(new URL('../../../lib/stores/redis/quota.lua', import.meta.url), 'utf8');
const timed = source.replace(
  "redis.call('TIME')",
  '{ math.floor(tonumber(ARGV[3]) / 1000000), tonumber(ARGV[3]) % 1000000 }',
);

const rules: SharedQuotaRules = {
  buckets: [
    { key: 'account.requests', unit: 'requests', perMinute: 600, sizeUs: 300_000, lagUs: 50_000 },
    { key: 'account.tokens', unit: 'tokens', perMinute: 70_000, sizeUs: 3_000_000, lagUs: 50_000 },
    { key: 'model.requests', unit: 'requests', perMinute: 470, sizeUs: 1_000_000, lagUs: 0 },
  ],
  maxWaiting: 5,
  cooldown: { unhintedMs: 300, jitter: 0.1, trialMs: 400, staggerMs: 20, rampMs: 200 },
  graceUs: 20_000,
  aheadUs: 30_000,
  sliceUs: 100_000,
  leaseUs: 900_000,
  memberUs: 5_000_000,
  keepMs: 60_000,
};

interface Step {
  readonly afterUs: number;
  readonly process: number;
  readonly random: number;
  readonly forgetful: boolean;
  readonly ops: readonly { readonly kind: number; readonly a: number; readonly b: number; readonly c: number }[];
}

const step: fc.Arbitrary<Step> = fc.record({
  afterUs: fc.oneof(fc.nat(3000), fc.nat(150_000), fc.nat(3_000_000)),
  process: fc.nat(2),
  random: fc.double({ min: 0, max: 0.999, noNaN: true }),
  forgetful: fc.boolean(),
  ops: fc.array(fc.record({ kind: fc.nat(19), a: fc.nat(1000), b: fc.nat(1000), c: fc.nat(1000) }), {
    minLength: 1,
    maxLength: 4,
  }),
});

/** Makes calls as processes would: they look at what they put in line, and give back what they were given. */
class Caller {
  readonly #ids: string[] = [];
  #marks: number[] = [];
  #known = 0;
  #entered = 0;

  call({ process, random, forgetful, ops }: Step): QuotaCall {
    const name = `p${process}`;
    return {
      member: name,
      process: name,
      known: forgetful ? 0 : this.#known,
      waits: this.#ids.some((id) => id.startsWith(name)) ? 1 : 0,
      random,
      ops: ops.map((op) => this.#op(name, op)),
    };
  }

  hear(reply: readonly unknown[]): void {
    this.#known = reply[0] as number;
    for (const each of reply[5] as number[][]) if (each[0] === 1) this.#marks = each.slice(4, 13);
  }

  #op(process: string, { kind, a, b, c }: Step['ops'][number]): QuotaOp {
    const id = this.#ids[a % Math.max(1, this.#ids.length)] ?? 'none/0';
    const marks = this.#marks.length > 0 ? this.#marks : [0, 0, 0, 0, 0, 0, 0, 0, 0];
    if (kind < 7) {
      const made = `${process}/${this.#entered++}`;
      this.#ids.push(made);
      return ['enter', made, 1 + (a % 2), b * 1.5, c * 5000, kind === 0 ? a % 4 : 0, 40.25];
    }
    if (kind < 11) return ['look', id];
    if (kind === 11) return ['leave', id];
    if (kind === 12) return ['back', 1, b, ...marks];
    if (kind === 13) return ['more', 0, b * 0.7];
    if (kind === 14) return ['again', 1, b, ...marks];
    if (kind === 15) return ['report', a % 3, b / 10, c * 100, c % 5 === 0 ? -1 : (marks[3 * (a % 3) + 2] ?? 0)];
    if (kind === 16) return ['hint', a];
    if (kind === 17) return ['rejected', b];
    if (kind === 18) return a % 2 ? ['answered', 1 + (b % 3)] : ['gaveUp', 1 + (b % 3)];
    return ['returned', c * 100, a * 10, b * 10, c];
  }
}

describeWithRedis('quota.lua', () => {
  let server: RedisServer;
  let client: RedisClientType;
  let sha: string;

  before(async () => {
    expect(timed).to.not.equal(source);
    server = await startRedisServer();
    client = createClient({ socket: { port: server.port, host: '127.0.0.1' } });
    await client.connect();
    sha = await client.scriptLoad(timed);
  });

  after(async () => {
    client.destroy();
    await server.close();
  });

  it(`decides as the machine in TypeScript does, in ${SEQUENCES} random sequences`, async function () {
    this.timeout(120_000);
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
        caller.hear(expected);
        for (const [kind] of expected[5]) {
          if (kind === 1) granted++;
          if (kind === 2) waited++;
        }
        calls.push({ args: [JSON.stringify(rules), JSON.stringify(call), String(nowUs)], expected });
      }
      const replies = await Promise.all(calls.map(({ args }) => client.evalSha(sha, { keys, arguments: args })));
      replies.forEach((reply, i) =>
        expect(reply, JSON.stringify(steps.slice(0, i + 1))).to.deep.equal(calls[i]?.expected),
      );
    };

    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(step, { minLength: 1, maxLength: 12 }), { minLength: AT_ONCE, maxLength: AT_ONCE }),
        async (sequences) => void (await Promise.all(sequences.map(compare))),
      ),
      { numRuns: SEQUENCES / AT_ONCE, interruptAfterTimeLimit: 100_000, endOnFailure: true },
    );
    expect(sequence).to.be.at.least(SEQUENCES);
    expect(granted).to.be.above(SEQUENCES);
    expect(waited).to.be.above(SEQUENCES / 4);
  });
});
