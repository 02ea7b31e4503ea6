import type { BreakerState } from '../../core/events.ts';
import type { LivePoint, LiveTotals } from './LiveFrame.ts';
import { Recent } from './Recent.ts';
import { SlidingHistogram } from './SlidingHistogram.ts';

/** Five minutes. */
const SECONDS = 300;
const SLOT_MS = 5_000;
const SLOTS_OF_A_POINT = 3;
const SLOTS_OF_A_MINUTE = 12;

/** What a point shows that is not counted. */
export interface LiveSample {
  readonly inFlight: number;
  readonly waiting: number;
  readonly breakers: Readonly<Record<string, BreakerState>>;
}

type Counted = Omit<LiveTotals, 'rateLimitedShare' | 'amplification' | 'codes'> & { readonly tried: number };
type Writable<T> = { -readonly [K in keyof T]: T[K] };

const NONE: Counted = { calls: 0, failed: 0, dropped: 0, attempts: 0, rateLimited: 0, tried: 0 };
const BADNESS: Readonly<Record<BreakerState, number>> = { closed: 0, ramping: 1, half_open: 2, open: 3 };

/** Five minutes, second by second. */
export class LiveSeries {
  readonly #beganMs: number;
  readonly #sample: () => LiveSample;
  readonly #points = new Recent<LivePoint & { readonly counted: Counted }>(SECONDS);
  readonly #firstContent = new SlidingHistogram(SLOT_MS, SLOTS_OF_A_MINUTE);
  readonly #sum: Writable<Counted> = { ...NONE };
  #now: Writable<Counted> = { ...NONE };
  /** Seconds that have ended. */
  #seconds = 0;
  #breakers: Readonly<Record<string, BreakerState>> = {};
  /** The worst of this second, for those that were worse than they are now. */
  readonly #worst = new Map<string, BreakerState>();

  /** `sample` is asked at the end of each second in which somebody asks or tells anything. */
  constructor(nowMs: number, sample: () => LiveSample) {
    this.#beganMs = nowMs;
    this.#sample = sample;
  }

  /** How many points there were ever. */
  get added(): number {
    return this.#points.added;
  }

  attempt(nowMs: number, rateLimited: boolean): void {
    this.advance(nowMs);
    this.#now.attempts++;
    if (rateLimited) this.#now.rateLimited++;
  }

  call(nowMs: number, outcome: 'success' | 'failure' | 'dropped', attempts: number): void {
    this.advance(nowMs);
    this.#now.calls++;
    if (outcome === 'failure') this.#now.failed++;
    if (outcome === 'dropped') this.#now.dropped++;
    if (attempts > 0) this.#now.tried++;
  }

  firstContent(nowMs: number, ms: number): void {
    this.#firstContent.add(nowMs, ms);
  }

  breaker(nowMs: number, name: string, state: BreakerState): void {
    this.advance(nowMs);
    const known = this.#worst.get(name);
    if (known === undefined || BADNESS[state] > BADNESS[known]) this.#worst.set(name, state);
  }

  /** Ends the seconds that are over. */
  advance(nowMs: number): void {
    const over = Math.floor((nowMs - this.#beganMs) / 1_000);
    if (over <= this.#seconds) return;
    const sample = this.#sample();
    const breakers = this.#breakersOf(sample);
    const from = Math.max(this.#seconds, over - SECONDS);
    // After a long silence only what will be kept is written.
    if (from > this.#seconds) this.#now = { ...NONE };
    for (let second = from; second < over; second++) {
      const [p50Ms, p95Ms] = this.#quantiles(this.#beganMs + (second + 1) * 1_000 - 1, SLOTS_OF_A_POINT);
      const { calls, failed, attempts, rateLimited } = this.#now;
      const { inFlight, waiting } = sample;
      this.#push({
        ...{ second, calls, failed, attempts, rateLimited, inFlight, waiting, p50Ms, p95Ms },
        breakers: second === this.#seconds ? breakers : this.#same(sample.breakers),
        counted: this.#now,
      });
      this.#now = { ...NONE };
    }
    this.#seconds = over;
  }

  totals(nowMs: number): Omit<LiveTotals, 'codes'> {
    this.advance(nowMs);
    const { calls, failed, dropped, attempts, rateLimited, tried } = add({ ...this.#sum }, this.#now, 1);
    return {
      ...{ calls, failed, dropped, attempts, rateLimited },
      rateLimitedShare: attempts === 0 ? null : rateLimited / attempts,
      amplification: tried === 0 ? null : attempts / tried,
    };
  }

  /** Of the last minute. */
  firstContentOf(nowMs: number): { readonly p50Ms: number | null; readonly p95Ms: number | null } {
    const [p50Ms, p95Ms] = this.#quantiles(nowMs, SLOTS_OF_A_MINUTE);
    return { p50Ms, p95Ms };
  }

  /** Those after the first `added`. Breakers are named where they differ from the point before, and in the first. */
  since(added: number): readonly LivePoint[] {
    let before: Readonly<Record<string, BreakerState>> | undefined;
    return this.#points.since(added).map(({ counted: _counted, breakers = {}, ...point }) => {
      const differs = breakers !== before;
      before = breakers;
      return differs ? { ...point, breakers } : point;
    });
  }

  #push(point: LivePoint & { readonly counted: Counted }): void {
    const gone = this.#points.push(point);
    add(this.#sum, point.counted, 1);
    if (gone !== undefined) add(this.#sum, gone.counted, -1);
  }

  #breakersOf({ breakers }: LiveSample): Readonly<Record<string, BreakerState>> {
    if (this.#worst.size === 0) return this.#same(breakers);
    const worst = { ...breakers };
    for (const [name, state] of this.#worst) {
      const now = worst[name];
      if (now !== undefined && BADNESS[state] > BADNESS[now]) worst[name] = state;
    }
    this.#worst.clear();
    return this.#same(worst);
  }

  /** One object as long as nothing changes: five minutes of the same cost nothing. */
  #same(breakers: Readonly<Record<string, BreakerState>>): Readonly<Record<string, BreakerState>> {
    const names = Object.keys(breakers);
    const known = this.#breakers;
    const same = names.length === Object.keys(known).length && names.every((name) => known[name] === breakers[name]);
    return same ? known : (this.#breakers = breakers);
  }

  #quantiles(nowMs: number, slots: number): readonly [number | null, number | null] {
    const [p50, p95] = this.#firstContent.quantiles(nowMs, slots, [0.5, 0.95]);
    return [p50 ?? null, p95 ?? null];
  }
}

function add(sum: Writable<Counted>, counted: Counted, sign: 1 | -1): Writable<Counted> {
  for (const key of Object.keys(NONE) as (keyof Counted)[]) sum[key] += sign * counted[key];
  return sum;
}
