import type { LayerCost } from '../../limits/QuotaLayer.ts';
import type { Granted } from './SharedGrant.ts';
import type { Marks } from './QuotaCall.ts';
import type { RouteAsk } from './quotaCallOf.ts';
import type { RoutePlan } from './QuotaLayers.ts';

/** Below this many requests in one slice nothing is taken ahead. */
const LEAST = 3;
const MOST = 100;

/**
 * A part of the quota that this process took ahead of need, for a moment, so that not every request has to ask. It takes
 * as much as came within the last slice of time, and gives back what is left at the end.
 */
export class SpareSlice {
  readonly #sliceMs: number;
  #left = 0;
  #tokensEach = 0;
  #marks: Marks = [];
  #plan: RoutePlan | undefined;
  #endsAtMs = Infinity;
  /** Requests of late, each counting less the longer ago it came. */
  #recent = 0;
  #recentAtMs = -Infinity;
  #wantedAtMs = -Infinity;

  constructor(sliceMs: number) {
    this.#sliceMs = sliceMs;
  }

  /** When what is left is to be given back; `Infinity` if there is nothing. */
  get endsAtMs(): number {
    return this.#left > 0 ? this.#endsAtMs : Infinity;
  }

  /** A request has come. */
  arrived(nowMs: number): void {
    this.#recent = this.#recent * Math.exp((this.#recentAtMs - nowMs) / this.#sliceMs) + 1;
    this.#recentAtMs = nowMs;
  }

  /** How many are worth taking besides the one that asks; once in a slice of time. */
  want(nowMs: number): number {
    if (this.#left > 0 || this.#recent < LEAST || nowMs < this.#wantedAtMs + this.#sliceMs / 2) return 0;
    this.#wantedAtMs = nowMs;
    return Math.min(MOST, Math.ceil(this.#recent));
  }

  fill(nowMs: number, count: number, tokensEach: number, marks: Marks, plan: RoutePlan): void {
    this.#plan = plan;
    this.#left = count;
    this.#tokensEach = tokensEach;
    this.#marks = marks;
    this.#endsAtMs = nowMs + this.#sliceMs;
  }

  /** Takes one request from it, if that fits. */
  take(nowMs: number, cost: LayerCost, plan: RoutePlan): Omit<Granted, 'waitedMs'> | undefined {
    if (this.#left === 0 || nowMs >= this.#endsAtMs || plan !== this.#plan) return undefined;
    if (cost.requests !== 1 || cost.tokens > this.#tokensEach) return undefined;
    this.#left--;
    return { cost, takenTokens: this.#tokensEach, marks: this.#marks, trial: 0 };
  }

  /** Ends it. Returns what gives back what is left. */
  end(): RouteAsk | undefined {
    const left = this.#left;
    this.#left = 0;
    if (left === 0 || this.#plan === undefined) return undefined;
    return { plan: this.#plan, op: ['back', left, left * this.#tokensEach, ...this.#marks] };
  }
}
