import { Subscription } from 'rxjs';
import type { SchedulerAction, SchedulerLike } from 'rxjs';
import { Heap } from '../core/Heap.ts';
import type { HeapNode } from '../core/Heap.ts';

/** What the timers hold of an action. */
interface Due {
  atMs: number;
  order: number;
  run(): void;
}

type Work<T> = (this: SchedulerAction<T>, state?: T) => void;

/** What is to run, in the order of its times. To arm a timer and to stop one takes O(log n) where n are armed. */
export class VirtualTimers {
  readonly #due = new Heap<Due>(isBefore);
  #armed = 0;
  nowMs = 0;

  get size(): number {
    return this.#due.size;
  }

  /** When the next one is due; `Infinity` where none is armed. */
  get nextMs(): number {
    return this.#due.peek()?.atMs ?? Infinity;
  }

  /** A scheduler of RxJS, and of this library, over these timers. `now`: what it gives as the time of day. */
  scheduler(now: () => number): SchedulerLike {
    return {
      now,
      schedule: <T>(work: Work<T>, delayMs = 0, state?: T) => new VirtualAction(this, work).schedule(state, delayMs),
    };
  }

  arm(action: Due, delayMs: number): HeapNode<Due> | undefined {
    if (delayMs === Infinity) return undefined;
    // In the form "later if", so that NaN is due at once.
    action.atMs = delayMs > 0 ? this.nowMs + delayMs : this.nowMs;
    action.order = this.#armed++;
    return this.#due.push(action);
  }

  stop(node: HeapNode<Due>): void {
    this.#due.remove(node);
  }

  /** Runs what is due up to `untilMs`, what is armed meanwhile too. */
  runUntil(untilMs: number): void {
    for (let next = this.#due.peek(); next !== undefined && next.atMs <= untilMs; next = this.#due.peek()) {
      this.#due.pop();
      this.nowMs = next.atMs;
      next.run();
    }
  }
}

/** Due together, they run in the order in which they were armed. */
function isBefore(a: Due, b: Due): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order);
}

/** Some work that a timer runs, and which may arm it again. */
class VirtualAction<T> extends Subscription implements SchedulerAction<T>, Due {
  readonly #timers: VirtualTimers;
  readonly #work: Work<T>;
  #state: T | undefined;
  #node: HeapNode<Due> | undefined;
  #waits = false;
  atMs = 0;
  order = 0;

  constructor(timers: VirtualTimers, work: Work<T>) {
    super();
    this.#timers = timers;
    this.#work = work;
  }

  schedule(state?: T, delayMs = 0): this {
    if (this.closed) return this;
    this.#stop();
    this.#state = state;
    this.#waits = true;
    this.#node = this.#timers.arm(this, delayMs);
    return this;
  }

  run(): void {
    this.#waits = false;
    this.#node = undefined;
    this.#work.call(this, this.#state);
    if (!this.#waits) this.unsubscribe();
  }

  override unsubscribe(): void {
    if (this.closed) return;
    this.#stop();
    super.unsubscribe();
  }

  #stop(): void {
    if (this.#node !== undefined) this.#timers.stop(this.#node);
    this.#node = undefined;
    this.#waits = false;
  }
}
