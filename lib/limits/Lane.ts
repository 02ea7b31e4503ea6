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
  /** Turns of all conversations are numbered as they enter. */
  readonly order: number;
  readonly enteredAtMs: number;
  readonly bound: TurnBound;
  startedAtMs = 0;
  previous: Turn | undefined;
  next: Turn | undefined;
  expiry: HeapNode<Turn> | undefined;
  /** Kept for whoever entered; a map beside it would cost every call more. */
  owner: unknown;

  constructor(lane: Lane, order: number, enteredAtMs: number, bound: TurnBound) {
    this.lane = lane;
    this.order = order;
    this.enteredAtMs = enteredAtMs;
    this.bound = bound;
    this.owner = undefined;
  }

  get waitedMs(): number {
    return this.startedAtMs - this.enteredAtMs;
  }
}

/** The line of one conversation: first in, first out, and a turn can leave from anywhere in constant time. */
export class Lane {
  readonly conversation: string;
  running: Turn | undefined;
  #head: Turn | undefined;
  #tail: Turn | undefined;
  #waiting = 0;

  constructor(conversation: string) {
    this.conversation = conversation;
  }

  get head(): Turn | undefined {
    return this.#head;
  }

  get waiting(): number {
    return this.#waiting;
  }

  join(turn: Turn): void {
    turn.previous = this.#tail;
    if (this.#tail) this.#tail.next = turn;
    else this.#head = turn;
    this.#tail = turn;
    this.#waiting++;
  }

  unlink(turn: Turn): void {
    const { previous, next } = turn;
    if (previous) previous.next = next;
    else this.#head = next;
    if (next) next.previous = previous;
    else this.#tail = previous;
    // A turn that runs long must not keep its former neighbours alive.
    turn.previous = undefined;
    turn.next = undefined;
    this.#waiting--;
  }
}
