import fc from 'fast-check';
import { expect } from 'chai';
import { SharedPlaces } from '../../../lib/stores/redis/SharedPlaces.ts';
import type { SlotsCall, SlotsRules } from '../../../lib/stores/redis/SlotsCall.ts';
import { describeWithRedis } from '../../helpers/redisServer.ts';
import { sameDecisions } from './sameDecisions.ts';

const rules: SlotsRules = { leaseUs: 900_000, othersUs: 200_000, memberUs: 5_000_000, keepMs: 60_000 };

interface Step {
  readonly afterUs: number;
  readonly process: number;
  readonly limit: number;
  readonly taken: number;
  readonly idle: number;
  readonly wanted: number;
  readonly spare: number;
  readonly odd: number;
}

const step: fc.Arbitrary<Step> = fc.record({
  afterUs: fc.oneof(fc.nat(3000), fc.nat(150_000), fc.nat(1_000_000)),
  process: fc.nat(3),
  limit: fc.integer({ min: 1, max: 9 }),
  taken: fc.nat(5),
  idle: fc.nat(3),
  wanted: fc.oneof(fc.nat(4), fc.nat(20)),
  spare: fc.nat(4),
  odd: fc.nat(30),
});

/** Makes calls as processes would: they keep no more than they have, and some lose their way now and then. */
class Callers {
  readonly #have = [0, 0, 0, 0];
  readonly #lives = [0, 0, 0, 0];
  #known = 0;
  #last = 0;

  call({ process, limit, taken, idle, wanted, spare, odd }: Step): SlotsCall {
    const have = this.#have[process] ?? 0;
    const former = `p${process}/${this.#lives[process]}`;
    // They use more than they have only where that had been forgotten.
    const inUse = odd === 0 ? taken : Math.min(taken, have);
    const returned = odd === 1 ? 1 : 0;
    if (returned) this.#lives[process] = (this.#lives[process] ?? 0) + 1;
    this.#last = process;
    this.#have[process] = returned ? inUse : Math.min(Math.max(have, inUse), inUse + idle);
    return {
      member: `m${process}`,
      process: `p${process}/${this.#lives[process]}`,
      former: returned ? former : '',
      known: odd === 2 ? 0 : odd === 3 ? 5 : this.#known,
      returned,
      limit: odd < 10 ? limit : 6,
      keep: this.#have[process] ?? 0,
      taken: inUse,
      wanted,
      spare,
    };
  }

  hear([known, , given]: readonly number[]): void {
    this.#known = known ?? 0;
    this.#have[this.#last] = Math.max(0, (this.#have[this.#last] ?? 0) + (given ?? 0));
  }
}

describeWithRedis('slots.lua', () => {
  sameDecisions<Step, readonly [number, number, number, number, number]>(step, {
    script: 'slots.lua',
    keys: ['state', 'holders', 'leases', 'members'],
    begin: () => {
      const callers = new Callers();
      let twin: SharedPlaces | undefined;
      return {
        next(each, nowUs) {
          const call = callers.call(each);
          twin ??= new SharedPlaces(rules, nowUs, call.known);
          const expected = twin.call(nowUs, call);
          callers.hear(expected);
          return { args: [JSON.stringify(rules), JSON.stringify(call)], expected };
        },
      };
    },
    met: (replies) => {
      expect(replies.filter((reply) => reply[2] > 0).length, 'given').to.be.above(replies.length / 20);
      expect(replies.filter((reply) => reply[2] < 0).length, 'forgotten').to.be.above(replies.length / 100);
      expect(replies.filter((reply) => reply[3] >= 0).length, 'pressed').to.be.above(replies.length / 20);
      expect(replies.filter((reply) => reply[4] === 1).length, 'owed').to.be.above(replies.length / 20);
    },
  });
});
