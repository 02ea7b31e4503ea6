import type { BreakerState } from '../../core/events.ts';
import type { BreakerSnapshot } from '../../core/ports.ts';
import type { CheckedBreakerOptions } from '../../limits/breakerRules.ts';
import type { BreakerCourse } from '../../limits/CircuitBreaker.ts';
import { CLOSED, HALF_OPEN, OPEN, RAMPING, STATES } from './BreakerCall.ts';
import type { BreakerReply } from './BreakerCall.ts';

/** What a process decides by itself. */
export type OwnDecision = 'pass' | 'ask' | 'refuse';

/** What a process last heard of a shared breaker, and what it decides by itself while that is fresh. */
export class BreakerView {
  readonly #freshMs: number;
  #heard: BreakerReply | undefined;
  #heardAtMs = -Infinity;
  #credit = 0;
  #inFlight = 0;

  constructor(freshMs: number) {
    this.#freshMs = freshMs;
  }

  get epoch(): number {
    return this.#heard?.epoch ?? 0;
  }

  /** When it is not fresh any more. */
  get staleAtMs(): number {
    return this.#heardAtMs + this.#freshMs;
  }

  /** Nobody is let pass but as a probe. */
  get failing(): boolean {
    return this.#heard?.state === OPEN || this.#heard?.state === HALF_OPEN;
  }

  hear(reply: BreakerReply, nowMs: number): void {
    if (reply.epoch !== this.epoch) this.#credit = this.#inFlight = 0;
    this.#heard = reply;
    this.#heardAtMs = nowMs;
  }

  forget(): void {
    this.#heard = undefined;
    this.#heardAtMs = -Infinity;
  }

  /** Whether one may go. Open is open until its time is over; all else is asked for anew after a while. */
  decide(nowMs: number, options: CheckedBreakerOptions): OwnDecision {
    const heard = this.#heard;
    if (heard?.state === OPEN && this.leftMs(nowMs) > 0) return 'refuse';
    if (heard === undefined || this.failing || nowMs >= this.staleAtMs) return 'ask';
    return this.decideFresh(nowMs, options);
  }

  /** As far as it is known, whatever its age: it has just been asked for. */
  decideFresh(nowMs: number, { halfOpenShare, rampMs }: CheckedBreakerOptions): 'pass' | 'refuse' {
    if (this.failing) return 'refuse';
    if (this.#heard?.state === RAMPING) {
      const ramped = rampMs > 0 ? 1 - Math.min(1, this.leftMs(nowMs) / rampMs) : 1;
      this.#credit = Math.min(1, this.#credit) + halfOpenShare + (1 - halfOpenShare) * ramped;
      // Ten tenths fall short of one by a rounding error.
      if (this.#credit <= 1 - 1e-9 && this.#inFlight > 0) return 'refuse';
      this.#credit = Math.max(0, this.#credit - 1);
    }
    this.#inFlight++;
    return 'pass';
  }

  /** One that it let pass has ended. */
  ended(epoch: number, neutral: boolean): void {
    if (epoch !== this.epoch) return;
    this.#inFlight--;
    if (neutral) this.#credit++;
  }

  /** Until one may ask again, or the ramp is over. */
  leftMs(nowMs: number): number {
    return Math.max(0, (this.#heard?.leftUs ?? 0) / 1000 - (nowMs - this.#heardAtMs));
  }

  course(nowMs: number): BreakerCourse {
    const { state = CLOSED, growths = 0, failedProbes = 0 } = this.#heard ?? {};
    return { state: stateOf(state), leftMs: this.#heard ? this.leftMs(nowMs) : 0, growths, failedProbes };
  }

  snapshot(nowMs: number): BreakerSnapshot {
    const { state = CLOSED, consecutiveFailures = 0, calls = 0, failures = 0 } = this.#heard ?? {};
    const leftMs = this.#heard ? this.leftMs(nowMs) : 0;
    return {
      state: state === RAMPING && leftMs === 0 ? 'closed' : stateOf(state),
      retryAfterMs: state === OPEN ? leftMs : 0,
      consecutiveFailures,
      calls,
      failures,
    };
  }
}

export function stateOf(state: number): BreakerState {
  return STATES[state] ?? 'closed';
}
