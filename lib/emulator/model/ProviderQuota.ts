import { positive, ratio } from '../../core/checks.ts';
import { ProviderBucket } from './ProviderBucket.ts';
import type { BucketRate } from './ProviderBucket.ts';

/** Limits of one layer. A rate that is not given is not limited. */
export interface QuotaSettings {
  readonly requestsPerMinute?: number | undefined;
  /** Most requests at once after a pause. Default: one second's worth, at least 1. */
  readonly burstRequests?: number | undefined;
  readonly tokensPerMinute?: number | undefined;
  /** Most tokens at once after a pause. Default: one minute's worth. */
  readonly burstTokens?: number | undefined;
  /** Part of the quota that a hidden client uses up, from 0 to 1. Default: 0. */
  readonly noiseShare?: number | undefined;
}

/** One limit as it stands. */
export interface LimitState {
  readonly perMinute: number;
  /** Whole units that can be taken now. */
  readonly remaining: number;
  readonly msUntilFull: number;
}

export type QuotaVerdict =
  | { readonly kind: 'admitted' }
  | {
      readonly kind: 'refused';
      readonly by: 'requests' | 'tokens' | 'too_large';
      /** Milliseconds until the same request would pass. `Infinity` where it never can. */
      readonly retryAfterMs: number;
      readonly limit: number;
      readonly used: number;
      readonly requested: number;
    };

const ADMITTED: QuotaVerdict = { kind: 'admitted' };

/** One layer of the provider's quota: an account, or a model. */
export class ProviderQuota {
  #settings: QuotaSettings = {};
  #requests: ProviderBucket | undefined;
  #tokens: ProviderBucket | undefined;

  constructor(settings: QuotaSettings, nowMs: number) {
    this.change(settings, nowMs);
  }

  /** Replaces the settings that are named; `undefined` takes a limit away. Buckets keep their level. */
  change(settings: QuotaSettings, nowMs: number): void {
    const merged = { ...this.#settings, ...settings };
    const requests = requestRate(merged);
    const tokens = tokenRate(merged);
    this.#settings = merged;
    this.#requests = changed(this.#requests, requests, nowMs);
    this.#tokens = changed(this.#tokens, tokens, nowMs);
  }

  /** Whether a request of `tokens` fits. Takes nothing. */
  check(tokens: number, nowMs: number): QuotaVerdict {
    const [requests, bucket] = [this.#requests, this.#tokens];
    if (bucket !== undefined && tokens > bucket.rate.burst)
      return refusal('too_large', bucket, tokens, Infinity, nowMs);
    const waitMs = Math.max(requests?.msUntil(1, nowMs) ?? 0, bucket?.msUntil(tokens, nowMs) ?? 0);
    if (requests !== undefined && !requests.has(1, nowMs)) return refusal('requests', requests, 1, waitMs, nowMs);
    if (bucket !== undefined && !bucket.has(tokens, nowMs)) return refusal('tokens', bucket, tokens, waitMs, nowMs);
    return ADMITTED;
  }

  take(tokens: number, nowMs: number): void {
    this.#requests?.take(1, nowMs);
    this.#tokens?.take(tokens, nowMs);
  }

  /** A refused request counts as a request: it uses up the refill that had gathered. */
  countRefused(nowMs: number): void {
    this.#requests?.drain(1, nowMs);
  }

  settle(reserved: number, used: number, nowMs: number): void {
    this.#tokens?.giveBack(reserved - used, nowMs);
  }

  requests(nowMs: number): LimitState | undefined {
    return stateOf(this.#requests, nowMs);
  }

  tokens(nowMs: number): LimitState | undefined {
    return stateOf(this.#tokens, nowMs);
  }
}

/** @throws SluiceError `invalid_option` for a rate, burst or share that cannot be. */
export function checkQuotaSettings(settings: QuotaSettings, path = ''): void {
  requestRate(settings, path);
  tokenRate(settings, path);
}

function requestRate(settings: QuotaSettings, path = ''): BucketRate | undefined {
  const { requestsPerMinute, burstRequests, noiseShare = 0 } = settings;
  ratio(`${path}noiseShare`, noiseShare);
  if (burstRequests !== undefined) positive(`${path}burstRequests`, burstRequests);
  if (requestsPerMinute === undefined) return undefined;
  positive(`${path}requestsPerMinute`, requestsPerMinute);
  return { perMinute: requestsPerMinute, burst: Math.max(1, burstRequests ?? requestsPerMinute / 60), noiseShare };
}

function tokenRate(settings: QuotaSettings, path = ''): BucketRate | undefined {
  const { tokensPerMinute, burstTokens, noiseShare = 0 } = settings;
  if (burstTokens !== undefined) positive(`${path}burstTokens`, burstTokens);
  if (tokensPerMinute === undefined) return undefined;
  positive(`${path}tokensPerMinute`, tokensPerMinute);
  return { perMinute: tokensPerMinute, burst: burstTokens ?? tokensPerMinute, noiseShare };
}

function changed(
  bucket: ProviderBucket | undefined,
  rate: BucketRate | undefined,
  nowMs: number,
): ProviderBucket | undefined {
  if (rate === undefined) return undefined;
  if (bucket === undefined) return new ProviderBucket(rate, nowMs);
  bucket.change(rate, nowMs);
  return bucket;
}

function refusal(
  by: 'requests' | 'tokens' | 'too_large',
  bucket: ProviderBucket,
  requested: number,
  retryAfterMs: number,
  nowMs: number,
): QuotaVerdict {
  // "Used" as providers word it: of a minute's limit, with what is left taken off.
  const limit = bucket.rate.perMinute;
  const used = Math.max(0, Math.ceil(limit - Math.max(0, bucket.level(nowMs))));
  return { kind: 'refused', by, retryAfterMs, limit, used, requested };
}

function stateOf(bucket: ProviderBucket | undefined, nowMs: number): LimitState | undefined {
  if (bucket === undefined) return undefined;
  const remaining = Math.max(0, Math.floor(bucket.level(nowMs) + 1e-6));
  return { perMinute: bucket.rate.perMinute, remaining, msUntilFull: bucket.msUntil(bucket.rate.burst, nowMs) };
}
