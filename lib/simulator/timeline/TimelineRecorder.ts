import { Counts } from './Counts.ts';
import { Durations } from './Durations.ts';
import { meanRate, quotaRates } from './quotaRate.ts';
import type { QuotaRate } from './quotaRate.ts';
import { TimeBuckets } from './TimeBuckets.ts';
import type { DurationLines, QuotaLine, Timeline } from './Timeline.ts';
import type { Upstream } from '../scenario/Scenario.ts';

const BUCKETS = 240;
const MINUTE_MS = 60_000;
/** What ends long before its time is still seen in detail: buckets begin so much narrower than they end. */
const NARROWER = 2 ** 10;

interface QuotaBook {
  readonly rate: QuotaRate;
  readonly used: Counts;
}

/** Writes down what happens when. It takes the same memory for a million calls as for one. */
export class TimelineRecorder {
  readonly #buckets: TimeBuckets;
  readonly #calls: Counts;
  readonly #answered: Counts;
  readonly #failed: Counts;
  readonly #left: Counts;
  readonly #attempts: Counts;
  readonly #requests: Counts;
  readonly #rateLimited: Counts;
  readonly #queue: Durations;
  readonly #firstContent: Durations;
  readonly #total: Durations;
  readonly #quotas: readonly QuotaBook[];
  #lastMs = 0;

  constructor(forMs: number, upstreams: Readonly<Record<string, Upstream>>) {
    const buckets = new TimeBuckets((2 * forMs) / BUCKETS / NARROWER, BUCKETS);
    this.#buckets = buckets;
    this.#calls = new Counts(buckets);
    this.#answered = new Counts(buckets);
    this.#failed = new Counts(buckets);
    this.#left = new Counts(buckets);
    this.#attempts = new Counts(buckets);
    this.#requests = new Counts(buckets);
    this.#rateLimited = new Counts(buckets);
    this.#queue = new Durations(buckets);
    this.#firstContent = new Durations(buckets);
    this.#total = new Durations(buckets);
    this.#quotas = Object.entries(upstreams)
      .flatMap(([client, upstream]) => quotaRates(client, upstream))
      .map((rate) => ({ rate, used: new Counts(buckets) }));
  }

  asked(nowMs: number): void {
    this.#at(nowMs);
    this.#calls.add(nowMs);
  }

  /** The first request of a call that was made at `askedMs`. */
  sent(askedMs: number, queueMs: number): void {
    this.#at(askedMs + queueMs);
    this.#queue.add(askedMs, queueMs);
  }

  /** `askedMs`: when its call was made, where that still waits for it. */
  arrived(nowMs: number, askedMs: number | undefined, rejected: boolean): void {
    this.#at(nowMs);
    this.#requests.add(nowMs);
    if (rejected) this.#rateLimited.add(nowMs);
    if (askedMs !== undefined) this.#attempts.add(askedMs);
  }

  admitted(client: string, model: string, tokens: number, nowMs: number): void {
    for (const { rate, used } of this.#quotas) {
      if (rate.client !== client || (rate.model ?? model) !== model) continue;
      used.add(nowMs, rate.unit === 'requests' ? 1 : tokens);
    }
  }

  answered(askedMs: number, firstContentMs: number, totalMs: number): void {
    this.#at(askedMs + totalMs);
    this.#answered.add(askedMs);
    this.#firstContent.add(askedMs, firstContentMs);
    this.#total.add(askedMs, totalMs);
  }

  failed(askedMs: number, nowMs: number): void {
    this.#at(nowMs);
    this.#failed.add(askedMs);
  }

  left(askedMs: number, nowMs: number): void {
    this.#at(nowMs);
    this.#left.add(askedMs);
  }

  timeline(): Timeline {
    const count = this.#buckets.indexOf(this.#lastMs) + 1;
    return {
      bucketMs: this.#buckets.widthMs,
      calls: this.#calls.values(count),
      answered: this.#answered.values(count),
      failed: this.#failed.values(count),
      left: this.#left.values(count),
      attempts: this.#attempts.values(count),
      requests: this.#requests.values(count),
      rateLimited: this.#rateLimited.values(count),
      queueMs: linesOf(this.#queue, count),
      firstContentMs: linesOf(this.#firstContent, count),
      totalMs: linesOf(this.#total, count),
      quotas: this.#quotas.map((book) => this.#lineOf(book, count)),
    };
  }

  #lineOf({ rate, used }: QuotaBook, count: number): QuotaLine {
    const { widthMs } = this.#buckets;
    const { client, model, unit } = rate;
    return {
      client,
      model,
      unit,
      usedPerMinute: used.values(count).map((value) => (value * MINUTE_MS) / widthMs),
      limitPerMinute: Array.from({ length: count }, (_, i) => meanRate(rate, i * widthMs, (i + 1) * widthMs)),
    };
  }

  #at(nowMs: number): void {
    if (nowMs > this.#lastMs) this.#lastMs = nowMs;
  }
}

function linesOf(durations: Durations, count: number): DurationLines {
  return { ...durations.percentiles(count), cumulative: durations.cumulative() };
}
