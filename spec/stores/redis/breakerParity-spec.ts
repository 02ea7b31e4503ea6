import { expect } from 'chai';
import fc from 'fast-check';
import { REASONS } from '../../../lib/stores/redis/BreakerCall.ts';
import type { BreakerCall, BreakerOp, BreakerRules, WrittenReply } from '../../../lib/stores/redis/BreakerCall.ts';
import { SharedCircuit } from '../../../lib/stores/redis/SharedCircuit.ts';
import { describeWithRedis } from '../../helpers/redisServer.ts';
import { sameDecisions } from './sameDecisions.ts';

const rules: BreakerRules = {
  consecutiveFailures: 4,
  errorRatio: 0.3,
  windowUs: 3_000_000,
  minCalls: 6,
  openUs: 200_000,
  openFactor: 1.7,
  steadyProbes: 1,
  openCapUs: 1_500_000,
  halfOpenShare: 0.1,
  halfOpenMaxProbes: 2,
  halfOpenMaxUs: 250_000,
  rampUs: 300_000,
  leaseUs: 700_000,
  keepMs: 60_000,
};

interface Step {
  readonly afterUs: number;
  readonly process: number;
  readonly odd: number;
  readonly share: number;
  readonly ops: readonly { readonly kind: number; readonly a: number; readonly b: number }[];
}

const step: fc.Arbitrary<Step> = fc.record({
  afterUs: fc.oneof(fc.nat(3000), fc.nat(250_000), fc.nat(1_200_000)),
  process: fc.nat(2),
  odd: fc.nat(25),
  share: fc.constantFrom(0.1, 0.3, 0.45),
  ops: fc.array(fc.record({ kind: fc.nat(11), a: fc.nat(1000), b: fc.nat(1000) }), { minLength: 1, maxLength: 5 }),
});

/** Makes calls as processes would: they end the probes that they were given, under the epoch that they last heard. */
class Callers {
  readonly #ids: string[] = [];
  readonly #lives = [0, 0, 0];
  #asked: string[] = [];
  #made = 0;
  #epoch = 0;

  call({ process, odd, ops }: Step): BreakerCall {
    const former = `p${process}/${this.#lives[process]}`;
    if (odd === 0) this.#lives[process] = (this.#lives[process] ?? 0) + 1;
    const name = `p${process}/${this.#lives[process]}`;
    this.#asked = [];
    return {
      process: name,
      former: odd === 0 ? former : '',
      last: odd < 4 ? [odd, 50_000 * odd, odd, 1] : [0, 0, 0, 0],
      returned: odd === 1 || odd === 2 ? 1 : 0,
      ops: ops.map((op) => this.#op(name, op)),
    };
  }

  hear([[epoch], may]: WrittenReply): void {
    this.#epoch = epoch ?? 0;
    may.forEach((said, i) => said === 1 && this.#ids.push(this.#asked[i] ?? ''));
  }

  #op(process: string, { kind, a, b }: Step['ops'][number]): BreakerOp {
    const id = this.#ids[this.#ids.length - 1 - (a % Math.min(4, this.#ids.length || 1))] ?? 'none';
    if (kind < 4) {
      const made = `${process}/${this.#made++}`;
      this.#asked.push(made);
      return ['ask', made];
    }
    if (kind === 4) return ['content', id];
    const epoch = a % 7 === 0 ? this.#epoch - 1 : this.#epoch;
    if (kind < 8) return ['ended', epoch, 0, 1 + (b % 3), kind < 7 ? '' : id];
    return ['ended', epoch, kind === 11 ? 2 : 1, 1 + (b % 4), b % 2 ? '' : id];
  }
}

describeWithRedis('breaker.lua', () => {
  sameDecisions<Step, WrittenReply>(step, {
    script: 'breaker.lua',
    keys: ['state', 'probes'],
    begin: () => {
      const callers = new Callers();
      let twin: SharedCircuit | undefined;
      return {
        next(each, nowUs) {
          const call = callers.call(each);
          twin ??= new SharedCircuit(rules, nowUs, call.last);
          const expected = twin.call(nowUs, call);
          callers.hear(expected);
          return { args: [JSON.stringify(rules), JSON.stringify(call)], expected };
        },
      };
    },
    met: (replies) => {
      const reasons = replies.flatMap(([, , changes]) => changes.map(([, reason]) => reason));
      REASONS.forEach((name, reason) => {
        const times = reasons.filter((each) => each === reason).length;
        expect(times, name).to.be.above(replies.length / 400);
      });
    },
  });
});
