import { createHash } from 'node:crypto';
import { Observable } from 'rxjs';
import type { Subscriber } from 'rxjs';
import { invalidRequest } from '../../core/errors.ts';
import type { SluiceError } from '../../core/errors.ts';
import type { LanePlace, LaneRequest, LanesSnapshot } from '../../core/ports.ts';
import type { Runtime } from '../../core/runtime.ts';
import { laneBounds } from '../../limits/ConversationLanes.ts';
import type { ConversationLanesOptions, LaneBounds } from '../../limits/ConversationLanes.ts';
import { turnLost, turnRefused, turnSuperseded } from '../../limits/laneRefusals.ts';
import type { SharedLanes } from '../../limits/LimitStore.ts';
import { turnBound } from '../../limits/turnBound.ts';
import { TurnEstimate } from '../../limits/TurnEstimate.ts';
import { Alarm } from './Alarm.ts';
import { LANE_REPLY } from './LanesCall.ts';
import type { LaneOp, LaneReply } from './LanesCall.ts';
import { LanesDecider } from './LanesDecider.ts';
import type { LanesDeciderOptions, LanesDeciderUser } from './LanesDecider.ts';
import { LaneTurn } from './LaneTurn.ts';
import { LaneTurns } from './LaneTurns.ts';
import { storeClosed, storeUnavailable } from './refusals.ts';
import type { StoreLink } from './StoreLink.ts';

/** A bound that is never met: numbers that JSON has no word for. */
const ENDLESS = 1e15;
/** Those who wait for another process look after a fortieth of the time that they have waited, within these bounds. */
const FIRST_LOOK_MS = 10;
const LAST_LOOK_MS = 50;
const LOOK = 1 / 40;

/** Turns of this process in lanes that processes share: what they ask for, hold and renew. One timer, and none while there is none. */
export class SharedLanesDesk implements SharedLanes, LanesDeciderUser {
  readonly #runtime: Runtime;
  readonly #leaseMs: number;
  readonly #turns = new LaneTurns();
  readonly #estimate = new TurnEstimate();
  readonly #alarm: Alarm;
  readonly #decider: LanesDecider;
  #bounds: LaneBounds;
  #closed = false;

  constructor(bounds: ConversationLanesOptions, link: StoreLink, options: LanesDeciderOptions) {
    this.#bounds = laneBounds(bounds);
    this.#runtime = link.runtime;
    this.#leaseMs = options.leaseMs;
    this.#alarm = new Alarm(this.#runtime, () => this.#serve());
    this.#decider = new LanesDecider(link, options, this);
  }

  acquire(request: LaneRequest): Observable<LanePlace> {
    // Hand-written: the place is asked for in the tick of the subscription and belongs to the receiver once emitted.
    return new Observable<LanePlace>((subscriber) => {
      if (!subscriber.closed) this.#enter(request, subscriber);
    });
  }

  reload(bounds: ConversationLanesOptions): void {
    this.#bounds = laneBounds(bounds);
  }

  snapshot(): LanesSnapshot {
    const { size, lanes, held } = this.#turns;
    return { conversations: lanes, waiting: size - held };
  }

  /** Ends those who wait with `closed`, and all that come. Turns that run end as they would. */
  close(): void {
    this.#closed = true;
    for (const turn of [...this.#turns]) if (turn.state !== 'held') this.#fail(turn, storeClosed());
  }

  get placed(): number {
    return this.#turns.placed;
  }

  get wanting(): boolean {
    return this.#turns.size > 0;
  }

  nameAll(): void {
    this.#turns.unplaceAll();
    for (const turn of this.#turns) this.#ask(turn);
  }

  lost(reason: string, refuse: boolean): void {
    for (const turn of [...this.#turns]) {
      if (turn.state === 'held') continue;
      if (refuse) this.#fail(turn, storeUnavailable(reason));
      else this.#turns.bound(turn);
    }
    this.#watch();
  }

  leaseEnded(): void {
    if (this.#turns.held === 0) return;
    for (const turn of [...this.#turns]) if (turn.state === 'held') this.#lose(turn, turnLost());
  }

  told(order: number, token: number): void {
    const turn = this.#turns.placedAs(order);
    if (turn === undefined || turn.state === 'over') return;
    if (token > 0) this.#grant(turn, token);
    else this.#lose(turn, turnSuperseded(turn.state === 'held'));
  }

  rested(): void {
    this.#watch();
  }

  #enter(request: LaneRequest, subscriber: Subscriber<LanePlace>): void {
    const { conversation, supersede, deadlineAtMs } = request;
    if (typeof conversation !== 'string' || conversation === '') {
      throw invalidRequest('conversation', 'a string that is not empty', conversation);
    }
    if (this.#closed) throw inLane(storeClosed());
    const nowMs = this.#nowMs();
    const { maxWaitMs = this.#bounds.maxWaitMs } = request;
    // Whoever is superseded is told within a lease, or has none by then.
    const waitMs = supersede ? Math.max(maxWaitMs, 2 * this.#leaseMs) : maxWaitMs;
    const bound = turnBound({ maxWaitMs: waitMs, deadlineAtMs }, waitMs, nowMs);
    if (deadlineAtMs !== undefined && !(deadlineAtMs > nowMs)) {
      throw turnRefused({ ...bound, retryAfterMs: this.#estimate.untilEnded(0, 0) });
    }
    const { refusing } = this.#decider;
    this.#decider.wanted();
    if (refusing !== undefined) throw inLane(storeUnavailable(refusing));
    const turn = new LaneTurn(subscriber, request, digestOf(conversation), bound, nowMs);
    this.#turns.add(turn);
    subscriber.add(() => {
      if (turn.state !== 'held') this.#leave(turn);
    });
    this.#ask(turn);
    if (this.#decider.lostFor !== undefined) this.#turns.bound(turn);
    this.#watch();
  }

  #ask(turn: LaneTurn): void {
    const { lane, order, token, request } = turn;
    const most = Math.min(this.#bounds.maxWaiting, ENDLESS);
    const op: LaneOp = order > 0 ? ['again', lane, order, token] : ['enter', lane, most, request.supersede ? 1 : 0];
    this.#decider.ask(
      op,
      (reply) => this.#answered(turn, reply),
      () => turn.state !== 'over',
    );
  }

  #answered(turn: LaneTurn, [kind, order = 0, number = 0]: LaneReply): void {
    if (kind === LANE_REPLY.holds || kind === LANE_REPLY.waits) this.#turns.place(turn, order);
    if (turn.state === 'over') {
      this.#giveUp(turn);
    } else if (kind === LANE_REPLY.holds) {
      this.#grant(turn, number);
    } else if (kind === LANE_REPLY.waits) {
      this.#waits(turn, number);
    } else if (kind === LANE_REPLY.full) {
      // Whole milliseconds that the turn before it has run, and how many wait.
      const retryAfterMs = this.#estimate.untilEnded(order / 1000, number);
      this.#fail(turn, turnRefused({ code: 'queue_full', limit: this.#bounds.maxWaiting, retryAfterMs }));
    } else {
      this.#lose(turn, turnLost());
    }
  }

  #waits(turn: LaneTurn, position: number): void {
    const first = turn.position === 0;
    this.#turns.waits(turn, position);
    if (turn.bound.atMs <= this.#nowMs()) {
      this.#expire(turn);
      return;
    }
    try {
      if (first) turn.request.onQueued?.(position, undefined);
    } catch (error) {
      this.#leave(turn);
      turn.subscriber.error(error);
    }
  }

  #grant(turn: LaneTurn, token: number): void {
    if (turn.state === 'held') return;
    const nowMs = this.#nowMs();
    if (!this.#decider.isSure) {
      // The answer was too long under way: the lane may be another's by now.
      this.#decider.nameAll();
      return;
    }
    if (turn.bound.code === 'timeout_deadline' && turn.bound.atMs <= nowMs) {
      this.#expire(turn);
      return;
    }
    this.#turns.holds(turn, token);
    turn.startedAtMs = nowMs;
    turn.subscriber.next({
      waitedMs: nowMs - turn.enteredAtMs,
      token,
      onLost: (lose) => turn.onLost(lose),
      check: () => this.#checkLease(),
      release: () => this.#leave(turn),
    });
    turn.subscriber.complete();
  }

  #expire(turn: LaneTurn): void {
    const { code, limit } = turn.bound;
    const { lostFor } = this.#decider;
    if (lostFor !== undefined && code === 'queue_timeout') {
      this.#fail(turn, storeUnavailable(lostFor));
      return;
    }
    const retryAfterMs = this.#estimate.untilEnded(0, Math.max(0, turn.position - 1));
    this.#fail(turn, turnRefused({ code, limit, retryAfterMs }));
  }

  #checkLease(): void {
    if (!this.#decider.isSure) this.leaseEnded();
  }

  #lose(turn: LaneTurn, error: SluiceError): void {
    if (turn.state !== 'held') {
      this.#fail(turn, error);
      return;
    }
    this.#leave(turn);
    turn.lose(error);
  }

  #fail(turn: LaneTurn, error: SluiceError): void {
    this.#leave(turn);
    turn.subscriber.error(inLane(error));
  }

  /** Every turn comes here in the end: when it is released or lost, or when its receiver is gone without it. */
  #leave(turn: LaneTurn): void {
    if (turn.state === 'over') return;
    if (turn.state === 'held') this.#estimate.ended(this.#nowMs() - turn.startedAtMs);
    this.#turns.remove(turn);
    this.#giveUp(turn);
    this.#watch();
  }

  #giveUp({ lane, order }: LaneTurn): void {
    if (this.#turns.placedAs(order) === undefined) return;
    this.#decider.ask(['leave', lane, order], () => this.#turns.unplace(order));
  }

  #serve(): void {
    this.#checkLease();
    const nowMs = this.#nowMs();
    for (let late = this.#turns.nextExpired(nowMs); late; late = this.#turns.nextExpired(nowMs)) this.#expire(late);
    if (this.#callAtMs() <= nowMs) this.#decider.look();
    this.#watch();
  }

  /** When its lease is to be renewed, or somebody is to look whether it is their turn. */
  #callAtMs(): number {
    const { calledAtMs } = this.#decider;
    if (this.#turns.size === 0) return Infinity;
    const { latestForeignMs } = this.#turns;
    const renewMs = this.#leaseMs / 3;
    if (latestForeignMs === undefined) return calledAtMs + renewMs;
    const waitedMs = this.#nowMs() - latestForeignMs;
    return calledAtMs + Math.min(renewMs, Math.max(FIRST_LOOK_MS, Math.min(LAST_LOOK_MS, waitedMs * LOOK)));
  }

  #watch(): void {
    const sureUntilMs = this.#turns.held > 0 ? this.#decider.sureUntilMs : Infinity;
    this.#alarm.set(Math.min(this.#turns.expiresAtMs, sureUntilMs, this.#callAtMs()));
  }

  #nowMs(): number {
    return this.#runtime.clock.now();
  }
}

function inLane(error: SluiceError): SluiceError {
  return error.with({ while: 'lane' });
}

/** Of a fixed length, and it says nothing of whom the conversation is with. */
function digestOf(conversation: string): string {
  return createHash('sha256').update(conversation).digest('base64url').slice(0, 22);
}
