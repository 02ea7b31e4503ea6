import { Heap } from '../core/Heap.ts';
import type { HeapNode } from '../core/Heap.ts';
import { LinkedQueue } from './LinkedQueue.ts';
import type { QueueNode } from './LinkedQueue.ts';
import type { LayerCost } from './QuotaLayer.ts';
import { sizeClassOf, workOf } from './work.ts';

/** Someone who waits in a {@link FairQueue}. */
export interface FairWaiter {
  readonly tenant: string;
  /** The tenant's part next to those of others. Above 0. */
  readonly weight: number;
  readonly cost: LayerCost;
  /** A lower one came earlier. */
  readonly order: number;
}

/** Waiters of one tenant that cost about as much: strictly first in, first out. */
interface Flow<T> {
  readonly share: Share<T>;
  readonly sizeClass: number;
  /** Of all flows of its class of size. */
  readonly heap: Heap<Flow<T>>;
  readonly line: LinkedQueue<T>;
  node: HeapNode<Flow<T>> | undefined;
  requests: number;
  tokens: number;
}

/** What is remembered of a tenant. */
interface Share<T> {
  readonly tenant: string;
  readonly flows: Map<number, Flow<T>>;
  weight: number;
  /** Start tag of its next grant. */
  tag: number;
  waiting: number;
  parked: boolean;
  idle: HeapNode<Share<T>> | undefined;
}

interface Place<T> {
  readonly flow: Flow<T>;
  readonly inFlow: QueueNode<T>;
  readonly inAll: QueueNode<T>;
}

/**
 * Who goes next among tenants that share something: in proportion to their weights, measured in tokens. It decides and
 * never acts; whether there is room for anyone is for the caller to know.
 *
 * - Start-time fair queueing: a grant starts at its tenant's tag and moves the tag on by `tokens / weight`; the lowest tag
 *   goes first. Source: Goyal, Vin, Cheng, "Start-time Fair Queueing", SIGCOMM 1996.
 * - A tenant that comes back starts at the present, however long it was away: idle time is no credit, and it waits for one
 *   grant of each other tenant at most. The present moves on with the work done, as in WF2Q+ (Bennett, Zhang, 1997), so that
 *   ever new tenants cannot keep out those that were there before.
 * - A tenant's own waiters go first in, first out within one class of size (a factor of 4). Waiters of different size may
 *   be offered out of order: see {@link candidates}.
 *
 * Everything is O(log n) in the tenants that wait, and O(1) in the waiters of one tenant. A tenant is forgotten when nobody
 * of it waits and the present has caught up with it, at the latest when nobody waits at all.
 */
export class FairQueue<T extends FairWaiter> {
  readonly #shares = new Map<string, Share<T>>();
  readonly #heaps = new Map<number, Heap<Flow<T>>>();
  // Stryker disable next-line EqualityOperator: those with equal tags are forgotten together
  readonly #idle = new Heap<Share<T>>((a, b) => a.tag < b.tag);
  readonly #all = new LinkedQueue<T>();
  readonly #places = new Map<T, Place<T>>();
  readonly #before: (a: Flow<T>, b: Flow<T>) => boolean;
  /** The present, in tokens per unit of weight. */
  #present = 0;
  /** By how much the last grant moves it on: those who come before the next grant are not behind that yet. */
  #underWay = 0;
  #weights = 0;

  /** `onCompare` is called at every comparison: for measuring. */
  constructor(onCompare?: () => void) {
    const counted = (a: Flow<T>, b: Flow<T>): boolean => {
      onCompare?.();
      return before(a, b);
    };
    this.#before = counted;
  }

  get size(): number {
    return this.#all.size;
  }

  /** Tenants that something is remembered of. */
  get tenants(): number {
    return this.#shares.size;
  }

  /** The one who came first, whoever goes next. */
  oldest(): T | undefined {
    return this.#all.peek();
  }

  youngest(): T | undefined {
    return this.#all.peekLast();
  }

  /** In the order in which they joined. */
  waiters(): Iterable<T> {
    return this.#places.keys();
  }

  has(waiter: T): boolean {
    return this.#places.has(waiter);
  }

  /** Whether it is the first of its class of size and tenant: only such are candidates. */
  leads(waiter: T): boolean {
    return this.#places.get(waiter)?.flow.line.peek() === waiter;
  }

  join(waiter: T): void {
    const share = this.#shareOf(waiter);
    const sizeClass = sizeClassOf(waiter.cost.tokens);
    let flow = share.flows.get(sizeClass);
    if (flow === undefined) {
      const heap = this.#heapOf(sizeClass);
      flow = { share, sizeClass, heap, line: new LinkedQueue<T>(), node: undefined, requests: 0, tokens: 0 };
      share.flows.set(sizeClass, flow);
    }
    this.#places.set(waiter, { flow, inFlow: flow.line.push(waiter), inAll: this.#all.push(waiter) });
    flow.requests += waiter.cost.requests;
    flow.tokens += waiter.cost.tokens;
    share.waiting++;
    if (flow.line.size === 1) this.#place(flow);
  }

  /** Leaves without a grant. Whether it was there. */
  leave(waiter: T): boolean {
    const place = this.#places.get(waiter);
    if (place === undefined) return false;
    const { flow } = place;
    const wasHead = flow.line.peek() === waiter;
    this.#remove(waiter, place);
    if (wasHead) this.#place(flow);
    if (flow.share.waiting === 0) this.#retire(flow.share);
    return true;
  }

  /** Leaves with a grant, which its tenant is charged for. */
  take(waiter: T): void {
    const place = this.#places.get(waiter);
    if (place === undefined) return;
    const { share } = place.flow;
    const work = workOf(waiter.cost.tokens);
    this.#present = Math.max(this.#present + this.#underWay, share.tag);
    this.#underWay = work / this.#weights;
    share.tag += work / share.weight;
    this.#remove(waiter, place);
    this.#placeAll(share);
    if (share.waiting === 0) this.#retire(share);
    this.#forget();
  }

  /** A grant has turned out to cost a tenant more, or less if below 0. */
  correct(tenant: string, tokens: number): void {
    const share = this.#shares.get(tenant);
    if (share === undefined || tokens === 0) return;
    if (share.idle) this.#idle.remove(share.idle);
    share.tag = Math.max(this.#present, share.tag + tokens / share.weight);
    if (share.idle) share.idle = this.#idle.push(share);
    this.#placeAll(share);
  }

  /**
   * At most one waiter a class of size, the one whose turn it is first. Only where there is no room for one because of its
   * size may those after it be tried. Tenants whose waiter is `blocked` are parked: they are not offered before
   * {@link unpark}.
   */
  candidates(blocked: (waiter: T) => boolean): T[] {
    const flows: Flow<T>[] = [];
    for (const heap of this.#heaps.values()) {
      for (let flow = heap.peek(); flow !== undefined; flow = heap.peek()) {
        if (!blocked(flow.line.peek() as T)) {
          flows.push(flow);
          break;
        }
        flow.share.parked = true;
        this.#placeAll(flow.share);
      }
    }
    return heads(flows);
  }

  /** The first of each class of size of one tenant, the oldest first. */
  headsOf(tenant: string): T[] {
    return heads([...(this.#shares.get(tenant)?.flows.values() ?? [])]);
  }

  unpark(tenant: string): void {
    const share = this.#shares.get(tenant);
    if (share === undefined || !share.parked) return;
    share.parked = false;
    // Who could not go for a reason of its own has saved up nothing.
    share.tag = Math.max(share.tag, this.#present);
    this.#placeAll(share);
  }

  /** Takes over weights that waiters have by now. */
  reweigh(): void {
    for (const share of this.#shares.values()) {
      const [flow] = share.flows.values();
      if (flow === undefined) continue;
      const { weight } = flow.line.peek() as T;
      this.#weights += weight - share.weight;
      share.weight = weight;
    }
  }

  /** Where its tenant would be after a grant to `waiter`: who is behind another there may go first without taking its share. */
  finishOf({ tenant, weight, cost }: T): number {
    return (this.#shares.get(tenant)?.tag ?? this.#present) + workOf(cost.tokens) / weight;
  }

  /** What those cost together that surely go before a newcomer. */
  ahead(tenant: string, cost: LayerCost): LayerCost {
    const flow = this.#shares.get(tenant)?.flows.get(sizeClassOf(cost.tokens));
    return { requests: flow?.requests ?? 0, tokens: flow?.tokens ?? 0 };
  }

  #shareOf({ tenant, weight }: T): Share<T> {
    let share = this.#shares.get(tenant);
    if (share === undefined) {
      const flows = new Map<number, Flow<T>>();
      share = { tenant, flows, weight, tag: this.#present, waiting: 0, parked: false, idle: undefined };
      this.#shares.set(tenant, share);
    }
    if (share.waiting > 0) this.#weights -= share.weight;
    else share.tag = Math.max(share.tag, this.#present);
    if (share.idle) this.#idle.remove(share.idle);
    share.idle = undefined;
    share.weight = weight;
    this.#weights += weight;
    return share;
  }

  #remove(waiter: T, { flow, inFlow, inAll }: Place<T>): void {
    this.#places.delete(waiter);
    flow.line.remove(inFlow);
    this.#all.remove(inAll);
    flow.requests -= waiter.cost.requests;
    flow.tokens -= waiter.cost.tokens;
    flow.share.waiting--;
  }

  #placeAll(share: Share<T>): void {
    for (const flow of share.flows.values()) this.#place(flow);
  }

  #heapOf(sizeClass: number): Heap<Flow<T>> {
    let heap = this.#heaps.get(sizeClass);
    if (heap === undefined) this.#heaps.set(sizeClass, (heap = new Heap<Flow<T>>(this.#before)));
    return heap;
  }

  /** Puts a flow where it belongs now. */
  #place(flow: Flow<T>): void {
    const { share, heap } = flow;
    if (flow.node) heap.remove(flow.node);
    flow.node = undefined;
    if (flow.line.size === 0) share.flows.delete(flow.sizeClass);
    else if (!share.parked) flow.node = heap.push(flow);
  }

  #retire(share: Share<T>): void {
    this.#weights -= share.weight;
    share.parked = false;
    share.idle = this.#idle.push(share);
    if (this.#all.size > 0) return;
    // Nobody waits, so there was enough for all: nothing of the past is owed.
    while (this.#idle.size > 0) this.#idle.pop();
    this.#shares.clear();
    this.#present = this.#underWay = this.#weights = 0;
  }

  #forget(): void {
    for (let share = this.#idle.peek(); share && share.tag <= this.#present; share = this.#idle.peek()) {
      this.#idle.pop();
      this.#shares.delete(share.tenant);
    }
  }
}

/** Of those that have someone waiting. */
function before<T extends FairWaiter>(a: Flow<T>, b: Flow<T>): boolean {
  // Stryker disable next-line EqualityOperator: they differ here
  if (a.share.tag !== b.share.tag) return a.share.tag < b.share.tag;
  // Stryker disable next-line EqualityOperator: no two have one order
  return (a.line.peek() as T).order < (b.line.peek() as T).order;
}

function heads<T extends FairWaiter>(flows: Flow<T>[]): T[] {
  return flows.sort((a, b) => (before(a, b) ? -1 : 1)).map(({ line }) => line.peek() as T);
}
