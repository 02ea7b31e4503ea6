import type { LayerSnapshot } from '../core/ports.ts';
import type { LimitReading, RateLimitHints } from '../core/hints.ts';
import { QuotaLayer } from './QuotaLayer.ts';
import type { LayerOptions } from './QuotaLayer.ts';

const MINUTE_MS = 60_000;
/** So large that it limits nothing. */
const UNLIMITED = 1e9;

/** Keeps the layer of one deployment at what its provider really allows. Pure: times are passed in. */
export class LearnedRate {
  readonly layer: QuotaLayer;
  readonly #options: LayerOptions;

  constructor(name: string, options: LayerOptions, arrivalMarginMs: number, nowMs: number) {
    this.#options = {
      requestsPerMinute: options.requestsPerMinute ?? UNLIMITED,
      burstRequests: options.burstRequests,
      tokensPerMinute: options.tokensPerMinute ?? UNLIMITED,
      burstTokens: options.burstTokens,
    };
    this.layer = new QuotaLayer(name, this.#options, arrivalMarginMs, nowMs);
  }

  snapshot(nowMs: number): LayerSnapshot {
    const { requests, tokens } = this.layer.snapshot(nowMs);
    const shown = (bucket: LayerSnapshot['requests']): LayerSnapshot['requests'] =>
      bucket && bucket.perMinute < UNLIMITED ? bucket : undefined;
    return { layer: this.layer.name, requests: shown(requests), tokens: shown(tokens) };
  }

  sent(_nowMs: number): void {}

  rejected(_nowMs: number, _sentAtMs: number): void {}

  reported(_nowMs: number, _hints: RateLimitHints): void {}
}

export function perMinute({ limit, windowMs }: LimitReading): number | undefined {
  return limit !== undefined && limit > 0 && windowMs > 0 && windowMs <= MINUTE_MS
    ? (limit * MINUTE_MS) / windowMs
    : undefined;
}
