/**
 * What a rejected request costs: as much as any (`debt`), what has gathered of the next one (`drain`), or nothing
 * (`free`). Providers differ.
 */
export type Counting = 'debt' | 'drain' | 'free';

/**
 * What a provider does, written apart from the limiter under test: continuous refill, a burst, and, unless told
 * otherwise, every request is counted, also one that it rejects.
 */
export class ProviderBucket {
  readonly #burst: number;
  readonly #counting: Counting;
  #perMs: number;
  #level: number;
  #atMs = 0;
  rejected = 0;

  constructor(perMinute: number, burst: number, counting: Counting = 'debt') {
    this.#burst = burst;
    this.#counting = counting;
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
    if (!admitted) this.rejected++;
    if (admitted || this.#counting === 'debt') this.#level -= cost;
    else if (this.#counting === 'drain') this.#level = Math.min(0, this.#level);
    return admitted;
  }

  /** From now on another rate. What is left stays. */
  change(nowMs: number, perMinute: number): void {
    this.remaining(nowMs);
    this.#perMs = perMinute / 60_000;
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
