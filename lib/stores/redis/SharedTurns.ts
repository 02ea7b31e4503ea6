import { LANE_REPLY } from './LanesCall.ts';
import type { LaneNews, LaneOp, LaneReply, LanesCall, LanesReply, LanesRules } from './LanesCall.ts';

interface Place {
  readonly process: string;
  readonly order: number;
  readonly lane: string;
}

interface Holder {
  readonly place: Place;
  readonly token: number;
}

/** A conversation with a turn that runs, or with some that wait. */
interface Lane {
  holder: Holder | undefined;
  /** By order. */
  readonly line: Place[];
}

interface Member {
  heardUs: number;
  epoch: number;
  readonly places: Map<number, Place>;
  readonly granted: Map<number, number>;
  readonly superseded: Set<number>;
}

const DONE: LaneReply = [LANE_REPLY.done];

/**
 * What `lanes.lua` decides, in TypeScript: the same calls get the same replies. It stands in for the server when that is
 * lost and order within the process is to go on, and tests the script. Pure: the time is passed in, in whole microseconds.
 *
 * A turn has a place from when it is asked for until its process leaves it, named by a number that rises with the time of
 * the server: so it means the same after everything was lost. Whoever holds the lane has a token too, which rises with
 * each turn that starts. One lease stands for all that a process has, and any of its calls renews it. Who is granted a
 * lane by the end of another's turn finds it as news in the reply to its next call.
 */
export class SharedTurns {
  readonly #rules: LanesRules;
  readonly #lanes = new Map<string, Lane>();
  readonly #members = new Map<string, Member>();
  readonly #known: number;
  #last = 0;
  #nowUs = 0;
  /** Until when no lane is given out; 0: nothing was lost; -1: that is over. */
  #opensUs: number;

  /** As the server makes it at the first call: open, unless the caller had known another. */
  constructor(rules: LanesRules, nowUs: number, known: number) {
    this.#rules = rules;
    this.#known = nowUs;
    this.#opensUs = known === 0 ? 0 : nowUs + rules.guardUs;
  }

  call(nowUs: number, call: LanesCall): LanesReply {
    const before = this.#members.get(call.process);
    if (before && before.epoch > call.epoch) return [this.#known, 0, 0, [], []];
    this.#nowUs = nowUs;
    // Whoever knew another one may still hold what this one would give out.
    if (call.known !== 0 && call.known !== this.#known && this.#opensUs === 0) {
      this.#opensUs = this.#known + this.#rules.guardUs;
    }
    this.#forget();
    const known = this.#members.get(call.process);
    const member = known ?? newMember();
    const former = member.epoch < call.epoch ? byOrder(member.places.values()) : [];
    member.heardUs = nowUs;
    member.epoch = call.epoch;
    this.#members.set(call.process, member);

    const named = new Set<number>();
    const replies = call.ops.map((op) => this.#run(call.process, member, op, named));
    for (const { order } of former) if (!named.has(order)) this.#end(member, order);
    this.#open();
    return [this.#known, known ? 0 : 1, member.places.size, newsOf(member), replies];
  }

  #run(process: string, member: Member, op: LaneOp, named: Set<number>): LaneReply {
    switch (op[0]) {
      case 'enter':
        return this.#enter(process, member, op, named);
      case 'again':
        return this.#again(process, member, op, named);
      case 'leave':
        this.#end(member, op[2]);
        return DONE;
      case 'look':
        return DONE;
    }
  }

  #enter(
    process: string,
    member: Member,
    [, name, maxWaiting, supersede]: Extract<LaneOp, readonly ['enter', ...unknown[]]>,
    named: Set<number>,
  ): LaneReply {
    const lane = this.#laneOf(name);
    if (supersede) this.#supersede(lane);
    const waiting = lane.line.length;
    const free = !lane.holder && waiting === 0 && this.#opensUs <= this.#nowUs;
    if (!supersede && waiting >= maxWaiting && !free) {
      this.#tidy(name, lane);
      return [LANE_REPLY.full, lane.holder ? Math.max(0, this.#nowUs - lane.holder.token) : 0, waiting];
    }
    const place = { process, order: this.#rising(), lane: name };
    member.places.set(place.order, place);
    named.add(place.order);
    if (free) {
      lane.holder = { place, token: place.order };
      return [LANE_REPLY.holds, place.order, place.order];
    }
    lane.line.push(place);
    return [LANE_REPLY.waits, place.order, waiting + 1];
  }

  #again(
    process: string,
    member: Member,
    [, name, order, token]: Extract<LaneOp, readonly ['again', ...unknown[]]>,
    named: Set<number>,
  ): LaneReply {
    this.#last = Math.max(this.#last, order, token);
    const lane = this.#laneOf(name);
    const { holder } = lane;
    const ours = holder?.place.order === order;
    if (holder && !ours && token > 0) return [LANE_REPLY.lost];
    named.add(order);
    if (holder && ours) return [LANE_REPLY.holds, order, holder.token];
    const place = { process, order, lane: name };
    member.places.set(order, place);
    if (token > 0) {
      lane.holder = { place, token };
      return [LANE_REPLY.holds, order, token];
    }
    if (member.superseded.has(order)) {
      this.#tidy(name, lane);
      return [LANE_REPLY.waits, order, 1];
    }
    const next = lane.line.findIndex((other) => other.order >= order);
    const at = next === -1 ? lane.line.length : next;
    if (lane.line[at]?.order !== order) lane.line.splice(at, 0, place);
    this.#startNext(lane);
    return [LANE_REPLY.waits, order, at + 1];
  }

  #supersede({ holder, line }: Lane): void {
    for (const { process, order } of [...(holder ? [holder.place] : []), ...line.splice(0)]) {
      this.#members.get(process)?.superseded.add(order);
    }
  }

  #end(member: Member, order: number): void {
    const place = member.places.get(order);
    if (!place) return;
    member.places.delete(order);
    member.granted.delete(order);
    member.superseded.delete(order);
    const lane = this.#laneOf(place.lane);
    if (lane.holder?.place.order === order) {
      lane.holder = undefined;
      this.#startNext(lane);
    } else {
      const at = lane.line.findIndex((other) => other.order === order);
      if (at !== -1) lane.line.splice(at, 1);
    }
    this.#tidy(place.lane, lane);
  }

  #startNext(lane: Lane): void {
    if (this.#opensUs > this.#nowUs || lane.holder) return;
    const place = lane.line.shift();
    if (!place) return;
    const token = this.#rising();
    lane.holder = { place, token };
    this.#members.get(place.process)?.granted.set(place.order, token);
  }

  /** A process that was not heard of for a lease has nothing any more, the one that calls included. */
  #forget(): void {
    const dead = [...this.#members].filter(([, { heardUs }]) => heardUs < this.#nowUs - this.#rules.leaseUs);
    dead.sort(([a, { heardUs: first }], [b, { heardUs: second }]) => first - second || (a < b ? -1 : 1));
    for (const [process, member] of dead) {
      for (const { order } of byOrder(member.places.values())) this.#end(member, order);
      this.#members.delete(process);
    }
  }

  #open(): void {
    if (this.#opensUs <= 0 || this.#nowUs < this.#opensUs) return;
    this.#opensUs = -1;
    for (const name of [...this.#lanes.keys()].sort()) this.#startNext(this.#laneOf(name));
  }

  #laneOf(name: string): Lane {
    let lane = this.#lanes.get(name);
    if (!lane) this.#lanes.set(name, (lane = { holder: undefined, line: [] }));
    return lane;
  }

  #tidy(name: string, { holder, line }: Lane): void {
    if (!holder && line.length === 0) this.#lanes.delete(name);
  }

  #rising(): number {
    this.#last = Math.max(this.#nowUs, this.#last + 1);
    return this.#last;
  }
}

function newMember(): Member {
  return { heardUs: 0, epoch: -1, places: new Map(), granted: new Map(), superseded: new Set() };
}

function byOrder(places: Iterable<Place>): Place[] {
  return [...places].sort((a, b) => a.order - b.order);
}

/** That its turn is over a place has to hear until it leaves. */
function newsOf({ granted, superseded }: Member): LaneNews[] {
  const news: LaneNews[] = [...superseded].map((order) => [order, 0]);
  for (const each of granted) news.push(each);
  granted.clear();
  return news.sort(([a, first], [b, second]) => a - b || first - second);
}
