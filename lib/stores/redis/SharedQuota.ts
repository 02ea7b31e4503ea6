import { REPLY } from './QuotaCall.ts';
import type { OpReply, QuotaCall, QuotaOp, QuotaReply, RouteRule, SharedQuotaRules } from './QuotaCall.ts';
import type { SharedBucket } from './SharedBucket.ts';
import { SharedBuckets } from './SharedBuckets.ts';
import { SharedQuotaLine, SharedPause } from './SharedQuotaLine.ts';
import { QuotaTurns, roomUs } from './QuotaTurns.ts';

/** What a call names, found. */
interface Route {
  readonly pause: SharedPause;
  readonly buckets: readonly SharedBucket[];
  readonly keys: readonly string[];
}

const DONE: OpReply = [REPLY.done];
/** A new plan is made at most this often, for each one in line. */
const REPLAN_US = 200;

/**
 * What `quota.lua` decides, in TypeScript: the same calls get the same replies. It stands in for the server when that is
 * lost, and tests the script. Pure: the time is passed in, in whole microseconds.
 *
 * Everyone in line has a turn: see {@link QuotaTurns}. It sleeps until then and asks once more. When someone leaves the line,
 * a process dies, a bucket is corrected or a pause begins, the turns are planned anew, in the same order.
 */
export class SharedQuota {
  readonly #buckets: SharedBuckets;
  readonly #turns = new QuotaTurns();
  readonly #line = new SharedQuotaLine();
  readonly #pauses = new Map<string, SharedPause>();
  readonly #members = new Map<string, number>();
  readonly #leases = new Map<string, number>();
  readonly #known: number;
  #rules: SharedQuotaRules;
  #random = 0;
  #replan = false;
  #replannedUs = 0;
  /** How far the plan that is being made has come, -1 if none is. */
  #cursor = -1;
  #order = 0;
  #heardUs = -Infinity;

  /** As the server makes it at the first call: full, unless the caller had known another. */
  constructor(rules: SharedQuotaRules, nowUs: number, known: number) {
    this.#rules = rules;
    this.#known = nowUs;
    this.#buckets = new SharedBuckets(nowUs, known === 0);
  }

  /** `rules`: of the process that makes the call. */
  call(nowUs: number, call: QuotaCall, rules: SharedQuotaRules = this.#rules): QuotaReply {
    this.#rules = rules;
    this.#random = call.random;
    this.#recognise(call.known);
    this.#hear(nowUs, call);
    this.#forget(nowUs);
    const buckets = this.#bucketsOf(nowUs, call);
    const routes = call.routes.map((route) => this.#routeOf(route, call, buckets));
    this.#plan(nowUs);
    const replies = call.ops.map((op) => this.#run(nowUs, call.process, routes[op[1]] as Route, op));
    this.#heardUs = nowUs;
    return [
      this.#known,
      this.#members.size,
      this.#line.size,
      routes.map(({ pause }) => pause.cooldown.certainMs(nowUs / 1000)),
      buckets.map((bucket) => Math.max(0, bucket.realUs - nowUs)),
      replies,
    ];
  }

  /** Whoever knew another one was there when it was lost: then this one should have begun empty. */
  #recognise(known: number): void {
    if (known === 0 || known === this.#known || !this.#buckets.full) return;
    this.#buckets.owe();
    this.#replan = true;
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
      if (this.#line.forget(process)) this.#replan = true;
    }
  }

  #bucketsOf(nowUs: number, { buckets, alone: [othersUs, ...usedUs] }: QuotaCall): SharedBucket[] {
    const nobody = othersUs !== undefined && nowUs - this.#heardUs >= othersUs;
    if (nobody) this.#buckets.emptyUntil(nowUs + othersUs);
    if (othersUs !== undefined) this.#replan = true;
    return buckets.map((rule, i) => {
      const { bucket, changed } = this.#buckets.at(rule, nowUs);
      if (changed) this.#replan = true;
      if (othersUs !== undefined && !nobody) bucket.realUs = Math.max(bucket.realUs, nowUs) + (usedUs[i] ?? 0);
      return bucket;
    });
  }

  #routeOf({ cooldown, buckets }: RouteRule, call: QuotaCall, found: readonly SharedBucket[]): Route {
    let pause = this.#pauses.get(cooldown);
    if (pause === undefined) {
      pause = new SharedPause(this.#rules.cooldown, () => this.#random);
      this.#pauses.set(cooldown, pause);
    }
    pause.cooldown.reload(this.#rules.cooldown);
    return {
      pause,
      buckets: buckets.map((at) => found[at] as SharedBucket),
      keys: buckets.map((at) => call.buckets[at]?.key ?? ''),
    };
  }

  #run(nowUs: number, process: string, route: Route, op: QuotaOp): OpReply {
    const { cooldown } = route.pause;
    const nowMs = nowUs / 1000;
    switch (op[0]) {
      case 'enter':
        return this.#enter(nowUs, process, route, op);
      case 'look':
        return this.#look(nowUs, route, op[2]);
      case 'leave':
        if (this.#line.leave(op[2])) this.#replan = true;
        return DONE;
      case 'back':
        return this.#changed(route, (bucket, i) => giveBack(bucket, i, nowUs, op));
      case 'more':
        return this.#changed(route, (bucket) => bucket.charge(nowUs, bucket.costUs(op[2], op[3])));
      case 'again':
        return this.#changed(route, (bucket, i) => {
          giveBack(bucket, i, nowUs, op);
          bucket.charge(nowUs, bucket.costUs(op[2], op[3]));
        });
      case 'report': {
        const [, , at, remaining, agoUs, chargedUs] = op;
        return this.#changed(route, (bucket, i) => i === at && bucket.report(nowUs, remaining, agoUs, chargedUs));
      }
      case 'hint':
        this.#replan = true;
        return [REPLY.paused, Math.ceil(cooldown.hint(nowMs, op[2]))];
      case 'rejected': {
        const pausedMs = Math.ceil(cooldown.rejected(nowMs, nowMs - op[2]));
        this.#replan = true;
        return [REPLY.paused, pausedMs];
      }
      case 'answered':
        cooldown.answered(nowMs, op[2]);
        return DONE;
      case 'gaveUp':
        cooldown.gaveUp(nowMs, op[2]);
        return DONE;
    }
  }

  #enter(nowUs: number, process: string, route: Route, op: QuotaOp & { 0: 'enter' }): OpReply {
    const [, , id, requests, tokens, limitUs, spare, spareTokens] = op;
    const { pause, buckets, keys } = route;
    if (this.#line.size === 0) {
      this.#turns.begin();
      this.#cursor = -1;
    }
    const turn = this.#turns.find(this.#turns.last, buckets, requests, tokens, nowUs + pause.waitUs(nowUs));
    if (turn.atUs <= nowUs && (pause.waiting === 0 || pause.cooldown.idle)) {
      this.#turns.take(nowUs, buckets, requests, tokens, turn);
      const granted = grant(nowUs, nowUs, route, requests, tokens);
      const alone = pause.waiting === 0 && pause.cooldown.idle;
      return alone ? this.#spare(nowUs, buckets, granted, spare, spareTokens) : granted;
    }
    const waitUs = turn.atUs - nowUs;
    if (this.#line.size >= this.#rules.maxWaiting) return [REPLY.full, waitUs];
    if (waitUs > limitUs) return [REPLY.late, waitUs];
    this.#line.join(id, { order: ++this.#order, process, pause, requests, tokens, keys, turnUs: turn.atUs });
    this.#turns.take(nowUs, buckets, requests, tokens, turn);
    return [REPLY.wait, waitUs, this.#line.size];
  }

  #look(nowUs: number, route: Route, id: string): OpReply {
    const entry = this.#line.get(id);
    if (entry === undefined) return [REPLY.gone];
    // It may be given other buckets than those it came for.
    if (entry.keys.join(' ') !== route.keys.join(' ')) {
      entry.keys = route.keys;
      this.#replan = true;
    }
    const { requests, tokens, turnUs } = entry;
    const { pause, buckets } = route;
    const { aheadUs, graceUs, cooldown } = this.#rules;
    const pauseUs = pause.waitUs(nowUs);
    if (pauseUs > 0) return [REPLY.wait, Math.max(pauseUs, turnUs - nowUs), 0];
    if (!pause.cooldown.idle && !this.#line.isFirst(entry)) {
      return [REPLY.wait, Math.max(Math.ceil(cooldown.staggerMs * 1000), 1000), 0];
    }
    if (turnUs > nowUs + aheadUs) return [REPLY.wait, turnUs - nowUs, 0];
    const room = roomUs(buckets, requests, tokens);
    if (room > Math.max(nowUs, turnUs)) {
      this.#replan = true;
      return [REPLY.wait, room - nowUs, 0];
    }
    const late = nowUs - turnUs > graceUs;
    this.#line.leave(id);
    if (late) this.#replan = true;
    return grant(nowUs, late ? nowUs : turnUs, route, requests, tokens);
  }

  /** Takes more ahead of need, but leaves half of each bucket to the others. */
  #spare(
    nowUs: number,
    buckets: readonly SharedBucket[],
    granted: number[],
    most: number,
    spareTokens: number,
  ): number[] {
    const { sliceUs } = this.#rules;
    let spare = most;
    for (const bucket of buckets) {
      const cost = bucket.costUs(1, spareTokens);
      const filledUs = Math.max(this.#turns.plannedUs(this.#turns.last, bucket), nowUs + bucket.lagUs + sliceUs);
      if (cost > 0) spare = Math.min(spare, Math.floor((nowUs + bucket.sizeUs / 2 - filledUs) / cost));
    }
    if (spare < 1) return granted;
    granted[3] = spare;
    for (const bucket of buckets) {
      bucket.charge(nowUs + sliceUs, bucket.costUs(1, spareTokens) * spare);
      granted.push(...bucket.marks);
    }
    return granted;
  }

  /**
   * Turns are planned anew, a part of the line at a time, so that no call takes long; and for a long line not with every
   * change: its turns are checked when they come.
   */
  #plan(nowUs: number): void {
    const { size } = this.#line;
    if (this.#cursor < 0) {
      if (!this.#replan || nowUs - this.#replannedUs < size * REPLAN_US) return;
      this.#replan = false;
      if (size === 0) return;
      this.#cursor = 0;
      this.#replannedUs = nowUs;
    }
    const entries = this.#line.after(this.#cursor, this.#rules.planMost);
    for (const entry of entries) {
      const { pause, requests, tokens, keys } = entry;
      const buckets = keys.map((key) => this.#buckets.get(key)).filter((bucket) => bucket !== undefined);
      const turn = this.#turns.find(this.#turns.next, buckets, requests, tokens, nowUs + pause.waitUs(nowUs));
      this.#turns.take(nowUs, buckets, requests, tokens, turn);
      entry.turnUs = turn.atUs;
    }
    this.#cursor = entries.at(-1)?.order ?? this.#cursor;
    if (entries.length === this.#rules.planMost) return;
    this.#turns.finish();
    this.#cursor = -1;
  }

  #changed({ buckets }: Route, work: (bucket: SharedBucket, i: number) => void): OpReply {
    buckets.forEach(work);
    this.#replan = true;
    return DONE;
  }
}

function grant(nowUs: number, atUs: number, { pause, buckets }: Route, requests: number, tokens: number): number[] {
  const marks: number[] = [];
  for (const bucket of buckets) {
    bucket.charge(atUs, bucket.costUs(requests, tokens));
    marks.push(...bucket.marks);
  }
  const trial = pause.cooldown.passed(nowUs / 1000) ?? 0;
  return [REPLY.granted, Math.max(0, atUs - nowUs), trial, 0, ...marks];
}

function giveBack(bucket: SharedBucket, i: number, nowUs: number, op: QuotaOp & { 0: 'back' | 'again' }): void {
  bucket.giveBack(nowUs, bucket.costUs(op[2], op[3]), (op.slice(4) as number[]).slice(3 * i, 3 * i + 3));
}
