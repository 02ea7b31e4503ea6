import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import fc from 'fast-check';
import { createClient } from 'redis';
import type { RedisClientType } from 'redis';
import { startRedisServer } from '../../helpers/redisServer.ts';
import type { RedisServer } from '../../helpers/redisServer.ts';

const AT_ONCE = 100;
const SEQUENCES = Number(process.env['SLUICE_PARITY_SEQUENCES'] ?? 300);
const STARTED_US = 1_790_000_000_000_000;
const US_PER_S = 1_000_000;

export interface Twin<Step, Reply> {
  next(step: Step, nowUs: number): { readonly args: readonly string[]; readonly expected: Reply };
}

export interface TwinRules<Step extends { readonly afterUs: number }, Reply extends readonly unknown[]> {
  readonly script: string;
  readonly keys: readonly string[];
  begin(): Twin<Step, Reply>;
  /** Sees that enough of each kind has come up. */
  met(replies: readonly Reply[]): void;
}

/** Sends random sequences of calls through a script and its machine in TypeScript, and compares each reply. */
export function sameDecisions<Step extends { readonly afterUs: number }, Reply extends readonly unknown[]>(
  step: fc.Arbitrary<Step>,
  { script, keys, begin, met }: TwinRules<Step, Reply>,
): void {
  const source = readFileSync(new URL(`../../../lib/stores/redis/${script}`, import.meta.url), 'utf8');
  // Its clock is its last argument.
  const nowUs = 'tonumber(ARGV[#ARGV])';
  const timed = source.replace("redis.call('TIME')", `{ math.floor(${nowUs} / ${US_PER_S}), ${nowUs} % ${US_PER_S} }`);
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
    this.timeout(Math.max(60_000, SEQUENCES * 50));
    let sequence = 0;
    const seen: Reply[] = [];

    const compare = async (steps: readonly Step[]): Promise<void> => {
      const own = keys.map((name) => `{s${sequence}}:${name}`);
      sequence++;
      const twin = begin();
      let atUs = STARTED_US;
      const calls = steps.map((each) => {
        atUs += each.afterUs;
        const { args, expected } = twin.next(each, atUs);
        // A machine may hand out what it goes on changing.
        return { args: [...args, String(atUs)], expected: structuredClone(expected) };
      });
      const replies = await Promise.all(calls.map(({ args }) => client.evalSha(sha, { keys: own, arguments: args })));
      replies.forEach((reply, i) =>
        expect(reply, JSON.stringify(steps.slice(0, i + 1))).to.deep.equal(calls[i]?.expected),
      );
      seen.push(...(replies as unknown as Reply[]));
    };

    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(step, { minLength: 1, maxLength: 16 }), { minLength: AT_ONCE, maxLength: AT_ONCE }),
        async (sequences) => void (await Promise.all(sequences.map(compare))),
      ),
      { numRuns: Math.ceil(SEQUENCES / AT_ONCE), endOnFailure: true },
    );
    expect(sequence).to.be.at.least(SEQUENCES);
    met(seen);
  });
}
