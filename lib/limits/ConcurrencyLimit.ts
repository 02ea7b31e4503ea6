import { wholeNumber, zeroOrInfinity } from '../core/checks.ts';
import { invalidOption } from '../core/errors.ts';
import { Heap } from '../core/Heap.ts';
import type { HeapNode } from '../core/Heap.ts';
import type { Outcome } from '../core/outcome.ts';
import type { ConcurrencySnapshot } from '../core/ports.ts';
import type { Clock } from '../core/runtime.ts';
import { Aimd, AIMD_DEFAULTS } from './Aimd.ts';
import type { AimdDecision, AimdMark, AimdOptions } from './Aimd.ts';
import { LinkedQueue } from './LinkedQueue.ts';
import type { QueueNode } from './LinkedQueue.ts';
import { SlidingSums } from './SlidingSums.ts';

export interface ConcurrencyLimitOptions extends AimdOptions {
  /** A fixed limit. Not together with the options of an adaptive one. */
  readonly limit?: number | undefined;
  /** Most that wait; the next is refused with `queue_full`. 0: nobody waits. Default: 10,000. */
  readonly maxWaiting?: number | undefined;
  /** Longest wait, unless the request names its own. 0: nobody waits. Default: `Infinity`, up to the call's deadline. */
  readonly maxWaitMs?: number | undefined;
}

export const CONCURRENCY_LIMIT_DEFAULTS = { maxWaiting: 10_000, maxWaitMs: Infinity as number } as const;

/** One slot taken. Release it once. */
export interface Slot {
  readonly mark: AimdMark;
  readonly waitedMs: number;
  released: boolean;
}

/** A place in line. `item` is the caller's own. */
export interface Waiter<T> {
  readonly item: T;
  readonly queuedAtMs: number;
  readonly expiresAtMs: number;
  readonly refusal: 'queue_timeout' | 'timeout_deadline';
  place: QueueNode<Waiter<T>> | undefined;
  expiry: HeapNode<Waiter<T>> | undefined;
}

export interface SlotRequest {
  readonly maxWaitMs?: number | undefined;
  readonly deadlineAtMs?: number | undefined;
}

export interface SlotRefusal {
  readonly kind: 'refused';
  readonly code: 'queue_full' | 'queue_timeout' | 'timeout_deadline';
  /** Finite, above 0. From the rate at which slots came free of late. */
  readonly retryAfterMs: number;
}

export type SlotDecision<T> =
  | { readonly kind: 'granted'; readonly slot: Slot }
  /** `position` counts from 1. `waitMs` is an estimate, unknown before any slot came free. */
  | {
      readonly kind: 'queued';
      readonly waiter: Waiter<T>;
      readonly position: number;
      readonly waitMs: number | undefined;
    }
  | SlotRefusal;

const RATE_OVER_MS = 30_000;
const UNKNOWN_RETRY_MS = 1000;
const LONGEST_RETRY_MS = 60_000;

/**
 * Slots and one line for them, first in, first out. It decides and never acts: who asks and who is told are the
 * caller's. Nobody passes the line: while anyone waits, a newcomer waits too, even if a slot has just come free.
 *
 * Invariant: no slot is given while as many as the limit are taken. A lower limit takes no slot back.
 *
 * Everything is O(1), but O(log n) for waiters that expire.
 */
export class ConcurrencyLimit<T> {
  readonly #clock: Pick<Clock, 'now'>;
  readonly #adaptive: Aimd | undefined;
  readonly #maxWaiting: number;
  readonly #maxWaitMs: number;
  readonly #line = new LinkedQueue<Waiter<T>>();
  readonly #expiring = new Heap<Waiter<T>>((a, b) => a.expiresAtMs < b.expiresAtMs);
  readonly #freed = new SlidingSums(RATE_OVER_MS);
  #fixed: number;
  #inFlight = 0;
  #firstStartAtMs = Infinity;

  /** @throws SluiceError `invalid_option` */
  constructor(options: number | ConcurrencyLimitOptions, clock: Pick<Clock, 'now'>) {
    const checked = typeof options === 'number' ? { limit: options } : options;
    const { limit } = checked;
    const defaults = CONCURRENCY_LIMIT_DEFAULTS;
    if (limit === undefined) {
      this.#adaptive = new Aimd(checked, clock);
    } else {
      for (const option of Object.keys(AIMD_DEFAULTS) as (keyof AimdOptions)[]) {
        if (checked[option] !== undefined) throw invalidOption(option, 'absent where limit is given', checked[option]);
      }
    }
    this.#fixed = wholeNumber('limit', limit ?? 1);
    this.#maxWaiting = zeroOrInfinity('maxWaiting', checked.maxWaiting ?? defaults.maxWaiting);
    this.#maxWaitMs = zeroOrInfinity('maxWaitMs', checked.maxWaitMs ?? defaults.maxWaitMs);
    this.#clock = clock;
  }

  get limit(): number {
    return this.#adaptive?.limit ?? this.#fixed;
  }

  /** When the next waiter gives up; `undefined` if none will. */
  get nextExpiryAtMs(): number | undefined {
    return this.#expiring.peek()?.expiresAtMs;
  }

  /** Takes a slot, or a place in line for `item`, or neither. @throws SluiceError `invalid_option` */
  acquire(request: SlotRequest, item: T): SlotDecision<T> {
    const nowMs = this.#clock.now();
    const maxWaitMs = zeroOrInfinity('maxWaitMs', request.maxWaitMs ?? this.#maxWaitMs);
    const { deadlineAtMs = Infinity } = request;
    if (nowMs >= deadlineAtMs) return this.#refuse('timeout_deadline', nowMs);
    if (this.#line.size === 0 && this.#inFlight < this.limit) return { kind: 'granted', slot: this.#take(0) };
    if (this.#line.size >= this.#maxWaiting) return this.#refuse('queue_full', nowMs);
    if (maxWaitMs === 0) return this.#refuse('queue_timeout', nowMs);
    const waiter: Waiter<T> = {
      item,
      queuedAtMs: nowMs,
      expiresAtMs: Math.min(nowMs + maxWaitMs, deadlineAtMs),
      refusal: nowMs + maxWaitMs < deadlineAtMs ? 'queue_timeout' : 'timeout_deadline',
      place: undefined,
      expiry: undefined,
    };
    waiter.place = this.#line.push(waiter);
    if (waiter.expiresAtMs < Infinity) waiter.expiry = this.#expiring.push(waiter);
    return { kind: 'queued', waiter, position: this.#line.size, waitMs: this.#waitMs(this.#line.size, nowMs) };
  }

  /** Leaves the line. Whether it still stood there. */
  leave(waiter: Waiter<T>): boolean {
    if (waiter.expiry) this.#expiring.remove(waiter.expiry);
    return waiter.place !== undefined && this.#line.remove(waiter.place);
  }

  /** Gives the first in line a slot, if there is one. Call until there is none. */
  next(): { readonly waiter: Waiter<T>; readonly slot: Slot } | undefined {
    if (this.#inFlight >= this.limit) return undefined;
    const waiter = this.#line.shift();
    if (waiter === undefined) return undefined;
    if (waiter.expiry) this.#expiring.remove(waiter.expiry);
    return { waiter, slot: this.#take(this.#clock.now() - waiter.queuedAtMs) };
  }

  /** Takes one whose time is up out of the line. Call until there is none. */
  expire(): { readonly waiter: Waiter<T>; readonly refusal: SlotRefusal } | undefined {
    const nowMs = this.#clock.now();
    const waiter = this.#expiring.peek();
    if (waiter === undefined || waiter.expiresAtMs > nowMs) return undefined;
    this.leave(waiter);
    return { waiter, refusal: this.#refuse(waiter.refusal, nowMs) };
  }

  /**
   * Gives a slot back, once; the limit is cut before anyone can have it. What became of an adaptive limit;
   * `undefined` for a fixed one and where the slot had been given back before.
   */
  release(slot: Slot, outcome: Outcome, firstContentMs?: number): AimdDecision | undefined {
    if (slot.released) return undefined;
    slot.released = true;
    const decision = this.#adaptive?.end(slot.mark, outcome, this.#inFlight, firstContentMs);
    this.#inFlight--;
    this.#freed.add(this.#clock.now(), 1, 0);
    return decision;
  }

  /** Sets another limit. Call {@link next} afterwards. @throws SluiceError `invalid_option` */
  adjust(limit: number): AimdDecision {
    if (this.#adaptive) return this.#adaptive.adjust(limit);
    const from = this.#fixed;
    this.#fixed = wholeNumber('limit', limit);
    return { kind: 'changed', from, to: limit, reason: 'adjusted' };
  }

  /** Lets so many have slots from now on; 0 or more, for a limit that others decide on. Call {@link next} afterwards. */
  allow(limit: number): void {
    this.#fixed = limit;
  }

  /** How a waiter is refused. */
  refusal(code: SlotRefusal['code']): SlotRefusal {
    return this.#refuse(code, this.#clock.now());
  }

  snapshot(): ConcurrencySnapshot {
    return { limit: this.limit, inFlight: this.#inFlight, waiting: this.#line.size };
  }

  #take(waitedMs: number): Slot {
    this.#inFlight++;
    const nowMs = this.#clock.now();
    this.#firstStartAtMs = Math.min(this.#firstStartAtMs, nowMs);
    const mark = this.#adaptive?.start(this.#inFlight) ?? { atMs: nowMs, cuts: 0, start: 0 };
    return { mark, waitedMs, released: false };
  }

  #refuse(code: SlotRefusal['code'], nowMs: number): SlotRefusal {
    const waitMs = this.#waitMs(this.#line.size + 1, nowMs) ?? UNKNOWN_RETRY_MS;
    return { kind: 'refused', code, retryAfterMs: Math.max(1, Math.min(LONGEST_RETRY_MS, Math.ceil(waitMs))) };
  }

  #waitMs(position: number, nowMs: number): number | undefined {
    const freed = this.#freed.first(nowMs);
    const overMs = Math.min(this.#freed.reachMs(nowMs), nowMs - this.#firstStartAtMs);
    return freed > 0 && overMs > 0 ? Math.ceil((position * overMs) / freed) : undefined;
  }
}
