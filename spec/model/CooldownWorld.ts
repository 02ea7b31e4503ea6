import { Cooldown } from '../../lib/limits/Cooldown.ts';
import type { CooldownOptions } from '../../lib/limits/Cooldown.ts';
import type { Deed, World } from './explore.ts';
import { ModelClock, must } from './rules.ts';

interface Trial {
  readonly number: number;
  readonly atMs: number;
  /** Whether it is the one that the others wait for. */
  over: boolean;
}

const UNHINTED_MS = 2;
const TRIAL_MS = 2;
const RAMP_MS = 2;
export const COOLDOWN: CooldownOptions = {
  unhintedMs: UNHINTED_MS,
  trialMs: TRIAL_MS,
  rampMs: RAMP_MS,
  staggerMs: 1,
  jitter: 0.5,
};
const FULL_JITTER = 0.75;

/** Callers behind a cooldown: pauses asked for and made up, those who come back, and what becomes of the first one back. */
export class CooldownWorld implements World {
  readonly #clock = new ModelClock();
  readonly #cooldown: Cooldown;
  readonly #trials: Trial[] = [];
  #left: number;
  #floorMs = -Infinity;
  /** How long after the floor is settled at random, for each pause. */
  #pausedAtMs = -Infinity;
  #ramp: { readonly atMs: number; lastMs: number } | undefined;

  constructor(events: number, make: () => Cooldown = cooldownOf) {
    this.#left = events;
    this.#cooldown = make();
  }

  deeds(): readonly Deed[] {
    const deeds: Deed[] = [];
    if (this.#left > 0) {
      for (const ms of [1, 3]) deeds.push([`a wait of ${ms} ms is asked for`, () => this.#hint(ms)]);
      deeds.push(['one just sent is rejected', () => this.#rejected(this.#clock.nowMs)]);
      deeds.push(['one sent long ago is rejected', () => this.#rejected(-Infinity)]);
      if (this.#cooldown.waitMs(this.#clock.nowMs) === 0) deeds.push(['one goes', () => this.#goes()]);
    }
    this.#trials.forEach((trial, at) => {
      deeds.push([`trial ${at + 1} is answered`, () => this.#answered(trial)]);
      deeds.push([`trial ${at + 1} gives up`, () => this.#gaveUp(trial)]);
    });
    deeds.push(['1 ms passes', () => this.#pass()]);
    return deeds;
  }

  key(): string {
    const { nowMs } = this.#clock;
    const trial = this.#current;
    const ageMs = (atMs: number): number => Math.min(9, nowMs - atMs);
    const ramp = this.#ramp ? `ramp ${ageMs(this.#ramp.atMs)} ${ageMs(this.#ramp.lastMs)}` : '';
    return [
      ...[this.#left, ramp, trial ? `trial ${ageMs(trial.atMs)}` : '', this.#trials.filter(({ over }) => over).length],
      ...[Math.max(-1, this.#floorMs - nowMs), ageMs(this.#pausedAtMs), this.#cooldown.idle],
      this.#cooldown.waitMs(nowMs),
    ].join(' ');
  }

  wrong(): string | undefined {
    const { nowMs } = this.#clock;
    const waitMs = this.#cooldown.waitMs(nowMs);
    if (!(waitMs >= 0 && waitMs < 20)) return `is told to wait ${waitMs} ms`;
    if (waitMs < this.#floorMs - nowMs) return `one may go ${this.#floorMs - nowMs - waitMs} ms too early`;
    return undefined;
  }

  ended(): boolean {
    return this.#left === 0 && this.#trials.length === 0 && this.#cooldown.waitMs(this.#clock.nowMs) === 0;
  }

  get #current(): Trial | undefined {
    return this.#trials.find(({ over }) => !over);
  }

  #hint(ms: number): unknown {
    this.#left--;
    return this.#paused(this.#cooldown.hint(this.#clock.nowMs, ms), ms);
  }

  #rejected(sentAtMs: number): unknown {
    this.#left--;
    const begun = this.#cooldown.rejected(this.#clock.nowMs, sentAtMs);
    must(sentAtMs >= this.#pausedAtMs || begun === 0, 'a rejection from before the pause begins another one');
    return this.#paused(begun, UNHINTED_MS);
  }

  #paused(begun: number, ms: number): unknown {
    must(begun === 0 || begun === ms, `a pause of ${begun} ms begins`);
    const { nowMs } = this.#clock;
    if (begun === 0) return 0;
    must(nowMs + ms > this.#floorMs, 'a shorter pause takes the place of a longer one');
    if (!(this.#floorMs > -Infinity && this.#stillPaused)) this.#pausedAtMs = nowMs;
    this.#floorMs = nowMs + ms;
    this.#ramp = undefined;
    this.#endTrial();
    return begun;
  }

  get #stillPaused(): boolean {
    return this.#current === undefined && this.#ramp === undefined && this.#floorMs > this.#clock.nowMs;
  }

  #goes(): unknown {
    this.#left--;
    const { nowMs } = this.#clock;
    const idle = this.#cooldown.idle;
    const trial = this.#current;
    must(!trial || nowMs >= trial.atMs + TRIAL_MS, 'one goes while the first one back is out');
    const number = this.#cooldown.passed(nowMs);
    if (number !== undefined) {
      must(!trial && !this.#ramp && !idle, 'a second one goes on trial');
      this.#trials.push({ number, atMs: nowMs, over: false });
      return 'trial';
    }
    if (trial) this.#startRamp();
    else if (this.#ramp) this.#ramp.lastMs = nowMs;
    return 'goes';
  }

  #answered(trial: Trial): unknown {
    this.#trials.splice(this.#trials.indexOf(trial), 1);
    const beforeMs = this.#cooldown.waitMs(this.#clock.nowMs);
    this.#cooldown.answered(this.#clock.nowMs, trial.number);
    const afterMs = this.#cooldown.waitMs(this.#clock.nowMs);
    must(!trial.over || afterMs === beforeMs, 'the answer of a trial of an earlier pause changes this one');
    if (!trial.over) this.#startRamp();
    return afterMs;
  }

  #gaveUp(trial: Trial): unknown {
    this.#trials.splice(this.#trials.indexOf(trial), 1);
    const beforeMs = this.#cooldown.waitMs(this.#clock.nowMs);
    this.#cooldown.gaveUp(this.#clock.nowMs, trial.number);
    const afterMs = this.#cooldown.waitMs(this.#clock.nowMs);
    must(!trial.over || afterMs === beforeMs, 'a trial of an earlier pause that gives up changes this one');
    return afterMs;
  }

  #startRamp(): void {
    this.#endTrial();
    this.#ramp = { atMs: this.#clock.nowMs, lastMs: this.#clock.nowMs };
  }

  #endTrial(): void {
    const trial = this.#current;
    if (trial) trial.over = true;
  }

  #pass(): unknown {
    this.#clock.nowMs++;
    if (this.#ramp && this.#clock.nowMs >= this.#ramp.atMs + RAMP_MS) this.#ramp = undefined;
    return this.#cooldown.waitMs(this.#clock.nowMs);
  }
}

export function cooldownOf(): Cooldown {
  return new Cooldown(COOLDOWN, () => FULL_JITTER);
}
