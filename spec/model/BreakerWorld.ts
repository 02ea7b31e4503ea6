import { SluiceError } from '../../lib/core/errors.ts';
import type { BreakerState } from '../../lib/core/events.ts';
import { DROPPED, SUCCESS } from '../../lib/core/outcome.ts';
import type { Outcome } from '../../lib/core/outcome.ts';
import type { CircuitBreakerOptions } from '../../lib/limits/breakerRules.ts';
import { CircuitBreaker } from '../../lib/limits/CircuitBreaker.ts';
import type { BreakerChange, BreakerChangeReason, BreakerTicket } from '../../lib/limits/CircuitBreaker.ts';
import type { Deed, World } from './explore.ts';
import { ModelClock, must } from './rules.ts';

interface Call {
  readonly ticket: BreakerTicket;
  content: boolean;
}

/** Time goes on in steps that fall together with those of the window. */
const STEP_MS = 6;

const RULES = {
  consecutiveFailures: 2,
  errorRatio: 0.5,
  minCalls: 3,
  windowMs: 20,
  openMs: STEP_MS,
  openFactor: 2,
  openCapMs: 2 * STEP_MS,
  steadyProbes: 1,
  halfOpenShare: 0.5,
  halfOpenMaxProbes: 1,
  halfOpenMaxMs: 2 * STEP_MS,
  rampMs: 2 * STEP_MS,
} as const satisfies CircuitBreakerOptions;
export const BRITTLE: CircuitBreakerOptions = RULES;

const REASONS: ReadonlyMap<string, readonly BreakerChangeReason[]> = new Map([
  ['closed to open', ['consecutive_failures', 'error_ratio']],
  ['ramping to open', ['consecutive_failures', 'error_ratio']],
  ['open to half_open', ['open_time_over']],
  ['half_open to open', ['probe_failed', 'probe_stuck']],
  ['half_open to ramping', ['probe_succeeded']],
  ['ramping to closed', ['ramp_over']],
]);

const FAILED: Outcome = { kind: 'failure', error: new SluiceError('server_error', 'failed') };
const ENDS: readonly [string, Outcome][] = [
  ['succeeds', SUCCESS],
  ['fails', FAILED],
  ['is cancelled', DROPPED],
];

/** Calls that ask a breaker, and succeed, fail or are cancelled, with or without content before, at any time. */
export class BreakerWorld implements World {
  readonly #clock = new ModelClock();
  readonly #breaker: CircuitBreaker;
  #asks: number;
  /** Those that were let through and have not ended, the oldest first. */
  readonly #calls: Call[] = [];
  #state: BreakerState = 'closed';
  #epoch = 0;
  #openedAtMs = -Infinity;
  #retryAtMs = Infinity;
  #closedAtMs = -Infinity;
  #failedAtMs = -Infinity;
  /** What counts in the window. */
  #counted: { readonly atMs: number; readonly failed: boolean }[] = [];
  /** What its share of the traffic has seen since the epoch began. */
  #shared: string[] = [];

  constructor(asks: number, make: (clock: ModelClock) => CircuitBreaker = breakerOf) {
    this.#asks = asks;
    this.#breaker = make(this.#clock);
  }

  deeds(): readonly Deed[] {
    const deeds: Deed[] = [];
    if (this.#asks > 0) deeds.push(['asks', () => this.#ask()]);
    this.#calls.forEach((call, at) => {
      deeds.push([`${at + 1} has content`, () => this.#content(call)]);
      for (const [name, outcome] of ENDS) deeds.push([`${at + 1} ${name}`, () => this.#settle(call, outcome)]);
    });
    deeds.push(['time passes', () => this.#pass()]);
    return deeds;
  }

  key(): string {
    const { growths, failedProbes, leftMs } = this.#breaker.course;
    const { consecutiveFailures } = this.#breaker.snapshot();
    const sharing = this.#state === 'half_open' || this.#state === 'ramping';
    const calls = this.#calls.map(({ ticket, content }) => {
      if (ticket.epoch !== this.#epoch) return 'late';
      if (this.#state !== 'half_open') return 'runs';
      return content ? 'content' : this.#ageMs(ticket.atMs);
    });
    return [
      ...[this.#asks, this.#state, leftMs, Math.min(growths, 2), Math.min(failedProbes, 2), consecutiveFailures],
      this.#counted
        .map(({ atMs, failed }) => `${this.#ageMs(atMs)}${failed ? 'x' : ''}`)
        .filter((age) => age !== 'old'),
      ...[this.#ageMs(this.#closedAtMs), this.#ageMs(this.#failedAtMs), calls.sort(), sharing ? this.#shared : []],
    ].join(' ');
  }

  wrong(): string | undefined {
    const probing = this.#calls.filter(({ ticket, content }) => ticket.epoch === this.#epoch && !content).length;
    if (this.#state === 'half_open' && probing > RULES.halfOpenMaxProbes) return `${probing} probes at once`;
    return this.#breaker.state === this.#state ? undefined : `is ${this.#breaker.state}, and told of ${this.#state}`;
  }

  ended(): boolean {
    return this.#asks === 0 && this.#calls.length === 0;
  }

  #ageMs(atMs: number): number | 'old' {
    const ageMs = this.#clock.nowMs - atMs;
    return ageMs > RULES.windowMs ? 'old' : ageMs;
  }

  #ask(): unknown {
    this.#asks--;
    const before = this.#state;
    const decision = this.#breaker.ask();
    this.#follow(decision.changes);
    this.#shared.push(decision.kind);
    if (decision.kind === 'pass') {
      must(this.#state !== 'open', 'passes while open');
      this.#epoch = decision.ticket.epoch;
      this.#calls.push({ ticket: decision.ticket, content: false });
      return 'pass';
    }
    const { retryAfterMs } = decision;
    must(this.#state !== 'closed', 'refuses while closed');
    must(retryAfterMs > 0 && retryAfterMs < Infinity, `is told to wait ${retryAfterMs} ms`);
    if (this.#state === 'open') {
      must(before !== 'open' || this.#clock.nowMs < this.#retryAtMs, 'is told to wait again, after it had waited');
      this.#retryAtMs = this.#clock.nowMs + retryAfterMs;
    } else {
      const inFlight = this.#calls.some(({ ticket }) => ticket.epoch === this.#epoch);
      must(inFlight, 'refuses though none of its own is in flight');
    }
    return retryAfterMs;
  }

  #content(call: Call): unknown {
    call.content = true;
    this.#breaker.firstContent(call.ticket);
    return 'content';
  }

  #settle(call: Call, outcome: Outcome): unknown {
    this.#calls.splice(this.#calls.indexOf(call), 1);
    this.#follow(this.#breaker.advance());
    const ofNow = call.ticket.epoch === this.#epoch;
    const changes = this.#breaker.settle(call.ticket, outcome);
    must(ofNow || changes.length === 0, 'the end of a call of an earlier epoch changes the state');
    must(outcome.kind !== 'dropped' || changes.length === 0, 'a cancel changes the state');
    const reasons = changes.map(({ reason }) => reason);
    if (this.#state === 'half_open' && ofNow && outcome.kind !== 'dropped') {
      const due = outcome.kind === 'success' ? 'probe_succeeded' : 'probe_failed';
      must(reasons.join() === due, `${due} is due, and ${reasons.join()} came`);
    }
    if (ofNow && outcome.kind === 'dropped') this.#shared.push('back');
    if (ofNow && outcome.kind !== 'dropped' && this.#state !== 'half_open') {
      const failed = outcome.kind === 'failure';
      this.#counted.push({ atMs: this.#clock.nowMs, failed });
      if (failed) this.#failedAtMs = this.#clock.nowMs;
    }
    this.#follow(changes);
    must(this.#breaker.settle(call.ticket, FAILED).length === 0, 'a call ends twice');
    return reasons;
  }

  #pass(): unknown {
    this.#clock.nowMs += STEP_MS;
    if (this.#state === 'ramping') this.#shared.push('time');
    const looked = this.#breaker.snapshot().state;
    const changes = this.#breaker.advance();
    this.#follow(changes);
    const stuck = changes.some(({ reason }) => reason === 'probe_stuck');
    must(looked === this.#state || stuck, `looks ${looked}, and is ${this.#state}`);
    return this.#state;
  }

  #follow(changes: readonly BreakerChange[]): void {
    for (const { from, to, reason } of changes) {
      must(from === this.#state, `changes from ${from}, and was ${this.#state}`);
      must(REASONS.get(`${from} to ${to}`)?.includes(reason) ?? false, `changes from ${from} to ${to} by ${reason}`);
      this.#state = to;
      // A ramp and the closed state after it are one epoch.
      if (reason !== 'ramp_over') {
        this.#epoch++;
        this.#shared = [];
      }
      if (reason === 'probe_succeeded') {
        this.#closedAtMs = this.#clock.nowMs;
        this.#counted = [];
      }
      if (to === 'open') {
        this.#openedAtMs = this.#clock.nowMs;
        this.#retryAtMs = Infinity;
      }
      if (to === 'half_open') {
        const openForMs = this.#clock.nowMs - this.#openedAtMs;
        must(reason !== 'open_time_over' || openForMs >= RULES.openMs, `probes after ${openForMs} ms`);
      }
    }
  }
}

export function breakerOf(clock: ModelClock): CircuitBreaker {
  return new CircuitBreaker(RULES, clock);
}
