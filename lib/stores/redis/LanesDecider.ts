import { LANE_REPLY } from './LanesCall.ts';
import type { LaneOp, LaneReply, LanesReply, LanesRules } from './LanesCall.ts';
import { ownLanes, serverLanes } from './LanesWay.ts';
import type { LanesWay } from './LanesWay.ts';
import { OneCall } from './OneCall.ts';
import type { LinkUser, StoreLink } from './StoreLink.ts';

export interface LanesDeciderOptions {
  /** Of the keys in the store, with the hash tag. */
  readonly name: string;
  /** Of this process among those that share the store. */
  readonly member: string;
  readonly leaseMs: number;
  readonly keepMs: number;
  /** While the store is lost and nothing is refused: wait for it, or keep the order within this process. */
  readonly onLoss: 'wait' | 'local';
}

export interface LanesDeciderUser {
  /** Places that it knows to be in the store. */
  readonly placed: number;
  /** Whether it has anything there, or would. */
  readonly wanting: boolean;
  /** Asks for everything it has anew. */
  nameAll(): void;
  /** Nobody decides any more: it waits, or refuses. */
  lost(reason: string, refuse: boolean): void;
  /** What it holds is its own no longer. */
  leaseEnded(): void;
  /** The turn of this place has come; token 0: it is over. */
  told(order: number, token: number): void;
  /** Nothing is under way or was asked for. */
  rested(): void;
}

interface Asked {
  readonly op: LaneOp;
  readonly hear: (reply: LaneReply) => void;
  readonly wanted: () => boolean;
}

/** The part of a lease that a process counts on: clocks do not go alike. */
const SURE = 0.9;

/**
 * Who decides for lanes now: the server; while that is lost this process, or nobody. Knows until when what the process holds
 * is its own.
 */
export class LanesDecider implements LinkUser {
  readonly #link: StoreLink;
  readonly #options: LanesDeciderOptions;
  readonly #user: LanesDeciderUser;
  readonly #rules: LanesRules;
  readonly #server: LanesWay;
  readonly #calls: OneCall;
  #way: LanesWay | undefined;
  #asked: Asked[] = [];
  #epoch = 0;
  /** The next call names all places. */
  #names = false;
  /** This process decides by itself, or did until the call that is under way. */
  #alone = false;
  #known = 0;
  #knownAtMs = -Infinity;
  #calledAtMs = -Infinity;
  #sureUntilMs = -Infinity;

  constructor(link: StoreLink, options: LanesDeciderOptions, user: LanesDeciderUser) {
    this.#link = link;
    this.#options = options;
    this.#user = user;
    const leaseUs = Math.ceil(options.leaseMs * 1000);
    this.#rules = { leaseUs, guardUs: Math.ceil(leaseUs / 2), keepMs: options.keepMs };
    this.#server = serverLanes(link, options.name, this.#rules);
    this.#way = this.#server;
    this.#calls = new OneCall(
      (current) => this.#call(current),
      () => user.rested(),
    );
    link.use(this);
    if (!link.up) this.#goAlone();
  }

  /** Why nobody decides; undefined: somebody does. */
  get lostFor(): string | undefined {
    return this.#way === undefined ? this.#link.lostFor : undefined;
  }

  /** Why every turn is to be refused; undefined: it is not. */
  get refusing(): string | undefined {
    return this.#link.up || this.#link.loss !== 'refuse' ? undefined : this.#link.lostFor;
  }

  /** Until when what is held is surely this process's own, by its own clock. */
  get sureUntilMs(): number {
    return this.#sureUntilMs;
  }

  /** When the server was last asked; `Infinity`: there is no sense in asking it, or an answer is awaited. */
  get calledAtMs(): number {
    return this.#way === this.#server && !this.#calls.busy ? this.#calledAtMs : Infinity;
  }

  get isSure(): boolean {
    return this.#nowMs() < this.#sureUntilMs;
  }

  /** Somebody wants something now. */
  wanted(): void {
    if (!this.#link.up) this.#link.wanted();
  }

  /** It goes with the next call, if it is still wanted by then. */
  ask(op: LaneOp, hear: Asked['hear'], wanted: Asked['wanted'] = () => true): void {
    if (this.#way === undefined) return;
    this.#asked.push({ op, hear, wanted });
    this.#calls.ask();
  }

  look(): void {
    this.ask(['look'], () => {});
  }

  /** Whoever decides may know none of the places, or others. */
  nameAll(): void {
    this.#calls.reset();
    this.#epoch++;
    this.#names = true;
    this.#asked = [];
    this.#user.nameAll();
    this.#calls.ask();
  }

  wanting(): boolean {
    return this.#user.wanting;
  }

  lost(reason: string): void {
    this.#goAlone();
    if (this.#alone) this.nameAll();
    else this.#user.lost(reason, this.#link.loss === 'refuse');
    if (this.wanting()) this.#link.wanted();
  }

  returned(): void {
    this.#way = this.#server;
    this.nameAll();
  }

  #goAlone(): void {
    this.#calls.reset();
    this.#asked = [];
    this.#alone = this.#link.loss !== 'refuse' && this.#options.onLoss === 'local';
    this.#way = this.#alone ? ownLanes(this.#rules, this.#link.runtime) : undefined;
  }

  async #call(current: () => boolean): Promise<void> {
    if (!this.isSure) this.#user.leaseEnded();
    const asked = this.#asked.filter(({ wanted }) => wanted());
    this.#asked = [];
    const named = this.#names;
    if ((asked.length === 0 && !named) || !this.#way) return;
    this.#names = false;
    const sentAtMs = this.#nowMs();
    this.#calledAtMs = sentAtMs;
    // What was forgotten because nobody used it is not lost.
    const known = sentAtMs - this.#knownAtMs < this.#options.keepMs ? this.#known : 0;
    const ops = asked.map(({ op }) => op);
    const reply = await this.#way({ process: this.#options.member, epoch: this.#epoch, known, ops });
    if (reply === undefined || !current()) return;
    this.#heard(reply, known, sentAtMs);
    asked.forEach(({ hear }, i) => current() && hear(reply[4][i] ?? [LANE_REPLY.done]));
    for (const [order, token] of reply[3]) if (current()) this.#user.told(order, token);
    // Something was lost without its knowing. To name all is tried once, and again when the lease is renewed.
    if (current() && !named && reply[2] !== this.#user.placed) this.nameAll();
  }

  #heard([known, fresh]: LanesReply, wasKnown: number, sentAtMs: number): void {
    if (this.#way !== this.#server) {
      this.#sureUntilMs = Infinity;
      return;
    }
    this.#known = known;
    this.#knownAtMs = this.#nowMs();
    this.#sureUntilMs = sentAtMs + this.#options.leaseMs * SURE;
    // The same store knows it no more: what it had was free for others.
    if (fresh === 1 && known === wasKnown && !this.#alone) this.#user.leaseEnded();
    this.#alone = false;
  }

  #nowMs(): number {
    return this.#link.runtime.clock.now();
  }
}
