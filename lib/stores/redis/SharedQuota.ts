import { Cooldown } from '../../limits/Cooldown.ts';
import { REPLY } from './QuotaCall.ts';
import type { OpReply, QuotaCall, QuotaOp, QuotaReply, SharedQuotaRules } from './QuotaCall.ts';
import { costUs, SharedBucket } from './SharedBucket.ts';

interface InLine {
  readonly process: string;
  readonly costs: readonly number[];
  turnUs: number;
}

const DONE: OpReply = [REPLY.done];
/** While one is out on trial nobody knows when the others may follow. */
const TRIAL_LOOK_US = 250_000;
/** A new plan is made at most this often, for each one in line. */
const REPLAN_US = 100;

/**
 * What `quota.lua` decides, in TypeScript: the same calls get the same replies. It stands in for the server when that is
 * lost, and tests the script. Pure: the time is passed in, in whole microseconds.
 *
 * Everyone in line has a turn: the time at which the buckets will have room for it, after all who came earlier. It sleeps
 * until then and asks once more. When someone leaves the line, a process dies, a bucket is corrected or a pause passes, the
 * turns are planned anew, in the same order.
 */
export class SharedQuota {
  readonly #rules: SharedQuotaRules;
  readonly #cooldown: Cooldown;
  readonly #buckets: readonly SharedBucket[];
  readonly #line = new Map<string, InLine>();
  readonly #members = new Map<string, number>();
  readonly #leases = new Map<string, number>();
  #known: number;
  /** Whether it began with full buckets. */
  #full: boolean;
  #random = 0;
  #lastTurnUs = 0;
  #replan = false;
  #replannedUs = 0;
  #heardUs = -Infinity;

  /** As the server makes it at the first call: full, unless the caller had known another. */
  constructor(rules: SharedQuotaRules, nowUs: number, known: number) {
    this.#rules = rules;
    this.#known = nowUs;
    this.#full = known === 0;
    this.#buckets = rules.buckets.map((rule) => new SharedBucket(nowUs + (this.#full ? 0 : rule.sizeUs)));
    this.#cooldown = new Cooldown(rules.cooldown, () => this.#random);
  }

  call(nowUs: number, call: QuotaCall): QuotaReply {
    this.#random = call.random;
    this.#recognise(call.known);
    this.#hear(nowUs, call);
    this.#forget(nowUs);
    const replies = call.ops.map((op) => this.#run(nowUs, call.process, op));
    this.#plan(nowUs);
    this.#heardUs = nowUs;
    return [
      this.#known,
      this.#members.size,
      this.#line.size,
      this.#cooldown.certainMs(nowUs / 1000),
      this.#buckets.map((bucket) => Math.max(0, bucket.realUs - nowUs)),
      replies,
    ];
  }

  /** Whoever knew another one was there when it was lost: then this one should have begun empty. */
  #recognise(known: number): void {
    if (known === 0 || known === this.#known || !this.#full) return;
    this.#full = false;
    this.#replan = true;
    this.#each((bucket, i) => (bucket.realUs += this.#rules.buckets[i]?.sizeUs ?? 0));
  }

  #hear(nowUs: number, { member, process, waits }: QuotaCall): void {
    this.#members.set(member, nowUs);
    if (waits) this.#leases.set(process, nowUs);
    else this.#leases.delete(process);
  }

  #forget(nowUs: number): void {
    const { leaseUs, memberUs } = this.#rules;
    for (const [process, heardUs] of this.#members) if (heardUs < nowUs - memberUs) this.#members.delete(process);
    for (const [process, heardUs] of this.#leases) {
      if (heardUs >= nowUs - leaseUs) continue;
      this.#leases.delete(process);
      for (const [id, entry] of this.#line) {
        if (entry.process !== process) continue;
        this.#line.delete(id);
        this.#replan = true;
      }
    }
  }

  #run(nowUs: number, process: string, op: QuotaOp): OpReply {
    switch (op[0]) {
      case 'enter':
        return this.#enter(nowUs, process, op);
      case 'look':
        return this.#look(nowUs, op[1]);
      case 'leave':
        if (this.#line.delete(op[1])) this.#replan = true;
        return DONE;
      case 'back': {
        const [, requests, tokens, ...marks] = op;
        return this.#changed((bucket, i) => this.#giveBack(bucket, i, nowUs, requests, tokens, marks));
      }
      case 'more': {
        const [, requests, tokens] = op;
        return this.#changed((bucket, i) => this.#charge(bucket, i, nowUs, requests, tokens));
      }
      case 'again': {
        const [, requests, tokens, ...marks] = op;
        return this.#changed((bucket, i) => {
          this.#giveBack(bucket, i, nowUs, requests, tokens, marks);
          this.#charge(bucket, i, nowUs, requests, tokens);
        });
      }
      case 'report': {
        const [, at, remaining, agoUs, chargedUs] = op;
        return this.#changed((bucket, i) => {
          const rule = this.#rules.buckets[i];
          if (i === at && rule) bucket.report(rule, nowUs, remaining, agoUs, chargedUs);
        });
      }
      case 'hint':
        return [REPLY.paused, Math.ceil(this.#cooldown.hint(nowUs / 1000, op[1]))];
      case 'rejected':
        return [REPLY.paused, Math.ceil(this.#cooldown.rejected(nowUs / 1000, nowUs / 1000 - op[1]))];
      case 'answered':
        this.#cooldown.answered(nowUs / 1000, op[1]);
        return DONE;
      case 'gaveUp':
        this.#cooldown.gaveUp(nowUs / 1000, op[1]);
        return DONE;
      case 'returned': {
        const [, othersUs, ...usedUs] = op;
        if (nowUs - this.#heardUs < othersUs) {
          return this.#changed((bucket, i) => (bucket.realUs = Math.max(bucket.realUs, nowUs) + (usedUs[i] ?? 0)));
        }
        this.#full = false;
        return this.#changed((bucket, i) => {
          bucket.realUs = Math.max(bucket.realUs, nowUs + this.#rule(i).sizeUs + othersUs);
        });
      }
    }
  }

  #enter(nowUs: number, process: string, op: QuotaOp & { 0: 'enter' }): OpReply {
    const [, id, requests, tokens, limitUs, spare, spareTokens] = op;
    const costs = this.#rules.buckets.map((rule) => costUs(rule, requests, tokens));
    if (this.#line.size === 0) this.#planFrom(nowUs);
    const pauseUs = this.#pauseUs(nowUs);
    const turnUs = Math.max(this.#lastTurnUs, nowUs, this.#roomUs(costs, 'plannedUs'));
    const inOrder = this.#line.size === 0 || this.#cooldown.idle;
    if (inOrder && pauseUs === 0 && turnUs <= nowUs && this.#roomUs(costs, 'realUs') <= nowUs) {
      const granted = this.#grant(nowUs, nowUs, costs);
      this.#eachCost(costs, (bucket, i, cost) => bucket.plan(this.#rule(i), nowUs, cost));
      const alone = this.#line.size === 0 && this.#cooldown.idle;
      return alone ? this.#spare(nowUs, granted, spare, spareTokens) : granted;
    }
    const waitUs = Math.max(turnUs - nowUs, pauseUs);
    if (this.#line.size >= this.#rules.maxWaiting) return [REPLY.full, waitUs];
    if (waitUs > limitUs) return [REPLY.late, waitUs];
    this.#line.set(id, { process, costs, turnUs });
    this.#take(turnUs, costs);
    return [REPLY.wait, waitUs, this.#line.size];
  }

  #look(nowUs: number, id: string): OpReply {
    const entry = this.#line.get(id);
    if (entry === undefined) return [REPLY.gone];
    const { costs, turnUs } = entry;
    const { aheadUs, graceUs, cooldown } = this.#rules;
    const pauseUs = this.#pauseUs(nowUs);
    if (pauseUs > 0) return [REPLY.wait, Math.max(pauseUs, turnUs - nowUs), 0];
    const behind = !this.#cooldown.idle && this.#line.keys().next().value !== id;
    if (behind) return [REPLY.wait, Math.max(Math.ceil(cooldown.staggerMs * 1000), 1000), 0];
    if (turnUs > nowUs + aheadUs) return [REPLY.wait, turnUs - nowUs, 0];
    const roomUs = this.#roomUs(costs, 'realUs');
    if (roomUs > Math.max(nowUs, turnUs)) {
      this.#replan = true;
      return [REPLY.wait, roomUs - nowUs, 0];
    }
    const late = nowUs - turnUs > graceUs;
    this.#line.delete(id);
    if (late) this.#replan = true;
    return this.#grant(nowUs, late ? nowUs : turnUs, costs);
  }

  #grant(nowUs: number, atUs: number, costs: readonly number[]): number[] {
    const marks: number[] = [];
    this.#eachCost(costs, (bucket, i, cost) => {
      bucket.charge(this.#rule(i), atUs, cost);
      marks.push(bucket.realUs, bucket.backUs, bucket.chargedUs);
    });
    const trial = this.#cooldown.passed(nowUs / 1000) ?? 0;
    return [REPLY.granted, Math.max(0, atUs - nowUs), trial, 0, ...marks];
  }

  /** Takes more ahead of need, but leaves half of each bucket to the others. */
  #spare(nowUs: number, granted: number[], most: number, spareTokens: number): number[] {
    let spare = most;
    const costs = this.#rules.buckets.map((rule) => costUs(rule, 1, spareTokens));
    this.#eachCost(costs, (bucket, i, cost) => {
      const rule = this.#rule(i);
      const filledUs = Math.max(bucket.realUs, nowUs + rule.lagUs + this.#rules.sliceUs);
      if (cost > 0) spare = Math.min(spare, Math.floor((nowUs + rule.sizeUs / 2 - filledUs) / cost));
    });
    if (spare < 1) return granted;
    granted[3] = spare;
    this.#eachCost(costs, (bucket, i, cost) => {
      bucket.charge(this.#rule(i), nowUs + this.#rules.sliceUs, cost * spare);
      granted.push(bucket.realUs, bucket.backUs, bucket.chargedUs);
    });
    return granted;
  }

  /** Turns are planned anew, but for a long line not with every change: its own turns are checked when they come. */
  #plan(nowUs: number): void {
    const { size } = this.#line;
    if (!this.#replan || nowUs - this.#replannedUs < size * REPLAN_US) return;
    this.#replan = false;
    if (size === 0) return;
    this.#replannedUs = nowUs;
    this.#planFrom(nowUs);
    for (const entry of this.#line.values()) {
      entry.turnUs = Math.max(this.#lastTurnUs, this.#roomUs(entry.costs, 'plannedUs'));
      this.#take(entry.turnUs, entry.costs);
    }
  }

  #planFrom(nowUs: number): void {
    this.#lastTurnUs = nowUs;
    this.#each((bucket) => (bucket.plannedUs = bucket.realUs));
  }

  #take(turnUs: number, costs: readonly number[]): void {
    this.#lastTurnUs = turnUs;
    this.#eachCost(costs, (bucket, i, cost) => bucket.plan(this.#rule(i), turnUs, cost));
  }

  #pauseUs(nowUs: number): number {
    const pauseUs = this.#cooldown.waitMs(nowUs / 1000) * 1000;
    return this.#cooldown.certainMs(nowUs / 1000) === 0 ? Math.min(pauseUs, TRIAL_LOOK_US) : pauseUs;
  }

  /** When there is room for it in every bucket. */
  #roomUs(costs: readonly number[], full: 'realUs' | 'plannedUs'): number {
    let roomUs = 0;
    this.#eachCost(costs, (bucket, i, cost) => {
      if (cost > 0) roomUs = Math.max(roomUs, bucket[full] - SharedBucket.slackUs(this.#rule(i), cost));
    });
    return roomUs;
  }

  #charge(bucket: SharedBucket, i: number, nowUs: number, requests: number, tokens: number): void {
    bucket.charge(this.#rule(i), nowUs, costUs(this.#rule(i), requests, tokens));
  }

  #giveBack(
    bucket: SharedBucket,
    i: number,
    nowUs: number,
    requests: number,
    tokens: number,
    marks: readonly number[],
  ) {
    const [drainedAtUs = 0, backUs = 0] = marks.slice(3 * i);
    bucket.giveBack(this.#rule(i), nowUs, costUs(this.#rule(i), requests, tokens), drainedAtUs, backUs);
  }

  #changed(work: (bucket: SharedBucket, i: number) => void): OpReply {
    this.#each(work);
    this.#replan = true;
    return DONE;
  }

  #each(work: (bucket: SharedBucket, i: number) => void): void {
    this.#buckets.forEach(work);
  }

  #eachCost(costs: readonly number[], work: (bucket: SharedBucket, i: number, cost: number) => void): void {
    this.#buckets.forEach((bucket, i) => work(bucket, i, costs[i] ?? 0));
  }

  #rule(i: number): SharedQuotaRules['buckets'][number] {
    return this.#rules.buckets[i] as SharedQuotaRules['buckets'][number];
  }
}
