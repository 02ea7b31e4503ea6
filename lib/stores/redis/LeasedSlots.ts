import { randomUUID } from 'node:crypto';
import { wholeNumber } from '../../core/checks.ts';
import type { SharedSlots } from '../../limits/LimitStore.ts';
import { Alarm } from './Alarm.ts';
import { IdlePlaces } from './IdlePlaces.ts';
import { OneCall } from './OneCall.ts';
import { Script } from './Script.ts';
import { Sharers } from './Sharers.ts';
import type { SlotsCall, SlotsReply } from './SlotsCall.ts';
import type { LinkUser, StoreLink } from './StoreLink.ts';

export interface LeasedSlotsOptions {
  /** Of the keys in the store, with the hash tag. */
  readonly name: string;
  /** Of this process among those that share the store. */
  readonly member: string;
  /** Processes there are at most, if that is known. */
  readonly processes: number | undefined;
  readonly leaseMs: number;
  /** Places that were not used for so long are given back. */
  readonly sliceMs: number;
  /** How long others may go on by themselves after the store is back. */
  readonly othersMs: number;
  readonly memberMs: number;
  readonly keepMs: number;
}

/** Those who wait look after 10 ms, and then ever later, up to this. */
const FIRST_LOOK_MS = 10;
const LAST_LOOK_MS = 250;
/** Where more are this process's due. */
const LAST_OWED_LOOK_MS = 100;
/** Besides what it wants a process takes up to an eighth of that, while nobody else wants it. */
const LOT = 1 / 8;
const LARGEST_LOT = 16;

const SCRIPT = Script.read('slots.lua');

/** Places that this process has on loan: what it asks for, gives back and renews. One timer, and none while it has and wants nothing. */
export class LeasedSlots implements SharedSlots, LinkUser {
  onChange: (() => void) | undefined;
  readonly #link: StoreLink;
  readonly #options: LeasedSlotsOptions;
  readonly #keys: readonly string[];
  readonly #rules: string;
  readonly #sharers: Sharers;
  readonly #idle: IdlePlaces;
  readonly #calls: OneCall;
  readonly #alarm: Alarm;
  #limit: number;
  #have = 0;
  #taken = 0;
  #wanted = 0;
  /** How many it may have while others wait for some. */
  #most = Infinity;
  /** How many it uses and wants, as the store knows or is being told. */
  #told = 0;
  /** Above 0 while some are wanted and none were free. */
  #lookMs = 0;
  #lookAtMs = Infinity;
  #owner: string = randomUUID();
  #former = '';
  #known = 0;
  #heldUntilMs = -Infinity;
  #returned: 0 | 1 = 0;
  /** While the store is lost: since when, and what it had then. */
  #alone: { readonly sinceMs: number; readonly had: number } | undefined;
  #closed = false;
  /** Who wants to know once what is asked for now has been answered, and once what is under way has. */
  #asking: (() => void)[] = [];
  #asked: (() => void)[] = [];

  constructor(limit: number, link: StoreLink, options: LeasedSlotsOptions) {
    this.#limit = wholeNumber('limit', limit);
    this.#link = link;
    this.#options = options;
    // One hash tag: all of them are on one node of a cluster.
    this.#keys = ['state', 'holders', 'leases', 'members'].map((part) => `${options.name}:${part}`);
    const { leaseMs, othersMs, memberMs, keepMs } = options;
    this.#rules = JSON.stringify({
      leaseUs: leaseMs * 1000,
      othersUs: othersMs * 1000,
      memberUs: memberMs * 1000,
      keepMs,
    });
    this.#sharers = new Sharers(link, options.processes, memberMs);
    this.#idle = new IdlePlaces(options.sliceMs);
    this.#calls = new OneCall(
      (current) => this.#call(current),
      () => this.#watch(),
    );
    this.#alarm = new Alarm(link.runtime, () => this.#serve());
    link.use(this);
    if (!link.up) this.lost();
  }

  get have(): number {
    return this.#have;
  }

  /** The limit; while the store is lost this process's share of it. */
  get allowed(): number {
    return this.#alone ? this.#share : this.#limit;
  }

  get refusing(): string | undefined {
    return this.#alone && this.#share === 0 ? this.#link.lostFor : undefined;
  }

  use(taken: number, wanted: number): void {
    this.#taken = taken;
    this.#wanted = this.#closed ? 0 : Math.min(wanted, this.#limit);
    if (this.#alone) {
      this.#have = this.#haveAlone();
      if (this.wanting()) this.#link.wanted();
    } else {
      const demand = taken + this.#wanted;
      // Whoever did not renew in time may find that others have them.
      if (this.#nowMs() >= this.#heldUntilMs) this.#have = Math.min(this.#have, taken);
      const noMore = demand <= this.#have && this.#told > this.#have;
      if (this.#giveBack() || this.#more || noMore) this.#calls.ask();
    }
    this.#watch();
  }

  /** Calls `hear` once what is wanted by now has been asked for and answered, or the store is lost. */
  answered(hear: () => void): void {
    if (this.#alone) {
      hear();
      return;
    }
    this.#asking.push(hear);
    this.#calls.ask();
  }

  reload(limit: number): void {
    this.#limit = wholeNumber('limit', limit);
    if (this.#alone) this.#become(this.#haveAlone());
    else if (this.#giveBack() || this.#told > 0) this.#calls.ask();
  }

  close(): void {
    this.#closed = true;
    this.use(this.#taken, 0);
  }

  wanting(): boolean {
    return this.#taken > 0 || this.#wanted > 0;
  }

  lost(): void {
    this.#calls.reset();
    this.#former = this.#owner;
    // What the server may still do for the old one must not be taken for the new one's.
    this.#owner = randomUUID();
    this.#alone = { sinceMs: this.#nowMs(), had: this.#have };
    this.#most = Infinity;
    this.#lookMs = this.#told = 0;
    if (this.wanting()) this.#link.wanted();
    this.#have = this.#haveAlone();
    this.#changed();
    this.#hear([...this.#asked.splice(0), ...this.#asking.splice(0)]);
  }

  returned(): void {
    this.#alone = undefined;
    this.#returned = 1;
    if (this.wanting()) this.#calls.ask();
    this.#have = this.#taken;
    this.#changed();
  }

  async #call(current: () => boolean): Promise<void> {
    const sentAtMs = this.#nowMs();
    const call = this.#whole();
    const demand = (this.#told = call.taken + call.wanted);
    this.#asked = this.#asking.splice(0);
    const reply = await this.#link.run(SCRIPT, this.#keys, [this.#rules, JSON.stringify(call)]);
    if (!current() || reply === undefined) return;
    const [known, processes, given, most, owed] = (reply as unknown[]).map(Number) as unknown as SlotsReply;
    this.#sharers.heard(processes);
    this.#known = known;
    this.#former = '';
    this.#returned = 0;
    this.#heldUntilMs = sentAtMs + this.#options.leaseMs;
    this.#most = most < 0 ? Infinity : most;
    this.#look(demand > call.keep + given, given > 0, owed === 1);
    const had = this.#have;
    this.#have = Math.max(0, had + given);
    if (this.#giveBack()) this.#calls.ask();
    if (this.#have !== had) this.#changed();
    this.#hear(this.#asked.splice(0));
    if (this.#more) this.#calls.ask();
  }

  #whole(): SlotsCall {
    const demand = this.#taken + this.#wanted;
    const asksAnew = this.#lookMs === 0 && demand > this.#have;
    return {
      member: this.#options.member,
      process: this.#owner,
      former: this.#former,
      known: this.#known,
      returned: this.#returned,
      limit: this.#limit,
      keep: this.#have,
      taken: this.#taken,
      wanted: this.#wanted,
      spare: asksAnew ? Math.min(LARGEST_LOT, Math.ceil(demand * LOT)) : 0,
    };
  }

  /** More are wanted than it has or is told to wait for. */
  get #more(): boolean {
    return this.#lookMs === 0 && this.#taken + this.#wanted > Math.max(this.#have, this.#told);
  }

  #look(short: boolean, gotSome: boolean, owed: boolean): void {
    const longestMs = owed ? LAST_OWED_LOOK_MS : LAST_LOOK_MS;
    const nextMs = gotSome ? FIRST_LOOK_MS : Math.max(FIRST_LOOK_MS, 2 * this.#lookMs);
    this.#lookMs = short ? Math.min(longestMs, nextMs) : 0;
    // Not all processes at the same time.
    this.#lookAtMs = this.#nowMs() + this.#lookMs * (1 + this.#link.runtime.random() / 4);
  }

  /** What others wait for, and what is not used after the end. Whether there was any. */
  #giveBack(): boolean {
    const keep = Math.max(this.#taken, this.#closed ? 0 : Math.min(this.#most, this.#limit));
    if (this.#have <= keep) return false;
    this.#have = keep;
    return true;
  }

  #serve(): void {
    const nowMs = this.#nowMs();
    if (this.#alone) this.#become(this.#haveAlone());
    else if (this.#dueAtMs() <= nowMs) {
      this.#have -= this.#idle.due(nowMs);
      this.#calls.ask();
    }
    this.#watch();
  }

  #watch(): void {
    this.#idle.mark(this.#nowMs(), this.#alone ? 0 : this.#have - this.#taken);
    // What is under way watches when it is back.
    this.#alarm.set(this.#calls.busy ? Infinity : this.#dueAtMs());
  }

  #dueAtMs(): number {
    const { leaseMs } = this.#options;
    if (this.#alone) {
      const grownAtMs = this.#alone.sinceMs + leaseMs;
      return this.#wanted > 0 && this.#nowMs() < grownAtMs ? grownAtMs : Infinity;
    }
    const lent = this.#have > 0 || this.#told > 0;
    const renewAtMs = lent ? this.#heldUntilMs - (leaseMs * 2) / 3 : Infinity;
    return Math.min(renewAtMs, this.#lookMs > 0 ? this.#lookAtMs : Infinity, this.#idle.dueAtMs);
  }

  /** Of the limit, rounded down: more would be more than the limit for all together. */
  get #share(): number {
    const { count } = this.#sharers;
    return count === undefined ? 0 : Math.floor(this.#limit / count);
  }

  /** What others had at the loss may be in use by them for as long as they keep it. */
  #haveAlone(): number {
    const { sinceMs, had } = this.#alone ?? { sinceMs: 0, had: 0 };
    const share = this.#closed ? 0 : this.#share;
    return this.#nowMs() < sinceMs + this.#options.leaseMs ? Math.min(had, share) : share;
  }

  #become(have: number): void {
    if (have === this.#have) return;
    this.#have = have;
    this.#changed();
  }

  #changed(): void {
    this.onChange?.();
    this.#watch();
  }

  #hear(hearers: readonly (() => void)[]): void {
    for (const hear of hearers) hear();
  }

  #nowMs(): number {
    return this.#link.runtime.clock.now();
  }
}
