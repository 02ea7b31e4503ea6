import { zeroOrMore } from '../core/checks.ts';

export interface CooldownOptions {
  /** Pause after a rejection that named no wait. 0 or more; 0 means none. Default: 1,000. */
  readonly unhintedMs?: number | undefined;
  /** Added to a wait at random, as a share of it; at most one second. 0 or more. Default: 0.1. */
  readonly jitter?: number | undefined;
  /** Longest time that the first one back may keep the others waiting for its answer. 0 or more. Default: 2,000. */
  readonly trialMs?: number | undefined;
  /** Least time between two that come back; up to as much again is added at random. 0 or more. Default: 20. */
  readonly staggerMs?: number | undefined;
  /** The stagger shrinks to nothing over this time, counted from the answer of the first one. 0 or more. Default: 1,000. */
  readonly rampMs?: number | undefined;
}

type CheckedCooldownOptions = typeof COOLDOWN_DEFAULTS;

export const COOLDOWN_DEFAULTS: { readonly [option in keyof CooldownOptions]-?: number } = {
  unhintedMs: 1000,
  jitter: 0.1,
  trialMs: 2000,
  staggerMs: 20,
  rampMs: 1000,
};

const MOST_JITTER_MS = 1000;

/** `idle`: no pause. `paused`: until a known time. `trial`: the first one back is out. `ramp`: the others follow. */
type Phase = 'idle' | 'paused' | 'trial' | 'ramp';

/**
 * The pause that a provider asked for, held for everyone who shares the quota. Afterwards the first one goes alone; once
 * it has been answered the others follow one by one, faster and faster. Pure: times are passed in.
 *
 * Invariant: nobody goes before the latest wait that was asked for is over; randomness only adds.
 */
export class Cooldown {
  #options: CheckedCooldownOptions;
  readonly #random: () => number;
  #phase: Phase = 'idle';
  /** The latest end that was asked for; what was added to it is in `#opensAtMs`. */
  #floorMs = -Infinity;
  #pausedAtMs = -Infinity;
  /** When the next one may go, in every phase but `idle`. */
  #opensAtMs = 0;
  #rampEndsMs = 0;
  #trial = 0;

  /** @throws SluiceError `invalid_option` if an option is not as described. */
  constructor(options: CooldownOptions, random: () => number) {
    this.#options = checked(options);
    this.#random = random;
  }

  /** Takes other rules. A pause that has begun, and a ramp, end when they would have. */
  reload(options: CooldownOptions): void {
    this.#options = checked(options);
  }

  /** Whether no pause, and nothing that follows one, is under way. As of the last {@link waitMs}. */
  get idle(): boolean {
    return this.#phase === 'idle';
  }

  /** Whole milliseconds until the next one may go; 0 if it may now. */
  waitMs(nowMs: number): number {
    if (this.#phase === 'ramp' && nowMs >= this.#rampEndsMs) this.#phase = 'idle';
    return this.#phase === 'idle' ? 0 : Math.max(0, Math.ceil(this.#opensAtMs - nowMs));
  }

  /** Like {@link waitMs}, without what an early answer of the first one back would shorten. */
  certainMs(nowMs: number): number {
    return this.#phase === 'trial' ? 0 : this.waitMs(nowMs);
  }

  /** A provider asked for a wait, counted from now. Returns the pause that began or grew, in milliseconds, else 0. */
  hint(nowMs: number, waitMs: number): number {
    const floorMs = nowMs + waitMs;
    if (!(waitMs > 0) || floorMs <= this.#floorMs) return 0;
    const added = this.#random() * Math.min(MOST_JITTER_MS, this.#options.jitter * waitMs);
    const paused = this.#phase === 'paused' && nowMs < this.#opensAtMs;
    this.#opensAtMs = Math.max(paused ? this.#opensAtMs : -Infinity, floorMs + added);
    this.#floorMs = floorMs;
    if (!paused) this.#pausedAtMs = nowMs;
    this.#phase = 'paused';
    return waitMs;
  }

  /** An attempt was rejected and no wait was named. One that left before the last pause began says nothing new. */
  rejected(nowMs: number, dispatchedAtMs: number): number {
    return dispatchedAtMs < this.#pausedAtMs ? 0 : this.hint(nowMs, this.#options.unhintedMs);
  }

  /** One goes, when {@link waitMs} was 0. Returns its number if the others wait for its answer. */
  passed(nowMs: number): number | undefined {
    if (this.#phase === 'paused') {
      this.#phase = 'trial';
      this.#opensAtMs = nowMs + this.#options.trialMs;
      // Stryker disable next-line UpdateOperator: it need only differ from those before
      return ++this.#trial;
    }
    if (this.#phase === 'trial') this.#startRamp(nowMs);
    else if (this.#phase === 'ramp') this.#opensAtMs = nowMs + this.#gapMs(nowMs);
    return undefined;
  }

  /** The one with that number has been answered: the others may follow. One without a number kept nobody waiting. */
  answered(nowMs: number, trial: number | undefined): void {
    if (this.#phase === 'trial' && trial === this.#trial) this.#startRamp(nowMs);
  }

  /** The one with that number ended without an answer: the next one goes alone in its place. */
  gaveUp(nowMs: number, trial: number | undefined): void {
    if (this.#phase !== 'trial' || trial !== this.#trial) return;
    this.#phase = 'paused';
    this.#opensAtMs = nowMs;
  }

  #startRamp(nowMs: number): void {
    this.#phase = 'ramp';
    this.#rampEndsMs = nowMs + this.#options.rampMs;
    this.#opensAtMs = nowMs + this.#gapMs(nowMs);
  }

  #gapMs(nowMs: number): number {
    const { rampMs, staggerMs } = this.#options;
    // Stryker disable next-line ConditionalExpression: a ramp of no time is over before anyone asks for the gap, which is NaN without this
    if (rampMs === 0) return 0;
    const left = Math.max(0, this.#rampEndsMs - nowMs) / rampMs;
    return left * staggerMs * (1 + this.#random());
  }
}

function checked(options: CooldownOptions): CheckedCooldownOptions {
  const {
    unhintedMs = COOLDOWN_DEFAULTS.unhintedMs,
    jitter = COOLDOWN_DEFAULTS.jitter,
    trialMs = COOLDOWN_DEFAULTS.trialMs,
    staggerMs = COOLDOWN_DEFAULTS.staggerMs,
    rampMs = COOLDOWN_DEFAULTS.rampMs,
  } = options;
  return {
    unhintedMs: zeroOrMore('cooldown.unhintedMs', unhintedMs),
    jitter: zeroOrMore('cooldown.jitter', jitter),
    trialMs: zeroOrMore('cooldown.trialMs', trialMs),
    staggerMs: zeroOrMore('cooldown.staggerMs', staggerMs),
    rampMs: zeroOrMore('cooldown.rampMs', rampMs),
  };
}
