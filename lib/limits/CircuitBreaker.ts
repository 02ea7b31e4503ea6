import type { BreakerState } from '../core/events.ts';
import type { Outcome } from '../core/outcome.ts';
import type { BreakerSnapshot } from '../core/ports.ts';
import type { Clock } from '../core/runtime.ts';
import { checkBreakerOptions, judge } from './breakerRules.ts';
import type { CheckedBreakerOptions, CircuitBreakerOptions } from './breakerRules.ts';
import { SlidingSums } from './SlidingSums.ts';

export type BreakerChangeReason =
  | 'consecutive_failures'
  | 'error_ratio'
  | 'open_time_over'
  | 'probe_failed'
  /** A probe had neither content nor an end after `halfOpenMaxMs`. */
  | 'probe_stuck'
  | 'probe_succeeded'
  | 'ramp_over';

export interface BreakerChange {
  readonly from: BreakerState;
  readonly to: BreakerState;
  readonly reason: BreakerChangeReason;
}

/** Leave to try. Settle it once. */
export interface BreakerTicket {
  /** Results of an earlier epoch are ignored. */
  readonly epoch: number;
  readonly atMs: number;
  settled: boolean;
}

/** Where a breaker stands, for another one that goes on from there. */
export interface BreakerCourse {
  readonly state: BreakerState;
  /** Until a probe may go; while ramping until the ramp is over; else 0. */
  readonly leftMs: number;
  readonly growths: number;
  readonly failedProbes: number;
}

export type BreakerDecision =
  | { readonly kind: 'pass'; readonly ticket: BreakerTicket; readonly changes: readonly BreakerChange[] }
  /** `retryAfterMs` is finite and above 0. */
  | { readonly kind: 'refused'; readonly retryAfterMs: number; readonly changes: readonly BreakerChange[] };

/**
 * A circuit breaker that decides and never acts: no timers, no listeners. It reads the clock once per call; what time
 * alone changes, such as the end of a ramp, it notices when it is next asked.
 *
 * ```text
 * closed --failures--> open --openMs--> half_open --success--> ramping --rampMs--> closed
 *    ^                  ^ ^                |                      |
 *    |                  | +--failed, stuck-+                      |
 *    |                  +-------------------------------failures--+
 * ```
 *
 * - Each change to open, half_open and out of half_open begins an epoch; a ramp and the closed state after it are one.
 * - Half-open and ramping let a share of the traffic through, evenly, and always one when none of the epoch is in flight.
 * - A probe that has content is no longer stuck, and its place is free; its verdict still comes with its end.
 * - A verdict that is neither success nor a failure that counts gives the place back and changes nothing else.
 */
export class CircuitBreaker {
  #options: CheckedBreakerOptions;
  readonly #clock: Pick<Clock, 'now'>;
  #window: SlidingSums;
  /** Probes without content, the oldest first. */
  readonly #probes = new Set<BreakerTicket>();
  #state: BreakerState = 'closed';
  #epoch = 0;
  #inFlight = 0;
  /** What the share of traffic has earned; a whole one lets a call through. */
  #credit = 0;
  #consecutiveFailures = 0;
  #lastFailureAtMs = -Infinity;
  /** How often the open time has grown, and how many probes have failed, since the breaker was last stable. */
  #growths = 0;
  #failedProbes = 0;
  #openForMs = 0;
  #openUntilMs = -Infinity;
  #closedAtMs = -Infinity;

  /** @throws SluiceError `invalid_option` */
  constructor(options: CircuitBreakerOptions, clock: Pick<Clock, 'now'>) {
    this.#options = checkBreakerOptions(options);
    this.#clock = clock;
    this.#window = new SlidingSums(this.#options.windowMs);
  }

  /** Takes other rules, from the next event on. What it has seen, its state and how long it stays open are kept. */
  reload(options: CircuitBreakerOptions): void {
    const next = checkBreakerOptions(options);
    if (next.windowMs !== this.#options.windowMs) {
      const nowMs = this.#clock.now();
      const window = new SlidingSums(next.windowMs);
      window.add(nowMs, this.#window.first(nowMs), this.#window.second(nowMs));
      this.#window = window;
    }
    this.#options = next;
  }

  /** Goes on from where another one stands. */
  resume({ state, leftMs, growths, failedProbes }: BreakerCourse): void {
    const nowMs = this.#clock.now();
    this.#newEpoch();
    this.#state = state;
    this.#growths = growths;
    this.#failedProbes = failedProbes;
    this.#openForMs = leftMs;
    this.#openUntilMs = nowMs + leftMs;
    if (state === 'ramping') this.#closedAtMs = nowMs + leftMs - this.#options.rampMs;
  }

  get course(): BreakerCourse {
    const nowMs = this.#clock.now();
    const endMs = {
      open: this.#openUntilMs,
      ramping: this.#closedAtMs + this.#options.rampMs,
      closed: 0,
      half_open: 0,
    };
    const leftMs = Math.max(0, endMs[this.#state] - nowMs);
    return { state: this.#state, leftMs, growths: this.#growths, failedProbes: this.#failedProbes };
  }

  /** Counts an attempt as one of its own that another one has let pass. */
  join(): BreakerTicket {
    const ticket: BreakerTicket = { epoch: this.#epoch, atMs: this.#clock.now(), settled: false };
    this.#inFlight++;
    if (this.#state === 'half_open') this.#probes.add(ticket);
    return ticket;
  }

  /** Asks for leave to try once. */
  ask(): BreakerDecision {
    const nowMs = this.#clock.now();
    const changes: BreakerChange[] = [];
    this.#pass(nowMs, changes);
    if (this.#state === 'open' && nowMs >= this.#openUntilMs) this.#halfOpen(changes);
    if (!this.#admits(nowMs)) return { kind: 'refused', retryAfterMs: this.#retryAfterMs(nowMs), changes };
    return { kind: 'pass', ticket: this.join(), changes };
  }

  /** The first content has come. */
  firstContent(ticket: BreakerTicket): void {
    this.#probes.delete(ticket);
  }

  /** Says how an attempt ended. Only the first time counts. */
  settle(ticket: BreakerTicket, outcome: Outcome): readonly BreakerChange[] {
    const nowMs = this.#clock.now();
    const changes: BreakerChange[] = [];
    this.#pass(nowMs, changes);
    if (ticket.settled) return changes;
    ticket.settled = true;
    if (ticket.epoch !== this.#epoch) return changes;
    this.#inFlight--;
    this.#probes.delete(ticket);
    const verdict = judge(outcome, this.#options.countRateLimited);
    if (verdict === 'neutral') this.#credit++;
    else if (this.#state === 'half_open') this.#judgeProbe(verdict, nowMs, changes);
    else this.#count(verdict, nowMs, changes);
    return changes;
  }

  /** Makes the changes that time alone brings. */
  advance(): readonly BreakerChange[] {
    const changes: BreakerChange[] = [];
    this.#pass(this.#clock.now(), changes);
    return changes;
  }

  /** As of the last change: time may have ended a ramp or an open time since. */
  get state(): BreakerState {
    return this.#state;
  }

  /** Whole milliseconds until {@link ask} may let a probe through; 0 unless open. Changes nothing. */
  get openMs(): number {
    return this.#state === 'open' ? Math.max(0, Math.ceil(this.#openUntilMs - this.#clock.now())) : 0;
  }

  /** When {@link advance} will find a stuck probe, if none of the probes gets on. */
  get stuckAtMs(): number | undefined {
    if (this.#probes.size === 0) return undefined;
    const [oldest] = this.#probes;
    return oldest && oldest.atMs + this.#options.halfOpenMaxMs;
  }

  /** Changes nothing, so that looking at a breaker never moves it. */
  snapshot(): BreakerSnapshot {
    const nowMs = this.#clock.now();
    const stale = nowMs - this.#lastFailureAtMs > this.#options.windowMs;
    const rampOver = this.#state === 'ramping' && nowMs >= this.#closedAtMs + this.#options.rampMs;
    return {
      state: rampOver ? 'closed' : this.#state,
      retryAfterMs: this.#state === 'open' ? Math.max(0, this.#openUntilMs - nowMs) : 0,
      consecutiveFailures: stale ? 0 : this.#consecutiveFailures,
      calls: this.#window.first(nowMs),
      failures: this.#window.second(nowMs),
    };
  }

  /** Whether a new one can take its place: there is no trouble that it would have to find out about again. */
  get atRest(): boolean {
    const nowMs = this.#clock.now();
    const { state, failures, consecutiveFailures } = this.snapshot();
    const stable = state === 'closed' && nowMs - this.#closedAtMs >= this.#options.windowMs;
    return stable && failures === 0 && consecutiveFailures === 0 && this.#inFlight === 0;
  }

  #pass(nowMs: number, changes: BreakerChange[]): void {
    const { stuckAtMs } = this;
    // Reckoned from when the probe got stuck, so that it does not matter when that is noticed.
    if (stuckAtMs !== undefined && nowMs >= stuckAtMs) this.#open(stuckAtMs, 'probe_stuck', changes);
    if (this.#state === 'ramping' && nowMs >= this.#closedAtMs + this.#options.rampMs) {
      this.#change('closed', 'ramp_over', changes);
    }
  }

  #admits(nowMs: number): boolean {
    if (this.#state === 'closed') return true;
    if (this.#state === 'open') return false;
    const { halfOpenShare, halfOpenMaxProbes, rampMs } = this.#options;
    const ramped = this.#state === 'ramping' ? (nowMs - this.#closedAtMs) / rampMs : 0;
    // What was refused for want of a place is not saved up; what is left over from a share is.
    this.#credit = Math.min(1, this.#credit) + halfOpenShare + (1 - halfOpenShare) * ramped;
    // Ten tenths fall short of one by a rounding error.
    const earned = this.#credit > 1 - 1e-9 && this.#probes.size < halfOpenMaxProbes;
    if (!earned && this.#inFlight > 0) return false;
    this.#credit = Math.max(0, this.#credit - 1);
    return true;
  }

  #retryAfterMs(nowMs: number): number {
    if (this.#state === 'open') return Math.ceil(this.#openUntilMs - nowMs);
    if (this.#state === 'ramping') return Math.ceil(this.#closedAtMs + this.#options.rampMs - nowMs);
    const stuckInMs = (this.stuckAtMs ?? Infinity) - nowMs;
    return Math.max(1, Math.ceil(Math.min(stuckInMs, this.#openForMs)));
  }

  #judgeProbe(verdict: 'success' | 'failure', nowMs: number, changes: BreakerChange[]): void {
    if (verdict === 'failure') {
      this.#open(nowMs, 'probe_failed', changes);
      return;
    }
    this.#newEpoch();
    this.#closedAtMs = nowMs;
    this.#consecutiveFailures = 0;
    this.#window.clear();
    this.#change(this.#options.rampMs > 0 ? 'ramping' : 'closed', 'probe_succeeded', changes);
  }

  #count(verdict: 'success' | 'failure', nowMs: number, changes: BreakerChange[]): void {
    const { consecutiveFailures, errorRatio, minCalls, windowMs } = this.#options;
    const failed = verdict === 'failure';
    this.#window.add(nowMs, 1, failed ? 1 : 0);
    if (!failed) {
      this.#consecutiveFailures = 0;
      return;
    }
    // Failures further apart than the window say nothing about now.
    if (nowMs - this.#lastFailureAtMs > windowMs) this.#consecutiveFailures = 0;
    this.#lastFailureAtMs = nowMs;
    this.#consecutiveFailures++;
    const calls = this.#window.first(nowMs);
    if (this.#consecutiveFailures >= consecutiveFailures) this.#open(nowMs, 'consecutive_failures', changes);
    else if (calls >= minCalls && this.#window.second(nowMs) >= errorRatio * calls) {
      this.#open(nowMs, 'error_ratio', changes);
    }
  }

  #open(atMs: number, reason: BreakerChangeReason, changes: BreakerChange[]): void {
    const { openMs, openFactor, openCapMs, steadyProbes, windowMs } = this.#options;
    const wasStable = this.#state !== 'half_open' && atMs - this.#closedAtMs >= windowMs;
    if (wasStable) this.#growths = this.#failedProbes = 0;
    else if (reason !== 'probe_failed' || ++this.#failedProbes > steadyProbes) this.#growths++;
    this.#openForMs = Math.min(openCapMs, openMs * openFactor ** this.#growths);
    this.#openUntilMs = atMs + this.#openForMs;
    this.#newEpoch();
    this.#change('open', reason, changes);
  }

  #halfOpen(changes: BreakerChange[]): void {
    this.#newEpoch();
    this.#change('half_open', 'open_time_over', changes);
  }

  #newEpoch(): void {
    this.#epoch++;
    this.#inFlight = 0;
    this.#credit = 0;
    this.#probes.clear();
  }

  #change(to: BreakerState, reason: BreakerChangeReason, changes: BreakerChange[]): void {
    changes.push({ from: this.#state, to, reason });
    this.#state = to;
  }
}
