import type { Between } from './BetweenRejections.ts';
import type { ProbePace } from './ProbePace.ts';

const MINUTE_MS = 60_000;
/** No one measurement is believed below this part of the last. */
const FURTHEST = 0.35;
/** Two measurements this close are one and the same rate. */
const AGREE = 0.07;
/** Part of all requests that may be rejected by probing. */
const PROBED_SHARE = 0.007;
const LONGEST_PROBE_MS = 120_000;
/** An estimate that may be off by a part of `spread` is probed within this, over `spread`. */
const PROBE_MS = 300;
const LEAST_SPREAD = 0.012;
/** Below this a rejection is a large part of the traffic: it is probed rarely, from what got through for certain. */
const SLOW_PER_MINUTE = 330;
const SLOW_PROBE_MS = 28_000;
const SLOW_SPREAD = 0.07;
/** By then a slow provider is probed rarely, whatever is known. */
const SEARCH_MS = 6000;
const SEARCHING: ProbePace = { spread: 0.04, overMs: 500, doublesMs: 800, holds: false };
/** A rate that held before a fall is gone back to for so long, at first often, then as rarely as it has been gone. */
const REMEMBERED_MS = 60_000;
const LOOK_BACK = 0.4;

interface Held {
  readonly perMinute: number;
  readonly untilMs: number;
}

/**
 * An estimate of a provider's rate, and how to probe it. Per minute. Pure: times are passed in.
 *
 * What is measured is compared with bounds that are not sharp: on which side a bound itself falls matters nowhere here.
 */
export class RateSearch {
  /** A rate that held until then. */
  #before: Held | undefined;
  readonly #fromMs: number;
  #estimate: number;
  #pace: ProbePace = SEARCHING;
  /** What got through for certain. */
  #least = 0;
  #searching = true;
  /** Two measurements have agreed. */
  #sure = false;
  /** How often a guess was made between what passed and what did not. */
  #guesses = 0;

  constructor(nowMs: number, estimate: number, before: number | undefined) {
    this.#fromMs = nowMs;
    this.#estimate = estimate;
    // Stryker disable next-line ConditionalExpression: no rate is never remembered
    if (before !== undefined) this.#before = { perMinute: before, untilMs: nowMs };
  }

  get estimate(): number {
    return this.#estimate;
  }

  get pace(): ProbePace {
    return this.#pace;
  }

  get slow(): boolean {
    return this.#estimate < SLOW_PER_MINUTE;
  }

  /** The rate that may soon be back. */
  remembered(nowMs: number): number | undefined {
    const before = this.#before;
    if (before === undefined || nowMs - before.untilMs >= REMEMBERED_MS) return undefined;
    const fell = before.perMinute >= SLOW_PER_MINUTE && this.#estimate < 0.9 * before.perMinute;
    return fell ? before.perMinute : undefined;
  }

  guess(perMinute: number): void {
    this.#estimate = perMinute;
  }

  /** It had not got past a debt: only now it is known that no more than `most` comes in. */
  afterDebt(most: number): void {
    this.#estimate = Math.max(0.6 * this.#estimate, most);
  }

  /** It is as it was before the fall. */
  returned(perMinute: number): void {
    this.#before = undefined;
    this.#searching = false;
    this.#estimate = perMinute;
    this.#least = 0.97 * perMinute;
    this.#pace = { spread: 0.02, overMs: 7000, doublesMs: 1000, holds: false };
  }

  /** What passed before tells nothing: measure again soon. */
  again(): void {
    this.#pace = { spread: 0.04, overMs: 2000, doublesMs: 1000, holds: false };
  }

  /** Too few passed to tell more than that the rate is lower. `first`: of such. */
  tooFew(nowMs: number, { passed, refused, overMs }: Between, first: boolean): void {
    const before = this.#estimate;
    const most = ((passed + refused + 1) * MINUTE_MS) / overMs;
    this.#least *= 0.9;
    const furthest = passed < 2 && first ? 0.85 : 0.6;
    this.#estimate = Math.min(before, Math.max(furthest * before, most, this.#least));
    this.#fall(nowMs, before);
  }

  /** Enough passed to measure by. `set`: the rate as the rejection came. */
  measured(nowMs: number, between: Between, set: number): void {
    const before = this.#estimate;
    const { passed } = between;
    const seen = rateOf(between);
    const tolerance = AGREE + 1 / passed;
    if (seen < before * (1 - tolerance)) this.#fall(nowMs, before);
    this.#sure = Math.abs(seen / before - 1) < tolerance;
    const certain = seen * (1 - 0.7 / passed);
    // What got through once was there: only a change of the rate makes it less.
    const changed = seen < 0.8 * this.#least;
    this.#least = changed ? Math.max(certain, FURTHEST * before) : Math.max(certain, 0.98 * this.#least);
    const slow = this.#rarely(nowMs, this.#least);
    const grown = Math.min(1.6, set / this.#least) - 1;
    // Where the rate has grown far the bucket over there may have run over meanwhile: the truth lies between.
    if (slow && grown > 0) this.#estimate = this.#least * (1 + 0.4 * grown);
    else if (this.#searching && !this.#sure && grown > 0.12) {
      const far = grown * 0.6 ** this.#guesses++;
      this.#estimate = this.#least * (1 + 0.3 * far);
      this.#settle(slow, far / 3, passed);
      return;
    } else this.#estimate = Math.max(seen, this.#least);
    this.#settle(slow, 0, passed);
  }

  /** After each rejection. `cluster`: as many came with it. Probes no more often than that can be afforded. */
  stretch(nowMs: number, cluster: number): void {
    const before = this.#before;
    if (before && this.remembered(nowMs) !== undefined) {
      const overMs = Math.max(800, LOOK_BACK * (nowMs - before.untilMs));
      this.#pace = { spread: 0.05, overMs, doublesMs: 500, holds: false };
    } else if (!this.#searching) {
      const leastMs = Math.min(LONGEST_PROBE_MS, ((cluster / PROBED_SHARE) * MINUTE_MS) / this.#estimate);
      if (leastMs > this.#pace.overMs) this.#pace = { ...this.#pace, overMs: leastMs };
    }
  }

  #settle(slow: boolean, width: number, passed: number): void {
    const spread = Math.max(LEAST_SPREAD, width, 0.7 / passed);
    this.#searching = !slow && spread > 0.06;
    this.#pace = slow
      ? this.#held()
      : { spread: Math.min(0.08, spread), overMs: PROBE_MS / spread, doublesMs: 1200, holds: false };
  }

  #fall(nowMs: number, before: number): void {
    if (this.#sure && this.remembered(nowMs) === undefined) this.#before = { perMinute: before, untilMs: nowMs };
    if (!this.#searching) this.#guesses = 0;
    this.#sure = false;
    this.#searching = !this.#rarely(nowMs, this.#estimate);
    this.#pace = this.#searching ? SEARCHING : this.#held();
  }

  #held(): ProbePace {
    const certain = this.#least > 0 ? (0.99 * this.#least) / this.#estimate : 1;
    const spread = 1 - Math.min(1 - SLOW_SPREAD, certain);
    return { spread, overMs: SLOW_PROBE_MS, doublesMs: 3000, holds: true };
  }

  #rarely(nowMs: number, perMinute: number): boolean {
    if (this.remembered(nowMs) !== undefined) return false;
    return perMinute < SLOW_PER_MINUTE && nowMs - this.#fromMs > SEARCH_MS;
  }
}

/** With half of what was refused in between: providers count it, or do not. */
function rateOf({ passed, refused, overMs }: Between): number {
  return ((passed + Math.min(refused / 2, 0.02 * passed)) * MINUTE_MS) / overMs;
}
