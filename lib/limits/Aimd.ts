import { positiveOrInfinity, wholeNumber, zeroOrMore } from '../core/checks.ts';
import { invalidOption } from '../core/errors.ts';
import type { Outcome } from '../core/outcome.ts';
import type { Clock } from '../core/runtime.ts';
import { SlidingSums } from './SlidingSums.ts';

export interface AimdOptions {
  /** Where the limit starts. Default: 16, brought between `min` and `max`. */
  readonly initial?: number | undefined;
  /** The limit never falls below. Default: 4, or what `initial` or `max` is if that is less. */
  readonly min?: number | undefined;
  /** The limit never rises above. Default: 64, or what `initial` or `min` is if that is more. */
  readonly max?: number | undefined;
  /** A cut multiplies the limit by this. Above 0, below 1. Default: 0.7. */
  readonly decrease?: number | undefined;
  /** The limit grows by one at most this often, and not for so long after a cut. Default: 1,000. */
  readonly growEveryMs?: number | undefined;
  /**
   * The limit does not grow beyond this many times the concurrency measured. 1 or more; `Infinity` turns it off.
   * Default: 1.2.
   */
  readonly maxOverMeasured?: number | undefined;
  /** The limit is cut when first content takes longer than this on average. Default: `Infinity`, off. */
  readonly maxFirstContentMs?: number | undefined;
}

export const AIMD_DEFAULTS: { readonly [K in keyof AimdOptions]-?: number } = {
  initial: 16,
  min: 4,
  max: 64,
  decrease: 0.7,
  growEveryMs: 1000,
  maxOverMeasured: 1.2,
  maxFirstContentMs: Infinity as number,
};

/** What is remembered of an attempt while it runs. */
export interface AimdMark {
  readonly atMs: number;
  /** Cuts made before it started. */
  readonly cuts: number;
  /** Its number, counted over all attempts. */
  readonly start: number;
}

export type AimdDecision =
  | {
      readonly kind: 'changed';
      readonly from: number;
      readonly to: number;
      /** `adjusted`: set from outside. */
      readonly reason: 'success' | 'rejected' | 'first_content' | 'adjusted';
    }
  | {
      readonly kind: 'kept';
      /**
       * `neutral`: says nothing about the limit. `before_cut`: started before the last cut. `at_min`, `at_max`: it ends
       * there. `app_limited`: the limit was not reached. `gaining`: a part of a step was earned. `too_soon`: the last
       * change is too recent. `measured`: what is carried does not bear it out.
       */
      readonly reason:
        'neutral' | 'before_cut' | 'at_min' | 'at_max' | 'app_limited' | 'gaining' | 'too_soon' | 'measured';
    };

const MEASURED_OVER_MS = 30_000;
/** Weight of a new time to first content in its moving average, and how many it takes to believe that. */
const SMOOTHING = 0.2;
const BELIEVED_FROM = 5;

/**
 * A concurrency limit that finds its size: additive increase, multiplicative decrease. It counts nothing by itself; who
 * holds the slots tells it of each start and end.
 *
 * - Each success earns one `limit`-th of a step, so one step is earned a round trip, and only if the limit was reached
 *   while the attempt ran.
 * - A rejection (`rate_limited`, `overloaded`) cuts. An attempt that started before the last cut never cuts again, so one
 *   moment of congestion is one cut however many fail in it.
 * - Total duration is no signal: long answers are not congestion. Time to first content is, if `maxFirstContentMs` is set.
 * - Growth is bounded by what is carried: by Little's law, rate times time in flight of the successes of the last 30 s
 *   is the concurrency that did useful work.
 */
export class Aimd {
  readonly #clock: Pick<Clock, 'now'>;
  #rules: CheckedAimdOptions;
  /** Milliseconds in flight of attempts that succeeded. */
  readonly #carried = new SlidingSums(MEASURED_OVER_MS);
  #limit: number;
  #earned = 0;
  #cuts = 0;
  #starts = 0;
  /** Number of the last start that reached the limit as it is now. */
  #reachedAtStart = 0;
  #changedAtMs = -Infinity;
  #firstStartAtMs = Infinity;
  #firstContentMs = 0;
  #firstContents = 0;

  /** @throws SluiceError `invalid_option` */
  constructor(options: AimdOptions, clock: Pick<Clock, 'now'>) {
    this.#rules = checked(options);
    this.#limit = this.#rules.initial;
    this.#clock = clock;
  }

  /** Takes other rules. The limit stays, as far as it lies between the new `min` and `max`. */
  reload(options: AimdOptions): void {
    this.#rules = checked(options);
    const { min, max } = this.#rules;
    const limit = Math.min(max, Math.max(min, this.#limit));
    if (limit !== this.#limit) this.#set(limit, this.#clock.now());
  }

  /** Whether the limit is where it began. */
  get atRest(): boolean {
    return this.#limit === this.#rules.initial;
  }

  /** A whole number. */
  get limit(): number {
    return this.#limit;
  }

  /** An attempt starts; `inFlight` counts it. */
  start(inFlight: number): AimdMark {
    const atMs = this.#clock.now();
    this.#firstStartAtMs = Math.min(this.#firstStartAtMs, atMs);
    const start = ++this.#starts;
    if (inFlight >= this.#limit) this.#reachedAtStart = start;
    return { atMs, cuts: this.#cuts, start };
  }

  /** An attempt has ended; `inFlight` still counts it. `firstContentMs` counts from dispatch. */
  end(mark: AimdMark, outcome: Outcome, inFlight: number, firstContentMs?: number): AimdDecision {
    const nowMs = this.#clock.now();
    if (outcome.kind === 'dropped') return kept('neutral');
    if (outcome.kind === 'failure') {
      const { code } = outcome.error;
      if (code !== 'rate_limited' && code !== 'overloaded') return kept('neutral');
      return mark.cuts === this.#cuts ? this.#cut(nowMs, 'rejected') : kept('before_cut');
    }
    this.#carried.add(nowMs, nowMs - mark.atMs, 0);
    if (mark.cuts !== this.#cuts) return kept('before_cut');
    if (firstContentMs !== undefined && this.#isSlow(firstContentMs)) return this.#cut(nowMs, 'first_content');
    if (this.#reachedAtStart < mark.start && inFlight < this.#limit) return kept('app_limited');
    return this.#grow(nowMs);
  }

  /** Sets the limit from outside. @throws SluiceError `invalid_option` unless it is a whole number within `min` and `max` */
  adjust(limit: number): AimdDecision {
    const from = this.#limit;
    this.#set(between('limit', limit, this.#rules), this.#clock.now());
    return { kind: 'changed', from, to: limit, reason: 'adjusted' };
  }

  #grow(nowMs: number): AimdDecision {
    if (this.#limit >= this.#rules.max) return kept('at_max');
    this.#earned = Math.min(1, this.#earned + 1 / this.#limit);
    // The parts of a step can fall short of one by rounding errors.
    if (this.#earned < 1 - 1e-9) return kept('gaining');
    if (nowMs - this.#changedAtMs < this.#rules.growEveryMs) return kept('too_soon');
    // Rounded up: a limit below 5 would otherwise never get to its next step.
    if (this.#limit + 1 > Math.ceil(this.#rules.maxOverMeasured * this.#measured(nowMs))) return kept('measured');
    const from = this.#limit;
    this.#set(from + 1, nowMs);
    return { kind: 'changed', from, to: this.#limit, reason: 'success' };
  }

  #cut(nowMs: number, reason: 'rejected' | 'first_content'): AimdDecision {
    const from = this.#limit;
    this.#set(Math.max(this.#rules.min, Math.floor(from * this.#rules.decrease)), nowMs);
    this.#cuts++;
    this.#firstContents = 0;
    return this.#limit === from ? kept('at_min') : { kind: 'changed', from, to: this.#limit, reason };
  }

  #set(limit: number, nowMs: number): void {
    this.#limit = limit;
    this.#earned = 0;
    this.#changedAtMs = nowMs;
    this.#reachedAtStart = 0;
  }

  /** Judges the moving average since the last cut, so that one slow attempt alone does not cut. */
  #isSlow(firstContentMs: number): boolean {
    this.#firstContents++;
    const weight = Math.max(SMOOTHING, 1 / this.#firstContents);
    this.#firstContentMs += weight * (firstContentMs - this.#firstContentMs);
    return this.#firstContents >= BELIEVED_FROM && this.#firstContentMs > this.#rules.maxFirstContentMs;
  }

  /** Useful work in flight, on average. `Infinity` where no time has passed to measure it in. */
  #measured(nowMs: number): number {
    const overMs = Math.min(this.#carried.reachMs(nowMs), nowMs - this.#firstStartAtMs);
    return overMs > 0 ? this.#carried.first(nowMs) / overMs : Infinity;
  }
}

function kept<R>(reason: R): { readonly kind: 'kept'; readonly reason: R } {
  return { kind: 'kept', reason };
}

function fraction(option: string, value: number): number {
  if (typeof value === 'number' && value > 0 && value < 1) return value;
  throw invalidOption(option, 'above 0 and below 1', value);
}

function atLeastOne(option: string, value: number): number {
  if (typeof value === 'number' && value >= 1) return value;
  throw invalidOption(option, '1 or more, or Infinity', value);
}

type CheckedAimdOptions = { readonly [K in keyof AimdOptions]-?: number };

function checked(options: AimdOptions): CheckedAimdOptions {
  const defaults = AIMD_DEFAULTS;
  const given = (option: 'initial' | 'max'): number | undefined =>
    options[option] === undefined ? undefined : wholeNumber(option, options[option]);
  const initial = given('initial');
  const most = given('max');
  const min = wholeNumber('min', options.min ?? Math.min(defaults.min, initial ?? Infinity, most ?? Infinity));
  const max = most ?? Math.max(defaults.max, initial ?? 0, min);
  if (max < min) throw invalidOption('max', `at least min (${min})`, max);
  return {
    initial: between('initial', initial ?? Math.min(max, Math.max(min, defaults.initial)), { min, max }),
    min,
    max,
    decrease: fraction('decrease', options.decrease ?? defaults.decrease),
    growEveryMs: zeroOrMore('growEveryMs', options.growEveryMs ?? defaults.growEveryMs),
    maxOverMeasured: atLeastOne('maxOverMeasured', options.maxOverMeasured ?? defaults.maxOverMeasured),
    maxFirstContentMs: positiveOrInfinity('maxFirstContentMs', options.maxFirstContentMs ?? defaults.maxFirstContentMs),
  };
}

function between(option: string, value: number, { min, max }: { readonly min: number; readonly max: number }): number {
  if (Number.isSafeInteger(value) && value >= min && value <= max) return value;
  throw invalidOption(option, `a whole number from ${min} to ${max}`, value);
}
