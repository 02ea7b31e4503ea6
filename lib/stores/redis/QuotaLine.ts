import { Heap } from '../../core/Heap.ts';
import type { QuotaWaiter } from './QuotaWaiter.ts';

/** Those of this process who wait on one route of a shared quota, in order, and those whose grant begins in a moment. */
export class QuotaLine {
  readonly #line = new Set<QuotaWaiter>();
  readonly #expiring = new Heap<QuotaWaiter>((a, b) => a.expiresAtMs < b.expiresAtMs);
  readonly #due = new Heap<QuotaWaiter>((a, b) => a.turnAtMs < b.turnAtMs);

  get size(): number {
    return this.#line.size;
  }

  [Symbol.iterator](): IterableIterator<QuotaWaiter> {
    return this.#line.values();
  }

  join(waiter: QuotaWaiter): void {
    this.#line.add(waiter);
    if (waiter.expiresAtMs < Infinity) waiter.place = this.#expiring.push(waiter);
  }

  /** Its grant begins at its turn. */
  becomeDue(waiter: QuotaWaiter): void {
    this.leave(waiter);
    waiter.state = 'due';
    waiter.place = this.#due.push(waiter);
  }

  leave(waiter: QuotaWaiter): void {
    const { place } = waiter;
    waiter.place = undefined;
    this.#line.delete(waiter);
    if (place) (waiter.state === 'due' ? this.#due : this.#expiring).remove(place);
    waiter.state = 'over';
  }

  /** One whose grant has begun by now. */
  nextDue(nowMs: number): QuotaWaiter | undefined {
    const waiter = this.#due.peek();
    return waiter && waiter.turnAtMs <= nowMs ? waiter : undefined;
  }

  /** One who has waited too long by now. */
  nextExpired(nowMs: number): QuotaWaiter | undefined {
    const waiter = this.#expiring.peek();
    return waiter && waiter.expiresAtMs <= nowMs ? waiter : undefined;
  }

  /** The first in any case, and those whose turn comes within `aheadMs`, or all; at most so many. */
  toLookAt(nowMs: number, aheadMs: number, all: boolean, most: number): QuotaWaiter[] {
    const looks: QuotaWaiter[] = [];
    for (const waiter of this.#line) {
      if (waiter.state !== 'waiting') continue;
      if (looks.length > 0 && !all && waiter.turnAtMs > nowMs + aheadMs) break;
      looks.push(waiter);
      if (looks.length >= most) break;
    }
    return looks;
  }

  /** When it is the turn of the first one, as far as is known; `Infinity` if nobody waits. */
  get turnAtMs(): number {
    for (const waiter of this.#line) if (waiter.state === 'waiting') return waiter.turnAtMs;
    return Infinity;
  }

  /** When there is something to ask about; `Infinity` if there is nothing. */
  get lookAtMs(): number {
    for (const waiter of this.#line) if (waiter.state === 'waiting') return waiter.lookAtMs;
    return Infinity;
  }

  /** When somebody has to be told something. */
  get tellAtMs(): number {
    return Math.min(this.#due.peek()?.turnAtMs ?? Infinity, this.#expiring.peek()?.expiresAtMs ?? Infinity);
  }
}
