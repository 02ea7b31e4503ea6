import type { HeapNode } from '../core/Heap.ts';

/** Until when a turn may wait, and what has run out then. */
export interface TurnBound {
  readonly code: 'queue_timeout' | 'timeout_deadline';
  /** Milliseconds from when the turn entered. */
  readonly limit: number;
  readonly atMs: number;
}

/** A turn of a conversation, from its entry to its end. Changed by the lanes it belongs to only. */
export class Turn {
  state: 'waiting' | 'running' | 'over' = 'waiting';
  readonly lane: Lane;
  /** As long as it waits. */
  wait: TurnWait | undefined;
  waitedMs = 0;
  startedAtMs = 0;
  /** Kept for whoever entered; a map beside it would cost every call more. */
  owner: unknown;

  constructor(lane: Lane) {
    this.lane = lane;
    this.wait = undefined;
    this.owner = undefined;
  }
}

/** The place in line of a turn. Most turns start at once, and never have one. */
export class TurnWait {
  readonly turn: Turn;
  /** Those of all conversations are numbered as they come. */
  readonly order: number;
  readonly sinceMs: number;
  readonly bound: TurnBound;
  previous: TurnWait | undefined;
  next: TurnWait | undefined;
  expiry: HeapNode<TurnWait> | undefined;

  constructor(turn: Turn, order: number, sinceMs: number, bound: TurnBound) {
    this.turn = turn;
    this.order = order;
    this.sinceMs = sinceMs;
    this.bound = bound;
  }
}

/** The line of one conversation: first in, first out, and a turn can leave from anywhere in constant time. */
export class Lane {
  readonly conversation: string;
  running: Turn | undefined;
  #head: TurnWait | undefined;
  #tail: TurnWait | undefined;
  #waiting = 0;

  constructor(conversation: string) {
    this.conversation = conversation;
  }

  get head(): TurnWait | undefined {
    return this.#head;
  }

  get waiting(): number {
    return this.#waiting;
  }

  join(wait: TurnWait): void {
    wait.previous = this.#tail;
    if (this.#tail) this.#tail.next = wait;
    else this.#head = wait;
    this.#tail = wait;
    this.#waiting++;
  }

  unlink({ previous, next }: TurnWait): void {
    if (previous) previous.next = next;
    else this.#head = next;
    if (next) next.previous = previous;
    else this.#tail = previous;
    this.#waiting--;
  }
}
