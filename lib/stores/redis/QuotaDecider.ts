import { randomUUID } from 'node:crypto';
import type { Runtime } from '../../core/runtime.ts';
import type { QuotaOp, QuotaReply } from './QuotaCall.ts';
import type { QuotaPlan } from './quotaRules.ts';
import { serverWay, shareWay } from './QuotaWay.ts';
import type { QuotaWay } from './QuotaWay.ts';
import type { Script } from './Script.ts';
import type { LinkUser, StoreLink } from './StoreLink.ts';

export interface DeciderOptions {
  /** Of the keys in the store, with the hash tag. */
  readonly name: string;
  /** Of this process among those that share the store. */
  readonly member: string;
  /** Processes there are at most, if that is known. */
  readonly processes: number | undefined;
  /** How long others may go on by themselves after the store is back. */
  readonly othersMs: number;
}

export interface DeciderUser {
  /** Somebody else decides from now on: what was asked is forgotten there, and `first` is to be asked before all else. */
  changed(first: readonly QuotaOp[]): void;
  wanting(): boolean;
}

/** Who decides for a quota now: the server; while that is lost this process, with its share; or nobody. */
export class QuotaDecider implements LinkUser {
  readonly #plan: QuotaPlan;
  readonly #link: StoreLink;
  readonly #runtime: Runtime;
  readonly #options: DeciderOptions;
  readonly #user: DeciderUser;
  readonly #server: QuotaWay;
  #way: QuotaWay | undefined;
  #lostFor = '';
  #owner = '';
  #named = 0;
  /** What was last heard from whoever decides. */
  #last: QuotaReply | undefined;
  #lastAtMs = 0;
  /** What was last heard from the server. */
  #known = 0;
  #processes = 0;
  #knownAtMs = -Infinity;
  #shares = 1;

  constructor(plan: QuotaPlan, link: StoreLink, script: Script, options: DeciderOptions, user: DeciderUser) {
    this.#plan = plan;
    this.#link = link;
    this.#runtime = link.runtime;
    this.#options = options;
    this.#user = user;
    this.#server = serverWay(link, script, options.name, plan);
    this.#become(this.#server);
    link.use(this);
    if (!link.up) this.#goAlone(link.lostFor);
  }

  /** Undefined: nobody decides, for this reason everything is to be refused. */
  get refusing(): string | undefined {
    return this.#way === undefined ? this.#lostFor : undefined;
  }

  /** Changes with whoever decides. */
  get way(): QuotaWay | undefined {
    return this.#way;
  }

  /** A new name for a place in line. */
  nextId(): string {
    return `${this.#owner}/${this.#named++}`;
  }

  decide(ops: readonly QuotaOp[], waits: boolean): QuotaReply | Promise<QuotaReply | undefined> {
    // What was forgotten because nobody used it is not lost.
    const remembered = this.#nowMs() - this.#knownAtMs < this.#plan.shared.keepMs;
    return (this.#way ?? this.#server).decide({
      member: this.#options.member,
      process: this.#owner,
      known: remembered ? this.#known : 0,
      waits: waits ? 1 : 0,
      random: this.#runtime.random(),
      ops,
    });
  }

  heard(reply: QuotaReply): void {
    this.#last = reply;
    this.#lastAtMs = this.#nowMs();
    if (this.#way !== this.#server) return;
    this.#known = reply[0];
    this.#processes = reply[1];
    this.#knownAtMs = this.#lastAtMs;
  }

  /** Somebody wants something now. */
  wanted(): void {
    if (!this.#link.up) this.#link.wanted();
  }

  get cooldownMs(): number {
    return Math.max(0, (this.#last?.[3] ?? 0) - (this.#nowMs() - this.#lastAtMs));
  }

  /** Until each bucket is full, as far as is known. */
  get drainUs(): readonly number[] {
    const sinceUs = (this.#nowMs() - this.#lastAtMs) * 1000;
    return this.#last?.[4].map((us) => Math.max(0, us - sinceUs)) ?? [];
  }

  wanting(): boolean {
    return this.#user.wanting();
  }

  lost(reason: string): void {
    const pausedMs = this.cooldownMs;
    this.#goAlone(reason);
    this.#user.changed(pausedMs > 0 ? [['hint', pausedMs]] : []);
    if (this.wanting()) this.#link.wanted();
  }

  returned(): void {
    const used = this.#way === undefined ? [] : this.drainUs.map((us) => Math.ceil(us / this.#shares));
    const pausedMs = this.cooldownMs;
    this.#become(this.#server);
    const back: QuotaOp = ['returned', this.#options.othersMs * 1000, ...used];
    this.#user.changed(pausedMs > 0 ? [back, ['hint', pausedMs]] : [back]);
  }

  #goAlone(reason: string): void {
    this.#lostFor = reason;
    const processes = this.#sharers();
    this.#shares = processes ?? 1;
    this.#become(processes === undefined ? undefined : shareWay(this.#plan, processes, this.#runtime));
  }

  #become(way: QuotaWay | undefined): void {
    this.#way = way;
    // What the server may still do for the old one must not be taken for the new one's.
    this.#owner = randomUUID();
    this.#last = undefined;
  }

  /** Among how many the quota is divided while the store is lost. Undefined: nobody knows, or none may take a share. */
  #sharers(): number | undefined {
    const { processes } = this.#options;
    if (this.#link.loss === 'refuse') return undefined;
    const recent = this.#processes > 0 && this.#nowMs() - this.#knownAtMs < this.#plan.shared.memberUs / 1000;
    return recent ? Math.max(processes ?? 1, this.#processes) : processes;
  }

  #nowMs(): number {
    return this.#runtime.clock.now();
  }
}
