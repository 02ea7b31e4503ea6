import { randomUUID } from 'node:crypto';
import type { Runtime } from '../../core/runtime.ts';
import { HeardOf } from './HeardOf.ts';
import type { BucketRule, QuotaCall, QuotaReply } from './QuotaCall.ts';
import { quotaCallOf } from './quotaCallOf.ts';
import type { RouteAsk, UsedAlone } from './quotaCallOf.ts';
import type { QuotaLayers, RoutePlan } from './QuotaLayers.ts';
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
  readonly plan: QuotaPlan;
  readonly layers: QuotaLayers;
  /** Somebody else decides from now on: what was asked is forgotten there, and `first` is to be asked before all else. */
  changed(first: readonly RouteAsk[]): void;
  wanting(): boolean;
}

/** A call and what it is about. */
export interface Decision {
  readonly asks: readonly RouteAsk[];
  readonly call: QuotaCall;
  readonly reply: QuotaReply | Promise<QuotaReply | undefined>;
}

/** Who decides for a quota now: the server; while that is lost this process, with its share; or nobody. */
export class QuotaDecider implements LinkUser {
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
  readonly #pauses = new HeardOf<RoutePlan>();
  readonly #drains = new HeardOf<BucketRule>();
  /** What was last heard from the server. */
  #known = 0;
  #processes = 0;
  #knownAtMs = -Infinity;
  #shares = 1;
  #alone: UsedAlone | undefined;

  constructor(link: StoreLink, script: Script, options: DeciderOptions, user: DeciderUser) {
    this.#link = link;
    this.#runtime = link.runtime;
    this.#options = options;
    this.#user = user;
    this.#server = serverWay(link, script, options.name, () => user.plan.shared);
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

  decide(asks: readonly RouteAsk[], waits: boolean): Decision {
    // What was forgotten because nobody used it is not lost.
    const remembered = this.#nowMs() - this.#knownAtMs < this.#user.plan.shared.keepMs;
    const call: QuotaCall = {
      member: this.#options.member,
      process: this.#owner,
      known: remembered ? this.#known : 0,
      waits: waits ? 1 : 0,
      random: this.#runtime.random(),
      ...quotaCallOf(asks, this.#alone, (rule) => this.#user.layers.current(rule)),
    };
    this.#alone = undefined;
    return { asks, call, reply: (this.#way ?? this.#server).decide(call) };
  }

  heard({ asks, call }: Decision, reply: QuotaReply): void {
    const nowMs = this.#nowMs();
    const [known, processes, , pausedMs, drainUs] = reply;
    const plans = [...new Set(asks.map(({ plan }) => plan))];
    plans.forEach((plan, i) => this.#pauses.set(plan.cooldown, plan, nowMs + (pausedMs[i] ?? 0), nowMs));
    call.buckets.forEach((rule, i) => this.#drains.set(rule.key, rule, nowMs + (drainUs[i] ?? 0) / 1000, nowMs));
    if (this.#way !== this.#server) return;
    this.#known = known;
    this.#processes = processes;
    this.#knownAtMs = nowMs;
  }

  /** Somebody wants something now. */
  wanted(): void {
    if (!this.#link.up) this.#link.wanted();
  }

  /** How long a route is paused, as far as is known. */
  pausedMs({ cooldown }: RoutePlan): number {
    return this.#pauses.leftMs(cooldown, this.#nowMs());
  }

  /** Until a bucket is full, as far as is known. */
  drainUs(key: string): number {
    return this.#drains.leftMs(key, this.#nowMs()) * 1000;
  }

  wanting(): boolean {
    return this.#user.wanting();
  }

  lost(reason: string): void {
    const hints = this.#hints();
    this.#goAlone(reason);
    this.#user.changed(hints);
    if (this.wanting()) this.#link.wanted();
  }

  returned(): void {
    const used = this.#way === undefined ? [] : this.#drains.all(this.#nowMs());
    const hints = this.#hints();
    this.#alone = {
      othersMs: this.#options.othersMs,
      used: used.map(({ of, leftMs }) => ({ of, leftMs: leftMs / this.#shares })),
    };
    this.#become(this.#server);
    this.#user.changed(hints);
  }

  /** Pauses that whoever decides from now on has to know of. */
  #hints(): RouteAsk[] {
    return this.#pauses.all(this.#nowMs()).map(({ of, leftMs }) => ({ plan: of, op: ['hint', leftMs] }));
  }

  #goAlone(reason: string): void {
    this.#lostFor = reason;
    this.#alone = undefined;
    const processes = this.#sharers();
    this.#shares = processes ?? 1;
    const rules = () => this.#user.plan.shared;
    const share = processes && shareWay(rules, this.#user.layers.buckets(), processes, this.#runtime);
    this.#become(share || undefined);
  }

  #become(way: QuotaWay | undefined): void {
    this.#way = way;
    // What the server may still do for the old one must not be taken for the new one's.
    this.#owner = randomUUID();
    this.#pauses.clear();
    this.#drains.clear();
  }

  /** Among how many the quota is divided while the store is lost. Undefined: nobody knows, or none may take a share. */
  #sharers(): number | undefined {
    const { processes } = this.#options;
    if (this.#link.loss === 'refuse') return undefined;
    const recent = this.#processes > 0 && this.#nowMs() - this.#knownAtMs < this.#user.plan.shared.memberUs / 1000;
    return recent ? Math.max(processes ?? 1, this.#processes) : processes;
  }

  #nowMs(): number {
    return this.#runtime.clock.now();
  }
}
