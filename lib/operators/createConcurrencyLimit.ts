import { defer, Observable } from 'rxjs';
import type { Subscriber } from 'rxjs';
import type { SluiceFact } from '../core/events.ts';
import { DROPPED_UNSENT } from '../core/outcome.ts';
import type { Outcome } from '../core/outcome.ts';
import type { AcquireRequest, ConcurrencyPort, ConcurrencySnapshot, Permit } from '../core/ports.ts';
import { startTimer, systemRuntime } from '../core/runtime.ts';
import type { Cancel, Runtime } from '../core/runtime.ts';
import type { AimdDecision } from '../limits/Aimd.ts';
import { ConcurrencyLimit } from '../limits/ConcurrencyLimit.ts';
import type { ConcurrencyLimitOptions, Slot, Waiter } from '../limits/ConcurrencyLimit.ts';
import { slotRefused } from '../limits/slotRefused.ts';
import { Keyed } from './Keyed.ts';

export interface CreateConcurrencyLimitOptions extends ConcurrencyLimitOptions {
  /** Names the limit in events. Default: `'concurrency'`; of {@link createConcurrencyLimits}, the key. */
  readonly name?: string | undefined;
  /** Hears `limit.changed`, after the change. What it throws is ignored. */
  readonly onFact?: ((fact: SluiceFact) => void) | undefined;
}

export const CREATE_CONCURRENCY_LIMIT_DEFAULTS = { name: 'concurrency', maxKeys: 1000 } as const;

/** A limit of this process, which can be set anew. */
export interface AdjustableConcurrency extends ConcurrencyPort {
  /**
   * Sets another limit. A higher one lets as many as now fit start at once, in order; a lower one ends nothing that runs.
   * An adaptive limit goes on from there.
   * @throws SluiceError `invalid_option` unless it is a whole number of at least 1, within `min` and `max` if adaptive.
   */
  adjust(limit: number): void;
}

/**
 * A concurrency limit of this process: fixed, given a number or `limit`; otherwise it finds its size between `min` and
 * `max`. Give it to {@link limitConcurrency}.
 *
 * Waiters stand in one line, first in, first out; nobody passes it. At most one timer is armed, for the wait that ends
 * first, and none while no wait has an end. An adaptive limit reports each change to the call that brought it about, as
 * `limit.changed`, and to `onFact`.
 *
 * `acquire` emits as errors, each with `retryAfterMs`, a guess from how fast slots have come free of late:
 * `queue_full`, `queue_timeout`, `timeout_deadline`.
 *
 * @param options - See {@link ConcurrencyLimitOptions} for defaults and units.
 * @throws SluiceError `invalid_option` if an option is out of range.
 *
 * @example
 * ```ts
 * import { createConcurrencyLimit } from 'sluice';
 *
 * const fixed = createConcurrencyLimit(4);
 * const adaptive = createConcurrencyLimit({ initial: 16, min: 4, max: 64, maxWaiting: 500 });
 * console.log(fixed.snapshot().limit + adaptive.snapshot().limit); // => 20
 * ```
 */
export function createConcurrencyLimit(
  options: number | CreateConcurrencyLimitOptions = {},
  runtime: Runtime = systemRuntime,
): AdjustableConcurrency {
  return new LocalConcurrency(options, runtime);
}

/**
 * One limit a key, made when first used, all with the same options.
 *
 * `of(key)` is a view that may be kept. When there are more than `maxKeys`, those used least recently that nobody holds
 * or waits for are forgotten; a forgotten one starts over at its first size.
 *
 * @param options - As for {@link createConcurrencyLimit}; `maxKeys`: whole, at least 1, default 1,000.
 * @throws SluiceError `invalid_option` if an option is out of range; `of` throws it for an empty key.
 *
 * @example
 * ```ts
 * import { of } from 'rxjs';
 * import { createConcurrencyLimits, limitConcurrency } from 'sluice';
 *
 * const limits = createConcurrencyLimits({ initial: 8, max: 32 });
 * of('an answer').pipe(limitConcurrency(limits.of('gpt-5.5'))).subscribe(console.log);
 * ```
 */
export function createConcurrencyLimits(
  options: number | (CreateConcurrencyLimitOptions & { readonly maxKeys?: number | undefined }) = {},
  runtime: Runtime = systemRuntime,
): { of(key: string): AdjustableConcurrency } {
  // Wrong options fail here, not at the first call.
  createConcurrencyLimit(options, runtime);
  const { maxKeys, ...shared } = typeof options === 'number' ? { limit: options, maxKeys: undefined } : options;
  const keyed = new Keyed(
    (name) => new LocalConcurrency({ ...shared, name }, runtime),
    maxKeys ?? CREATE_CONCURRENCY_LIMIT_DEFAULTS.maxKeys,
  );
  return {
    of: (key) => {
      const entry = keyed.at(key);
      return {
        acquire: (request) => defer(() => entry().acquire(request)),
        snapshot: () => entry().snapshot(),
        adjust: (limit) => entry().adjust(limit),
      };
    },
  };
}

interface Waiting {
  readonly request: AcquireRequest;
  readonly subscriber: Subscriber<Permit>;
}

class LocalConcurrency implements AdjustableConcurrency {
  readonly #runtime: Runtime;
  readonly #machine: ConcurrencyLimit<Waiting>;
  readonly #name: string;
  readonly #onFact: ((fact: SluiceFact) => void) | undefined;
  #granting = false;
  #timerAtMs = Infinity;
  #stopTimer: Cancel | undefined;

  constructor(options: number | CreateConcurrencyLimitOptions, runtime: Runtime) {
    this.#machine = new ConcurrencyLimit(options, runtime.clock);
    this.#runtime = runtime;
    const named = typeof options === 'number' ? {} : options;
    this.#name = named.name ?? CREATE_CONCURRENCY_LIMIT_DEFAULTS.name;
    this.#onFact = named.onFact;
  }

  get idle(): boolean {
    const { inFlight, waiting } = this.snapshot();
    return inFlight === 0 && waiting === 0;
  }

  acquire(request: AcquireRequest): Observable<Permit> {
    // Hand-written: the place in line is taken in the tick of the subscription, and a grant may come from any other.
    return new Observable((subscriber) => this.#enter({ request, subscriber }));
  }

  adjust(limit: number): void {
    this.#report(this.#machine.adjust(limit));
    this.#grant();
  }

  snapshot(): ConcurrencySnapshot {
    return this.#machine.snapshot();
  }

  #enter(waiting: Waiting): void {
    const { request, subscriber } = waiting;
    if (subscriber.closed) return;
    const decision = this.#machine.acquire(request, waiting);
    if (decision.kind === 'granted') this.#handOver(waiting, decision.slot);
    else if (decision.kind === 'refused') subscriber.error(slotRefused(decision, request));
    else {
      subscriber.add(() => this.#leave(decision.waiter));
      this.#watch();
      request.onQueued?.(decision.position, decision.waitMs);
    }
  }

  #leave(waiter: Waiter<Waiting>): void {
    if (this.#machine.leave(waiter)) this.#watch();
  }

  /** A loop that is never entered twice: what is handed over may end at once and make room for the next. */
  #grant(): void {
    if (this.#granting) return;
    this.#granting = true;
    try {
      for (let next = this.#machine.next(); next; next = this.#machine.next()) {
        this.#handOver(next.waiter.item, next.slot);
      }
    } finally {
      this.#granting = false;
    }
    this.#watch();
  }

  #handOver({ request, subscriber }: Waiting, slot: Slot): void {
    const permit: Permit = {
      waitedMs: slot.waitedMs,
      release: (outcome, firstContentMs) => this.#release(slot, request, outcome, firstContentMs),
    };
    // Stryker disable ConditionalExpression,BlockStatement,CallExpression: nobody comes here
    /* c8 ignore next 4 -- who unsubscribes has left the line; a permit that nobody takes would be lost for good */
    if (subscriber.closed) {
      permit.release(DROPPED_UNSENT);
      return;
    }
    // Stryker restore all
    subscriber.next(permit);
    subscriber.complete();
  }

  #release(slot: Slot, request: AcquireRequest, outcome: Outcome, firstContentMs: number | undefined): void {
    const decision = this.#machine.release(slot, outcome, firstContentMs);
    if (decision) this.#report(decision, request);
    this.#grant();
  }

  #report(decision: AimdDecision, request?: AcquireRequest): void {
    if (decision.kind === 'kept' || decision.from === decision.to) return;
    const { from, to, reason } = decision;
    const fact: SluiceFact = { type: 'limit.changed', limiter: this.#name, from, to, reason };
    for (const listener of [this.#onFact, request?.onFact]) {
      try {
        // Stryker disable next-line OptionalChaining: it would be caught
        listener?.(fact);
      } catch {
        // A listener's fault is its own.
      }
    }
  }

  /** Sees that a timer is due no later than the wait that ends first. One that is due earlier looks again. */
  #watch(): void {
    const atMs = this.#machine.nextExpiryAtMs;
    if (atMs !== undefined && atMs >= this.#timerAtMs) return;
    this.#stopTimer?.();
    this.#timerAtMs = atMs ?? Infinity;
    if (atMs === undefined) return;
    this.#stopTimer = startTimer(this.#runtime, atMs - this.#runtime.clock.now(), () => {
      this.#timerAtMs = Infinity;
      for (let expired = this.#machine.expire(); expired; expired = this.#machine.expire()) {
        const { request, subscriber } = expired.waiter.item;
        subscriber.error(slotRefused(expired.refusal, request));
      }
      this.#watch();
    });
  }
}
