import { expect } from 'chai';
import fc from 'fast-check';
import type { LaneOp, LanesCall, LanesReply, LanesRules } from '../../../lib/stores/redis/LanesCall.ts';
import { LANES_KEYS } from '../../../lib/stores/redis/LanesCall.ts';
import { SharedTurns } from '../../../lib/stores/redis/SharedTurns.ts';
import { describeWithRedis } from '../../helpers/redisServer.ts';
import { sameDecisions } from './sameDecisions.ts';

const rules: LanesRules = { leaseUs: 900_000, guardUs: 450_000, keepMs: 60_000 };

interface Step {
  readonly afterUs: number;
  readonly process: number;
  readonly loses: boolean;
  readonly forgets: boolean;
  readonly ops: readonly { readonly kind: number; readonly a: number; readonly b: number }[];
}

const step: fc.Arbitrary<Step> = fc.record({
  afterUs: fc.oneof(fc.nat(3), fc.nat(3000), fc.nat(150_000), fc.nat(1_100_000)),
  process: fc.nat(2),
  loses: fc.nat(9).map((n) => n === 0),
  forgets: fc.nat(19).map((n) => n === 0),
  ops: fc.array(fc.record({ kind: fc.nat(12), a: fc.nat(1000), b: fc.nat(1000) }), { minLength: 1, maxLength: 5 }),
});

interface Had {
  readonly process: number;
  readonly lane: string;
  readonly order: number;
  token: number;
}

/** Makes calls as processes would, and some late ones, and of places that are none of theirs. */
class Caller {
  readonly #had: Had[] = [];
  readonly #epochs = [0, 0, 0];
  #known = 0;
  #ops: readonly LaneOp[] = [];
  #process = 0;

  call({ process, loses, forgets, ops }: Step): LanesCall {
    this.#process = process;
    if (loses) this.#epochs[process]!++;
    const again: LaneOp[] = loses ? this.#had.filter((had) => had.process === process).map(againOf) : [];
    this.#ops = [...again.slice(loses && ops.length === 1 ? 1 : 0), ...ops.map((op) => this.#op(op))];
    const late = ops.length === 5 && !loses ? 1 : 0;
    const known = forgets ? 1 + this.#known : this.#known;
    return { process: `p${process}`, epoch: this.#epochs[process]! - late, known, ops: this.#ops };
  }

  hear([known, , , news, replies]: LanesReply): void {
    this.#known = known;
    replies.forEach(([kind, order = 0, token = 0], i) => {
      const op = this.#ops[i];
      if (op?.[0] !== 'enter' || kind === 0 || kind === 3) return;
      this.#had.push({ process: this.#process, lane: op[1], order, token: kind === 1 ? token : 0 });
    });
    for (const [order, token] of news) {
      const had = this.#had.find((each) => each.order === order);
      if (had) had.token = token;
    }
  }

  #op({ kind, a, b }: Step['ops'][number]): LaneOp {
    const lane = `lane${b % 3}`;
    const had = this.#had.at(-1 - (a % Math.max(1, this.#had.length)));
    if (kind < 6 || had === undefined) return ['enter', lane, a % 5, kind === 0 ? 1 : 0];
    if (kind < 10) {
      const [left] = this.#had.splice(this.#had.indexOf(had), 1);
      return ['leave', left!.lane, left!.order];
    }
    return kind < 12 && had.process === this.#process ? againOf(had) : ['look'];
  }
}

function againOf({ lane, order, token }: Had): LaneOp {
  return ['again', lane, order, token];
}

describeWithRedis('lanes.lua', () => {
  sameDecisions(step, {
    script: 'lanes.lua',
    keys: LANES_KEYS,
    begin: () => {
      const caller = new Caller();
      let twin: SharedTurns | undefined;
      return {
        next(each, nowUs) {
          const call = caller.call(each);
          twin ??= new SharedTurns(rules, nowUs, call.known);
          const expected = twin.call(nowUs, call);
          caller.hear(expected);
          return { args: [JSON.stringify(rules), JSON.stringify(call)], expected };
        },
      };
    },
    met: (replies) => {
      const count = { held: 0, waits: 0, full: 0, lost: 0, passedOn: 0, superseded: 0, fresh: 0, late: 0 };
      const kinds = ['late', 'held', 'waits', 'full', 'lost'] as const;
      for (const [, fresh, , news, answers] of replies) {
        if (fresh) count.fresh++;
        if (answers.length === 0) count.late++;
        for (const [kind = 0] of answers) if (kind > 0) count[kinds[kind]!]++;
        for (const [, token] of news) count[token === 0 ? 'superseded' : 'passedOn']++;
      }
      for (const [kind, times] of Object.entries(count)) expect(times, kind).to.be.above(0);
    },
  });
});
