import { expect } from 'chai';
import type { LimitReading } from '../../lib/core/hints.ts';
import type { SentMark } from '../../lib/limits/BetweenRejections.ts';
import { LearnedRate } from '../../lib/limits/LearnedRate.ts';
import { paceAt } from '../../lib/limits/ProbePace.ts';
import type { LayerOptions } from '../../lib/limits/QuotaLayer.ts';
import type { RateSearch } from '../../lib/limits/RateSearch.ts';

export const reading = (limit: number, windowMs = 60_000): LimitReading => ({
  limit,
  remaining: undefined,
  resetMs: undefined,
  windowMs,
});
/** When the first one is sent. */
export const FROM_MS = 1000;

export class Load {
  readonly rate: LearnedRate;
  /** When the next one is sent. */
  nextMs: number = FROM_MS;

  constructor(options: LayerOptions = { requestsPerMinute: 600 }, sharedPerMinute: number = Infinity) {
    this.rate = new LearnedRate('m', options, sharedPerMinute, 0, FROM_MS);
  }

  send(count: number, everyMs = 100): SentMark[] {
    return Array.from({ length: count }, () => {
      const mark = this.rate.sent(this.nextMs);
      this.nextMs += everyMs;
      return mark;
    });
  }

  /** Sends so many, the last of which is rejected, `afterMs` later. */
  rejectLast(count: number, everyMs = 100, afterMs = 0): SentMark {
    const mark = this.send(count, everyMs).at(-1) as SentMark;
    this.rate.rejected(mark.atMs + afterMs, mark);
    return mark;
  }

  at(nowMs: number): { perMinute: number | undefined; level: number | undefined; burst: number | undefined } {
    const { perMinute, level, burst } = this.rate.snapshot(nowMs).requests ?? {};
    return { perMinute, level, burst };
  }
}

/** What a search begins to send after a rejection. */
export const start = (search: RateSearch): number => search.estimate * paceAt(search.pace, 0);
export const same = (actual: number | undefined, expected: number): void =>
  void expect(actual).to.be.closeTo(expected, 1e-6);
/** Kept free after a rejection: 60 ms at the rate. */
export const reserve = (perMinute: number): number => (-perMinute * 60) / 60_000;
