import { defer, Observable } from 'rxjs';
import type { Subscriber } from 'rxjs';
import { SluiceError } from '../core/errors.ts';
import type { SluiceFact } from '../core/events.ts';
import type { AcquireRequest, BreakerPass, BreakerPort, BreakerSnapshot } from '../core/ports.ts';
import { DROPPED_UNSENT } from '../core/outcome.ts';
import { startTimer, systemRuntime } from '../core/runtime.ts';
import type { Cancel, Runtime } from '../core/runtime.ts';
import { RevocablePass } from '../core/RevocablePass.ts';
import type { CircuitBreakerOptions } from '../limits/breakerRules.ts';
import { CircuitBreaker } from '../limits/CircuitBreaker.ts';
import type { BreakerChange } from '../limits/CircuitBreaker.ts';
import { Keyed } from './Keyed.ts';

export interface CreateBreakerOptions extends CircuitBreakerOptions {
  /** Names the breaker in events and errors. Default: `'breaker'`; of {@link createBreakers}, the key. */
  readonly name?: string | undefined;
  /** Hears `breaker.changed`, after the change. Called by no call in particular; what it throws is ignored. */
  readonly onFact?: ((fact: SluiceFact) => void) | undefined;
}

export const CREATE_BREAKER_DEFAULTS = { name: 'breaker', maxKeys: 1000 } as const;

/**
 * A circuit breaker of this process. Give it to {@link circuitBreak}; see there for what it does.
 *
 * It reports each change to the call that brought it about, as `breaker.changed`, and to `onFact`. The state has changed
 * by then. It arms one timer, while half-open probes wait to be sent; otherwise none.
 *
 * `acquire` emits as an error: `circuit_open` with `retryAfterMs`.
 *
 * @param options - See {@link CircuitBreakerOptions} for defaults and units.
 * @throws SluiceError `invalid_option` if an option is out of range.
 *
 * @example
 * ```ts
 * import { createBreaker } from 'sluice';
 *
 * const breaker = createBreaker({ name: 'gpt-5.5', consecutiveFailures: 5, openMs: 15_000, onFact: console.log });
 * console.log(breaker.snapshot().state); // => closed
 * ```
 */
export function createBreaker(options: CreateBreakerOptions = {}, runtime: Runtime = systemRuntime): BreakerPort {
  return new LocalBreaker(options, runtime);
}

/**
 * One breaker a key, made when first used, all with the same options.
 *
 * `of(key)` is a view that may be kept. When there are more than `maxKeys`, those used least recently that nobody holds
 * a pass of are forgotten; a forgotten one starts over closed.
 *
 * @param options - As for {@link createBreaker}; `maxKeys`: whole, at least 1, default 1,000.
 * @throws SluiceError `invalid_option` if an option is out of range; `of` throws it for an empty key.
 *
 * @example
 * ```ts
 * import { of } from 'rxjs';
 * import { circuitBreak, createBreakers } from 'sluice';
 *
 * const breakers = createBreakers({ consecutiveFailures: 5 });
 * of('an answer').pipe(circuitBreak(breakers.of('gpt-5.5'))).subscribe(console.log);
 * ```
 */
export function createBreakers(
  options: CreateBreakerOptions & { readonly maxKeys?: number | undefined } = {},
  runtime: Runtime = systemRuntime,
): { of(key: string): BreakerPort } {
  // Wrong options fail here, not at the first call.
  createBreaker(options, runtime);
  const keyed = new Keyed(
    (name) => new LocalBreaker({ ...options, name }, runtime),
    options.maxKeys ?? CREATE_BREAKER_DEFAULTS.maxKeys,
  );
  return {
    of: (key) => {
      const entry = keyed.at(key);
      return { acquire: (request) => defer(() => entry().acquire(request)), snapshot: () => entry().snapshot() };
    },
  };
}

class LocalBreaker implements BreakerPort {
  readonly #runtime: Runtime;
  readonly #machine: CircuitBreaker;
  readonly #name: string;
  readonly #onFact: ((fact: SluiceFact) => void) | undefined;
  /** Passes whose attempts are not sent yet. */
  readonly #unsent = new Set<RevocablePass>();
  #held = 0;
  #timerAtMs: number | undefined;
  #stopTimer: Cancel | undefined;

  constructor(options: CreateBreakerOptions, runtime: Runtime) {
    this.#machine = new CircuitBreaker(options, runtime.clock);
    this.#runtime = runtime;
    this.#name = options.name ?? CREATE_BREAKER_DEFAULTS.name;
    this.#onFact = options.onFact;
  }

  get idle(): boolean {
    return this.#held === 0;
  }

  acquire(request: AcquireRequest): Observable<BreakerPass> {
    // Hand-written: a listener may unsubscribe before the pass is handed over, and then it must be given back.
    return new Observable((subscriber) => this.#ask(request, subscriber));
  }

  snapshot(): BreakerSnapshot {
    return this.#machine.snapshot();
  }

  #ask(request: AcquireRequest, subscriber: Subscriber<BreakerPass>): void {
    if (subscriber.closed) return;
    const decision = this.#machine.ask();
    const doomed = this.#doom(decision.changes);
    if (decision.kind === 'refused') {
      this.#report(decision.changes, doomed, request);
      subscriber.error(this.#refusal(decision.retryAfterMs, 'entry', request.model));
      return;
    }
    const pass = new RevocablePass(request.model, {
      settled: () => this.#unsent.delete(pass),
      firstContent: () => this.#machine.firstContent(decision.ticket),
      moved: () => this.#watch(),
      release: (outcome) => {
        this.#held--;
        const changes = this.#machine.settle(decision.ticket, outcome);
        this.#report(changes, this.#doom(changes), request);
      },
    });
    this.#held++;
    this.#unsent.add(pass);
    this.#report(decision.changes, doomed, request);
    if (subscriber.closed) {
      pass.release(DROPPED_UNSENT);
      return;
    }
    subscriber.next(pass);
    subscriber.complete();
  }

  /** If the breaker has opened: the passes that must not be used any more. Newer ones may be made before they hear of it. */
  #doom(changes: readonly BreakerChange[]): readonly RevocablePass[] {
    if (!changes.some(({ to }) => to === 'open')) return [];
    const doomed = [...this.#unsent];
    this.#unsent.clear();
    const retryAfterMs = Math.max(1, Math.ceil(this.snapshot().retryAfterMs));
    for (const pass of doomed) pass.doom(this.#refusal(retryAfterMs, 'queue', pass.model));
    return doomed;
  }

  #report(changes: readonly BreakerChange[], doomed: readonly RevocablePass[], request?: AcquireRequest): void {
    this.#watch();
    for (const { from, to, reason } of changes) {
      const fact: SluiceFact = { type: 'breaker.changed', breaker: this.#name, from, to, reason };
      tell(this.#onFact, fact);
      tell(request?.onFact, fact);
    }
    for (const pass of doomed) pass.revoke();
  }

  #refusal(retryAfterMs: number, stage: 'entry' | 'queue', model: string | undefined): SluiceError {
    const message = `the circuit breaker ${this.#name} is ${this.snapshot().state.replace('_', '-')}`;
    return new SluiceError('circuit_open', message, { retryAfterMs, model, while: stage });
  }

  /** A stuck probe that has not been sent stands in some queue: it must be taken back even if nobody asks. */
  #watch(): void {
    const atMs = this.#unsent.size > 0 ? this.#machine.stuckAtMs : undefined;
    // Stryker disable next-line ConditionalExpression: it only spares a timer
    if (atMs === this.#timerAtMs) return;
    this.#stopTimer?.();
    this.#timerAtMs = atMs;
    if (atMs === undefined) return;
    this.#stopTimer = startTimer(this.#runtime, atMs - this.#runtime.clock.now(), () => {
      this.#timerAtMs = undefined;
      const changes = this.#machine.advance();
      this.#report(changes, this.#doom(changes));
    });
  }
}

function tell(listener: ((fact: SluiceFact) => void) | undefined, fact: SluiceFact): void {
  try {
    // Stryker disable next-line OptionalChaining: it would be caught
    listener?.(fact);
  } catch {
    // A listener's fault is its own.
  }
}
