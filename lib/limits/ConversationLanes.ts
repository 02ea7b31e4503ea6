import { zeroOrInfinity } from '../core/checks.ts';
import { Heap } from '../core/Heap.ts';
import type { Clock } from '../core/runtime.ts';
import { Lane, Turn, TurnWait } from './Lane.ts';
import { turnBound } from './turnBound.ts';
import type { TurnLimits } from './turnBound.ts';
import { TurnEstimate } from './TurnEstimate.ts';

export interface ConversationLanesOptions {
  /** Turns that may wait in one conversation, besides the one that runs. 0 or more, or `Infinity`. Default: 20. */
  readonly maxWaiting?: number | undefined;
  /** Longest wait of a turn that brings no bound of its own. 0 or more, or `Infinity`. Default: 60,000. */
  readonly maxWaitMs?: number | undefined;
}

export interface LaneBounds {
  readonly maxWaiting: number;
  readonly maxWaitMs: number;
}

export const CONVERSATION_LANES_DEFAULTS: { readonly maxWaiting: number; readonly maxWaitMs: number } = {
  maxWaiting: 20,
  maxWaitMs: 60_000,
};

/** @throws SluiceError `invalid_option` if an option is not 0 or more. */
export function laneBounds(options: ConversationLanesOptions): LaneBounds {
  const { maxWaiting, maxWaitMs } = CONVERSATION_LANES_DEFAULTS;
  return {
    maxWaiting: zeroOrInfinity('maxWaiting', options.maxWaiting ?? maxWaiting),
    maxWaitMs: zeroOrInfinity('maxWaitMs', options.maxWaitMs ?? maxWaitMs),
  };
}

export interface TurnRequest extends TurnLimits {
  readonly conversation: string;
  /** End every turn of the conversation that runs or waits, and start at once. */
  readonly supersede?: boolean | undefined;
}

export interface LaneRefusal {
  readonly code: 'queue_full' | 'queue_timeout' | 'timeout_deadline';
  /** When a place is likely to be free, judged by how long turns have taken. Finite, above 0. */
  readonly retryAfterMs: number;
  /** The bound that was met: turns for `queue_full`, milliseconds for the others. */
  readonly limit: number;
}

export type EnterDecision =
  /** It runs now. The turns of `superseded` are over: the one that ran, then those that waited, in order. */
  | { readonly kind: 'started'; readonly turn: Turn; readonly superseded: readonly Turn[] }
  /** It is the `position`th in line, from 1. */
  | { readonly kind: 'waiting'; readonly turn: Turn; readonly position: number }
  | { readonly kind: 'refused'; readonly refusal: LaneRefusal };

export interface ExpiredTurn {
  readonly turn: Turn;
  readonly refusal: LaneRefusal;
}

/**
 * Decides whose turn it is in each of many conversations, and never acts: no timers, no I/O.
 *
 * Invariants: at most one turn of a conversation runs; turns start in the order in which they entered; a conversation
 * with no turn running or waiting is not remembered. Entering, leaving from anywhere in the line and starting take
 * constant time, but for the bound on the wait, which takes O(log n) of all that wait with one.
 */
export class ConversationLanes {
  #bounds: LaneBounds;
  readonly #clock: Clock;
  readonly #lanes = new Map<string, Lane>();
  readonly #expiries = new Heap<TurnWait>(
    // Stryker disable next-line EqualityOperator: no two have one order
    (a, b) => a.bound.atMs < b.bound.atMs || (a.bound.atMs === b.bound.atMs && a.order < b.order),
  );
  readonly #estimate = new TurnEstimate();
  #waits = 0;
  #waiting = 0;

  /** @throws SluiceError `invalid_option` if an option is not 0 or more. */
  constructor(options: ConversationLanesOptions, clock: Clock) {
    this.#clock = clock;
    this.#bounds = laneBounds(options);
  }

  /**
   * Takes other bounds, for turns to come: those that run or wait stay, under the bounds that they came under.
   * @throws SluiceError `invalid_option` if an option is not 0 or more; then nothing has changed.
   */
  reload(options: ConversationLanesOptions): void {
    this.#bounds = laneBounds(options);
  }

  /** Conversations with a turn running or waiting. */
  get conversations(): number {
    return this.#lanes.size;
  }

  /** Turns waiting in all conversations. */
  get waiting(): number {
    return this.#waiting;
  }

  /** When the first of those waiting has waited too long; `Infinity` if none ever will. */
  get nextExpiryAtMs(): number {
    return this.#expiries.peek()?.bound.atMs ?? Infinity;
  }

  enter(request: TurnRequest): EnterDecision {
    const now = this.#clock.now();
    const bound = turnBound(request, this.#bounds.maxWaitMs, now);
    const known = this.#lanes.get(request.conversation);
    // A deadline that has passed cannot be met even where nobody is before us; a wait of 0 can.
    if (request.deadlineAtMs !== undefined && !(request.deadlineAtMs > now)) {
      return { kind: 'refused', refusal: this.#refusal(bound, known, known?.waiting ?? 0, now) };
    }
    const lane = known ?? new Lane(request.conversation);
    const turn = new Turn(lane);
    if (known === undefined) {
      this.#lanes.set(lane.conversation, lane);
      this.#start(turn, now, 0);
      return { kind: 'started', turn, superseded: NOBODY };
    }
    if (request.supersede) {
      const superseded = this.#endAll(lane, now);
      this.#start(turn, now, 0);
      return { kind: 'started', turn, superseded };
    }
    const { maxWaiting } = this.#bounds;
    if (lane.waiting >= maxWaiting) {
      const full = { code: 'queue_full', limit: maxWaiting } as const;
      return { kind: 'refused', refusal: this.#refusal(full, lane, 0, now) };
    }
    if (bound.atMs <= now) return { kind: 'refused', refusal: this.#refusal(bound, lane, lane.waiting, now) };
    this.#join(new TurnWait(turn, this.#waits++, now, bound));
    return { kind: 'waiting', turn, position: lane.waiting };
  }

  /** Ends a turn, waiting or running. Returns the turn that starts in its place, if one does. */
  leave(turn: Turn): Turn | undefined {
    if (turn.state === 'over') return undefined;
    const { lane } = turn;
    if (turn.wait) {
      this.#giveUp(turn.wait);
      return undefined;
    }
    const now = this.#clock.now();
    this.#end(turn, now);
    const next = lane.head;
    if (next === undefined) {
      this.#lanes.delete(lane.conversation);
      return undefined;
    }
    this.#unlink(next);
    this.#start(next.turn, now, now - next.sinceMs);
    return next.turn;
  }

  /** Ends the turns that have waited too long by now, the longest overdue first. */
  expire(): ExpiredTurn[] {
    const now = this.#clock.now();
    const expired: ExpiredTurn[] = [];
    for (let wait = this.#expiries.peek(); wait && wait.bound.atMs <= now; wait = this.#expiries.peek()) {
      const { turn, bound } = wait;
      this.#giveUp(wait);
      expired.push({ turn, refusal: this.#refusal(bound, turn.lane, turn.lane.waiting, now) });
    }
    return expired;
  }

  #refusal(
    { code, limit }: Pick<LaneRefusal, 'code' | 'limit'>,
    lane: Lane | undefined,
    turnsBefore: number,
    now: number,
  ): LaneRefusal {
    const ranMs = lane?.running === undefined ? 0 : now - lane.running.startedAtMs;
    return { code, limit, retryAfterMs: this.#estimate.untilEnded(ranMs, turnsBefore) };
  }

  #start(turn: Turn, now: number, waitedMs: number): void {
    turn.state = 'running';
    turn.waitedMs = waitedMs;
    turn.startedAtMs = now;
    turn.lane.running = turn;
  }

  #end(turn: Turn, now: number): void {
    this.#estimate.ended(now - turn.startedAtMs);
    turn.state = 'over';
    turn.lane.running = undefined;
  }

  #endAll(lane: Lane, now: number): Turn[] {
    const running = lane.running as Turn;
    const ended = [running];
    this.#end(running, now);
    for (let wait = lane.head; wait; wait = lane.head) {
      this.#giveUp(wait);
      ended.push(wait.turn);
    }
    return ended;
  }

  #join(wait: TurnWait): void {
    const { turn } = wait;
    turn.wait = wait;
    turn.lane.join(wait);
    this.#waiting++;
    // Stryker disable next-line ConditionalExpression,EqualityOperator: it would never come up
    if (wait.bound.atMs < Infinity) wait.expiry = this.#expiries.push(wait);
  }

  #unlink(wait: TurnWait): void {
    const { turn } = wait;
    turn.lane.unlink(wait);
    turn.wait = undefined;
    this.#waiting--;
    if (wait.expiry) this.#expiries.remove(wait.expiry);
  }

  #giveUp(wait: TurnWait): void {
    this.#unlink(wait);
    wait.turn.state = 'over';
  }
}

const NOBODY: readonly Turn[] = [];
