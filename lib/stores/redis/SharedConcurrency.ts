import { Observable } from 'rxjs';
import type { Subscriber } from 'rxjs';
import { zeroOrInfinity } from '../../core/checks.ts';
import { DROPPED_UNSENT } from '../../core/outcome.ts';
import type { AcquireRequest, ConcurrencyPort, ConcurrencySnapshot, Permit } from '../../core/ports.ts';
import type { Runtime } from '../../core/runtime.ts';
import { CONCURRENCY_LIMIT_DEFAULTS, ConcurrencyLimit } from '../../limits/ConcurrencyLimit.ts';
import type { Slot, SlotDecision, Waiter } from '../../limits/ConcurrencyLimit.ts';
import { slotRefused } from '../../limits/slotRefused.ts';
import { Alarm } from './Alarm.ts';
import type { LeasedSlots } from './LeasedSlots.ts';
import { storeClosed, storeUnavailable } from './refusals.ts';

export interface SharedConcurrencyOptions {
  /** Most that are in flight at one time, in all processes together. Whole, at least 1. */
  readonly limit: number;
  /** Most that wait in this process; the next is refused with `queue_full`. 0: nobody waits. Default: 10,000. */
  readonly maxWaiting?: number | undefined;
  /** Longest wait, unless the request names its own. 0: nobody waits. Default: `Infinity`, up to the call's deadline. */
  readonly maxWaitMs?: number | undefined;
}

/** A concurrency limit of all processes that name it, which can be set anew. */
export interface SharedConcurrencyPort extends ConcurrencyPort {
  /**
   * Sets another limit. A higher one lets as many as now fit start at once; a lower one ends nothing that runs.
   * @throws SluiceError `invalid_option` unless it is a whole number of at least 1.
   */
  adjust(limit: number): void;
}

interface Waiting {
  readonly request: AcquireRequest;
  readonly subscriber: Subscriber<Permit>;
  readonly maxWaitMs: number;
  /** Whether the store has been asked for it, and had none. */
  counted: boolean;
}

type Queued = Extract<SlotDecision<Waiting>, { kind: 'queued' }>;

/** The line of this process for the places that it has on loan. Whoever comes asks the store before it is refused or told to wait. */
export class SharedConcurrency implements SharedConcurrencyPort {
  readonly #slots: LeasedSlots;
  readonly #machine: ConcurrencyLimit<Waiting>;
  readonly #maxWaiting: number;
  readonly #maxWaitMs: number;
  readonly #alarm: Alarm;
  readonly #line = new Set<Waiter<Waiting>>();
  #counted = 0;
  #granting = false;
  #closed = false;

  constructor(slots: LeasedSlots, options: SharedConcurrencyOptions, runtime: Runtime) {
    const defaults = CONCURRENCY_LIMIT_DEFAULTS;
    this.#maxWaiting = zeroOrInfinity('maxWaiting', options.maxWaiting ?? defaults.maxWaiting);
    this.#maxWaitMs = zeroOrInfinity('maxWaitMs', options.maxWaitMs ?? defaults.maxWaitMs);
    this.#machine = new ConcurrencyLimit({ limit: options.limit, maxWaiting: Infinity }, runtime.clock);
    this.#slots = slots;
    this.#alarm = new Alarm(runtime, () => this.#expire());
    const serve = (): void => this.#serve();
    slots.onChange = serve;
  }

  acquire(request: AcquireRequest): Observable<Permit> {
    // Hand-written: the place in line is taken in the tick of the subscription, and a grant may come from any other.
    return new Observable((subscriber) => {
      if (subscriber.closed) return;
      try {
        this.#enter(request, subscriber);
      } catch (error) {
        this.#serve();
        throw error;
      }
    });
  }

  adjust(limit: number): void {
    this.#slots.reload(limit);
  }

  snapshot(): ConcurrencySnapshot {
    const { inFlight, waiting } = this.#machine.snapshot();
    return { limit: this.#slots.allowed, inFlight, waiting };
  }

  /** Ends those who wait with `closed`, and all that come. Permits that are out end as they would. */
  close(): void {
    this.#closed = true;
    for (const waiter of [...this.#line]) this.#fail(waiter, storeClosed());
    this.#slots.close();
  }

  #enter(request: AcquireRequest, subscriber: Subscriber<Permit>): void {
    const maxWaitMs = zeroOrInfinity('maxWaitMs', request.maxWaitMs ?? this.#maxWaitMs);
    if (this.#closed) throw storeClosed();
    this.#allow(1);
    const { refusing } = this.#slots;
    if (refusing !== undefined) throw storeUnavailable(refusing);
    const waiting: Waiting = { request, subscriber, maxWaitMs, counted: false };
    const { deadlineAtMs } = request;
    // Whoever will not wait hears the answer of the store all the same.
    const decision = this.#machine.acquire({ deadlineAtMs, maxWaitMs: maxWaitMs || Infinity }, waiting);
    if (decision.kind === 'refused') throw slotRefused(decision, request);
    if (decision.kind === 'granted') {
      this.#handOver(waiting, decision.slot);
      this.#serve();
      return;
    }
    if (this.#maxWaiting > 0 && this.#counted >= this.#maxWaiting) {
      this.#machine.leave(decision.waiter);
      throw slotRefused(this.#machine.refusal('queue_full'), request);
    }
    this.#line.add(decision.waiter);
    subscriber.add(() => this.#leave(decision.waiter));
    this.#serve();
    this.#slots.answered(() => this.#answered(decision));
  }

  #answered({ waiter, position, waitMs }: Queued): void {
    if (!this.#line.has(waiter)) return;
    const { request, maxWaitMs } = waiter.item;
    const full = this.#counted >= this.#maxWaiting;
    if (full || maxWaitMs === 0) {
      this.#fail(waiter, slotRefused(this.#machine.refusal(full ? 'queue_full' : 'queue_timeout'), request));
      return;
    }
    waiter.item.counted = true;
    this.#counted++;
    request.onQueued?.(position, waitMs);
  }

  #fail(waiter: Waiter<Waiting>, error: Error): void {
    this.#leave(waiter);
    waiter.item.subscriber.error(error);
  }

  #leave(waiter: Waiter<Waiting>): void {
    if (!this.#forget(waiter)) return;
    this.#machine.leave(waiter);
    this.#serve();
  }

  #forget(waiter: Waiter<Waiting>): boolean {
    if (!this.#line.delete(waiter)) return false;
    if (waiter.item.counted) this.#counted--;
    return true;
  }

  /** A loop that is never entered twice: what is handed over may end at once and make room for the next. */
  #serve(): void {
    if (this.#granting) return;
    this.#granting = true;
    try {
      const { refusing } = this.#slots;
      if (refusing !== undefined) for (const waiter of [...this.#line]) this.#fail(waiter, storeUnavailable(refusing));
      for (let next = this.#next(); next; next = this.#next()) {
        this.#forget(next.waiter);
        this.#handOver(next.waiter.item, next.slot);
      }
    } finally {
      this.#granting = false;
    }
    this.#alarm.set(this.#machine.nextExpiryAtMs ?? Infinity);
  }

  #next(): ReturnType<ConcurrencyLimit<Waiting>['next']> {
    this.#allow(0);
    return this.#machine.next();
  }

  /** Tells what is taken and wanted; that may lower what there is. */
  #allow(more: number): void {
    const { inFlight, waiting } = this.#machine.snapshot();
    this.#slots.use(inFlight, waiting + more);
    this.#machine.allow(this.#slots.have);
  }

  #handOver({ subscriber }: Waiting, slot: Slot): void {
    const permit: Permit = {
      waitedMs: slot.waitedMs,
      release: (outcome, firstContentMs) => {
        this.#machine.release(slot, outcome, firstContentMs);
        this.#serve();
      },
    };
    if (subscriber.closed) {
      permit.release(DROPPED_UNSENT);
      return;
    }
    subscriber.next(permit);
    subscriber.complete();
  }

  #expire(): void {
    for (let expired = this.#machine.expire(); expired; expired = this.#machine.expire()) {
      this.#fail(expired.waiter, slotRefused(expired.refusal, expired.waiter.item.request));
    }
    this.#serve();
  }
}
