import { Heap } from '../core/Heap.ts';
import type { HeapNode } from '../core/Heap.ts';
import { LinkedQueue } from './LinkedQueue.ts';
import type { QueueNode } from './LinkedQueue.ts';
import type { LayerCost } from './QuotaLayer.ts';

/** Someone who waits in a {@link WaitLine}. */
export interface Waiter {
  readonly cost: LayerCost;
  /** Monotonic milliseconds; `Infinity` for a wait without a bound. */
  readonly expiresAtMs: number;
}

interface Places<T> {
  readonly inLine: QueueNode<T>;
  readonly inHeap: HeapNode<T> | undefined;
}

/** First in, first out, with bounds on the wait: joining and leaving, from the middle too, are O(log n). */
export class WaitLine<T extends Waiter> {
  readonly #line = new LinkedQueue<T>();
  // Stryker disable next-line EqualityOperator: waits that are over at one time end together
  readonly #expiring = new Heap<T>((a, b) => a.expiresAtMs < b.expiresAtMs);
  readonly #places = new Map<T, Places<T>>();
  #requests = 0;
  #tokens = 0;

  get size(): number {
    return this.#places.size;
  }

  /** What all of them together wait for. */
  get cost(): LayerCost {
    return { requests: this.#requests, tokens: this.#tokens };
  }

  head(): T | undefined {
    return this.#line.peek();
  }

  /** The one whose wait ends first. */
  firstToExpire(): T | undefined {
    return this.#expiring.peek();
  }

  join(waiter: T): void {
    const inHeap = waiter.expiresAtMs === Infinity ? undefined : this.#expiring.push(waiter);
    this.#places.set(waiter, { inLine: this.#line.push(waiter), inHeap });
    this.#requests += waiter.cost.requests;
    this.#tokens += waiter.cost.tokens;
  }

  /** Whether it was in line. */
  leave(waiter: T): boolean {
    const places = this.#places.get(waiter);
    if (places === undefined) return false;
    this.#places.delete(waiter);
    this.#line.remove(places.inLine);
    if (places.inHeap) this.#expiring.remove(places.inHeap);
    this.#requests -= waiter.cost.requests;
    this.#tokens -= waiter.cost.tokens;
    if (this.size === 0) this.#requests = this.#tokens = 0;
    return true;
  }
}
