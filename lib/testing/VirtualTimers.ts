import { Subscription } from 'rxjs';
import type { SchedulerAction, SchedulerLike } from 'rxjs';
import { Heap } from '../core/Heap.ts';
import type { HeapNode } from '../core/Heap.ts';
import type { Cancel, Scheduler } from '../core/runtime.ts';

/** What the timers hold of an action. */
interface Due {
  atMs: number;
  order: number;
  run(): void;
}

/** Its own node of the heap: a simulation arms ten timers for every call. */
type DueNode = Due & HeapNode<Due>;

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
  scheduler(now: () => number): SchedulerLike & Scheduler {
    return {
      now,
      once: (work, delayMs) => this.once(work, delayMs),
      schedule: <T>(work: Work<T>, delayMs = 0, state?: T) => new VirtualAction(this, work).schedule(state, delayMs),
    };
  }

  /** Runs `work` once. What it returns stops that. */
  once(work: () => void, delayMs: number): Cancel {
    const timer = new OnceDue(work);
    this.arm(timer, delayMs);
    return () => this.stop(timer);
  }

  arm(action: DueNode, delayMs: number): void {
    if (delayMs === Infinity) return;
    // In the form "later if", so that NaN is due at once.
    action.atMs = delayMs > 0 ? this.nowMs + delayMs : this.nowMs;
    action.order = this.#armed++;
    this.#due.add(action);
  }

  stop(action: DueNode): void {
    this.#due.remove(action);
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

/** Some work that a timer runs once. */
class OnceDue implements DueNode {
  readonly item = this;
  readonly #work: () => void;
  index = -1;
  atMs = 0;
  order = 0;

  constructor(work: () => void) {
    this.#work = work;
  }

  run(): void {
    this.#work();
  }
}

/** Some work that a timer runs, and which may arm it again. */
class VirtualAction<T> extends Subscription implements SchedulerAction<T>, DueNode {
  readonly item = this;
  readonly #timers: VirtualTimers;
  readonly #work: Work<T>;
  #state: T | undefined;
  #waits = false;
  index = -1;
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
    this.#timers.arm(this, delayMs);
    return this;
  }

  run(): void {
    this.#waits = false;
    this.#work.call(this, this.#state);
    if (!this.#waits) this.unsubscribe();
  }

  override unsubscribe(): void {
    if (this.closed) return;
    this.#stop();
    super.unsubscribe();
  }

  #stop(): void {
    this.#timers.stop(this);
    this.#waits = false;
  }
}
