/**
 * What a provider does, written apart from the limiter under test: continuous refill, a burst, and every request is
 * counted, also one that it rejects.
 */
export class ProviderBucket {
  readonly #burst: number;
  readonly #perMs: number;
  #level: number;
  #atMs = 0;
  rejected = 0;

  constructor(perMinute: number, burst: number) {
    this.#burst = burst;
    this.#perMs = perMinute / 60_000;
    this.#level = burst;
  }

  /** What is left now. */
  remaining(nowMs: number): number {
    this.#level = Math.min(this.#burst, this.#level + (nowMs - this.#atMs) * this.#perMs);
    this.#atMs = nowMs;
    return this.#level;
  }

  arrive(nowMs: number, cost = 1): boolean {
    // A billionth is rounding.
    const admitted = this.remaining(nowMs) >= cost - 1e-9 * this.#burst;
    this.#level -= cost;
    if (!admitted) this.rejected++;
    return admitted;
  }
}

/** When each would start at best, first come first served, if it knew the provider's bucket exactly. */
export function bestSchedule(arrivalsMs: readonly number[], perMinute: number, burst: number): number[] {
  const perMs = perMinute / 60_000;
  let level = burst;
  let atMs = 0;
  return arrivalsMs.map((arrivalMs) => {
    const fromMs = Math.max(arrivalMs, atMs);
    level = Math.min(burst, level + (fromMs - atMs) * perMs);
    const startMs = fromMs + Math.max(0, 1 - level) / perMs;
    level = Math.min(burst, level + (startMs - fromMs) * perMs) - 1;
    atMs = startMs;
    return startMs;
  });
}

export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.ceil(share * sorted.length) - 1)] ?? NaN;
}
