import { positive } from '../core/checks.ts';
import type { LayerSnapshot } from '../core/ports.ts';
import { MinuteBucket } from './MinuteBucket.ts';
import type { MinuteRate, Moment } from './MinuteBucket.ts';
import type { RateLimitHints } from '../core/hints.ts';

/** Rates of one layer. One that is not given is not limited. */
export interface LayerOptions {
  /** Finite, above 0. */
  readonly requestsPerMinute?: number | undefined;
  /** Requests that may go at once after a rest. Finite, above 0. Default: one second's worth, at least 1. */
  readonly burstRequests?: number | undefined;
  /** Finite, above 0. */
  readonly tokensPerMinute?: number | undefined;
  /** Tokens that may go at once after a rest. Finite, above 0. Default: one minute's worth. */
  readonly burstTokens?: number | undefined;
}

/** What one attempt takes of a layer. */
export interface LayerCost {
  readonly requests: number;
  readonly tokens: number;
}

export const NOTHING: LayerCost = { requests: 0, tokens: 0 };

/** What a report of an answer is measured against: when its attempt was sent, and among what. */
export interface SentAmong {
  readonly atMs: number;
  readonly requests: Moment | undefined;
  readonly tokens: Moment | undefined;
}

/** A named layer of a quota: a bucket of requests, a bucket of tokens, or both. Pure: times are passed in. */
export class QuotaLayer {
  readonly name: string;
  // Changed by `succeed` only.
  requests: MinuteBucket | undefined;
  tokens: MinuteBucket | undefined;

  /** @throws SluiceError `invalid_option` if an option is not as described, naming it with its layer. */
  constructor(name: string, options: LayerOptions, arrivalMarginMs: number, nowMs: number) {
    const { requests, tokens } = checkedRates(name, options);
    this.name = name;
    this.requests = requests && new MinuteBucket(requests, 1, arrivalMarginMs, nowMs);
    this.tokens = tokens && new MinuteBucket(tokens, tokens.burst, arrivalMarginMs, nowMs);
  }

  /**
   * Takes the place of `previous`, at its own rates: goes on with the buckets that both have, so that what attempts have
   * taken of the other is corrected and given back here as well.
   */
  succeed(nowMs: number, previous: QuotaLayer): void {
    this.requests = succeeded(nowMs, this.requests, previous.requests);
    this.tokens = succeeded(nowMs, this.tokens, previous.tokens);
  }

  /** Whole milliseconds until the layer has room for `cost`. */
  waitMs(nowMs: number, cost: LayerCost): number {
    return Math.max(this.requests?.waitMs(nowMs, cost.requests) ?? 0, this.tokens?.waitMs(nowMs, cost.tokens) ?? 0);
  }

  /** At least this long until there is room for `cost` behind `ahead`. `refundable`: reserved tokens may come back. */
  waitBehindMs(nowMs: number, ahead: LayerCost, cost: LayerCost, refundable: boolean): number {
    const tokens = this.tokens;
    const credit = refundable && tokens ? tokens.reserved : 0;
    return Math.max(
      this.requests?.waitBehindMs(nowMs, ahead.requests, cost.requests) ?? 0,
      tokens?.waitBehindMs(nowMs, refundable ? 0 : ahead.tokens, cost.tokens, credit) ?? 0,
    );
  }

  /** Without `sent`: of now. */
  report(nowMs: number, hints: RateLimitHints, sent: SentAmong | undefined): void {
    if (hints.requests) this.requests?.report(nowMs, hints.requests, sent?.requests, sent?.atMs);
    if (hints.tokens) this.tokens?.report(nowMs, hints.tokens, sent?.tokens, sent?.atMs);
  }

  /**
   * Changes the rates of the buckets that the layer has. Levels stay, as far as they fit.
   * @throws SluiceError `invalid_option` for a wrong rate, and for one of a bucket that the layer was made without.
   */
  setRate(nowMs: number, options: LayerOptions): void {
    const { requests, tokens } = checkedRates(this.name, options);
    if (requests) existing(this.name, 'requestsPerMinute', this.requests);
    if (tokens) existing(this.name, 'tokensPerMinute', this.tokens);
    if (requests) (this.requests as MinuteBucket).setRate(nowMs, requests);
    if (tokens) (this.tokens as MinuteBucket).setRate(nowMs, tokens);
  }

  /** Whether the layer is as it was when new, so that a new one can take its place. */
  atRest(nowMs: number): boolean {
    return [this.requests, this.tokens].every((bucket) => !bucket || bucket.level(nowMs) >= bucket.burst);
  }

  snapshot(nowMs: number): LayerSnapshot {
    const shown = (bucket: MinuteBucket | undefined): LayerSnapshot['requests'] =>
      bucket && { level: bucket.level(nowMs), burst: bucket.burst, perMinute: bucket.perMinute };
    return { layer: this.name, requests: shown(this.requests), tokens: shown(this.tokens) };
  }
}

interface Rates {
  readonly requests: MinuteRate | undefined;
  readonly tokens: MinuteRate | undefined;
}

function checkedRates(layer: string, options: LayerOptions): Rates {
  return {
    requests: rate(layer, 'requestsPerMinute', 'burstRequests', options, (perMinute) => Math.max(1, perMinute / 60)),
    tokens: rate(layer, 'tokensPerMinute', 'burstTokens', options, (perMinute) => perMinute),
  };
}

function rate(
  layer: string,
  perMinuteOption: 'requestsPerMinute' | 'tokensPerMinute',
  burstOption: 'burstRequests' | 'burstTokens',
  options: LayerOptions,
  defaultBurst: (perMinute: number) => number,
): MinuteRate | undefined {
  const perMinute = options[perMinuteOption];
  const burst = options[burstOption];
  // A burst without a rate would be dropped in silence.
  if (perMinute === undefined && burst === undefined) return undefined;
  const checked = positive(`${layer}.${perMinuteOption}`, perMinute ?? NaN);
  return { perMinute: checked, burst: positive(`${layer}.${burstOption}`, burst ?? defaultBurst(checked)) };
}

function existing(layer: string, option: string, bucket: MinuteBucket | undefined): void {
  // A bucket that appears later would not know what is in flight.
  if (bucket === undefined) positive(`${layer}.${option} at creation`, NaN);
}

function succeeded(
  nowMs: number,
  bucket: MinuteBucket | undefined,
  previous: MinuteBucket | undefined,
): MinuteBucket | undefined {
  if (bucket === undefined || previous === undefined) return bucket;
  previous.follow(nowMs, bucket);
  return previous;
}
