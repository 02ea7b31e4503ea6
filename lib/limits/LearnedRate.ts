import type { LimitReading, RateLimitHints } from '../core/hints.ts';
import type { LayerSnapshot } from '../core/ports.ts';
import { BetweenRejections } from './BetweenRejections.ts';
import type { Between, SentMark } from './BetweenRejections.ts';
import type { MinuteBucket } from './MinuteBucket.ts';
import { paceAt } from './ProbePace.ts';
import { QuotaLayer } from './QuotaLayer.ts';
import type { LayerOptions } from './QuotaLayer.ts';
import { RateSearch } from './RateSearch.ts';
import { SlidingSums } from './SlidingSums.ts';

const MINUTE_MS = 60_000;
/** So large that it limits nothing. */
const UNLIMITED = 1e9;
/** No first guess is lower, and none from fewer than `FEW` attempts. */
const LEAST_GUESS = 60;
const LEAST_OF_FEW = 600;
/** How often growth is looked at while everyone waits. */
const LOOK_MS = 250;
/** Fewer than that between two rejections tell no rate, only that it is lower. */
const FEW = 8;
/** Kept free in the provider's bucket after a rejection, so that what arrives early finds room. */
const RESERVE_MS = 60;
/** After a rejection nothing is sent for so long at most; twice as long for each time that nothing had passed since the last. */
const LONGEST_DEBT_MS = 1200;
const LONGEST_SLOW_DEBT_MS = 28_000;
/** A fallen rate is back once so much more than it had been was sent: no bucket over there explains it. */
const BURST_MS = 1000;
/** What was configured is right again after so long at it without a rejection. */
const CALM_MS = 10_000;
/** What was sent in this time is what a first guess is made from. */
const RECENT_MS = 10_000;

/**
 * Keeps the layer of one deployment at what its provider really allows. Pure: times are passed in.
 *
 * Nothing is changed before a first rejection. From then on the distance between two of them measures the rate (see
 * {@link BetweenRejections}), and {@link RateSearch} says how to probe it. A limit that the provider names is taken at once,
 * as the most. On which side a bound itself falls that a measurement is compared with matters nowhere.
 */
export class LearnedRate {
  readonly layer: QuotaLayer;
  readonly #options: LayerOptions;
  /** The least rate of the layers that it shares with others. */
  readonly #sharedPerMinute: number;
  readonly #between = new BetweenRejections();
  readonly #recent = new SlidingSums(RECENT_MS);
  #firstAtMs: number | undefined;
  /** Per minute, as all below. What the buckets are set to. */
  #set: number;
  #named = Infinity;
  /** Rejections that were new, although the limit had been named. */
  #inSpite = 0;
  /** `undefined`: nothing was rejected yet. */
  #search: RateSearch | undefined;
  /** Attempts up to this one had been sent before the last rejection was heard: theirs tell of the same moment. */
  #heardOrder = 0;
  /** When the next after it was sent. */
  #freshFromMs = 0;
  #cluster = 0;
  /** Of the first rejection, while that is all that is known. */
  #guessing = false;
  #firstRefused = 0;
  #owed = 0;
  /** How often in a row nothing had passed since the last rejection. */
  #nothingPassed = 0;
  /** Something had, so that the rejection is the end of a measurement. */
  #expected = false;
  #doing: 'idle' | 'paused' | 'probing' = 'idle';
  #lookedAtMs = 0;
  /** Since the last rejection: while someone waited for the rate; while nobody did; and while it was as configured. */
  #probedMs = 0;
  #idleMs = 0;
  #calmMs = 0;
  /** What was sent beyond the estimate, in milliseconds of it. */
  #excessMs = 0;

  /** @throws SluiceError `invalid_option` */
  constructor(name: string, options: LayerOptions, sharedPerMinute: number, arrivalMarginMs: number, nowMs: number) {
    this.#sharedPerMinute = sharedPerMinute;
    this.#options = {
      requestsPerMinute: options.requestsPerMinute ?? UNLIMITED,
      burstRequests: options.burstRequests,
      tokensPerMinute: options.tokensPerMinute ?? UNLIMITED,
      burstTokens: options.burstTokens,
    };
    this.#set = this.#most;
    this.layer = new QuotaLayer(name, this.#options, arrivalMarginMs, nowMs);
  }

  /** What limits nothing is not shown. */
  snapshot(nowMs: number): LayerSnapshot {
    const { requests, tokens } = this.layer.snapshot(nowMs);
    const shown = (bucket: LayerSnapshot['requests']): LayerSnapshot['requests'] =>
      bucket && bucket.perMinute < UNLIMITED ? bucket : undefined;
    return { layer: this.layer.name, requests: shown(requests), tokens: shown(tokens) };
  }

  sent(nowMs: number): SentMark {
    this.#firstAtMs ??= nowMs;
    this.#recent.add(nowMs, 1, 0);
    const mark = this.#between.send(nowMs);
    if (mark.order === this.#heardOrder + 1) this.#freshFromMs = nowMs;
    return mark;
  }

  /** It did not arrive. */
  lost(mark: SentMark): void {
    this.#between.uncount(mark);
  }

  /**
   * Lets the rate grow while someone waits for it. `pausedMs`: for how long they wait for something else; `waitMs`: for the
   * rate. Returns when to do so again, at the latest, in milliseconds.
   */
  advance(nowMs: number, pausedMs: number, waitMs: number): number {
    const search = this.#search;
    if (search === undefined) return Infinity;
    const passedMs = nowMs - this.#lookedAtMs;
    this.#lookedAtMs = nowMs;
    const probed = this.#doing === 'probing';
    if (probed) {
      this.#probedMs += passedMs;
      this.#excessMs += passedMs * (this.#set / search.estimate - 1);
    } else if (this.#doing === 'idle') this.#idleMs += passedMs;
    // What was rejected is paid off first.
    const owing = this.#bucket.level(nowMs) < -1;
    this.#doing = pausedMs > 0 || owing ? 'paused' : waitMs > 0 ? 'probing' : 'idle';
    if (this.#set < this.#most) this.#grow(nowMs, search, probed ? passedMs : 0);
    return this.#set < this.#most ? LOOK_MS : Infinity;
  }

  /** An attempt was rejected for its rate. Whether it was the end of a measurement, so that nobody need pause. */
  rejected(nowMs: number, mark: SentMark): boolean {
    this.#between.uncount(mark);
    if (mark.order <= this.#heardOrder) {
      this.#cluster++;
      if (this.#guessing) {
        this.#firstRefused++;
        this.#guess(nowMs, this.#search as RateSearch);
      } else this.#search?.stretch(nowMs, this.#cluster);
      return this.#expected;
    }
    const fresh = mark.order - this.#heardOrder - 1;
    this.#heardOrder = this.#between.sent;
    this.#cluster = 1;
    this.#expected = this.#search !== undefined && fresh > 0;
    // A rate that is named is the right one, unless rejections go on: then others have a part of it.
    const inSpite = this.#named < Infinity && ++this.#inSpite <= 2;
    if (this.#search) this.#measure(nowMs, this.#search, mark, fresh);
    else if (!inSpite) this.#begin(nowMs, mark);
    if (!this.#guessing) this.#empty(nowMs, mark);
    this.#probedMs = this.#idleMs = this.#excessMs = this.#calmMs = 0;
    this.#lookedAtMs = nowMs;
    return this.#expected;
  }

  reported(nowMs: number, hints: RateLimitHints): void {
    const tokens = perMinute(hints.tokens);
    const mostTokens = Math.min(tokens ?? NaN, this.#options.tokensPerMinute as number);
    if (tokens !== undefined && mostTokens !== (this.layer.tokens as MinuteBucket).perMinute) {
      this.layer.setRate(nowMs, { tokensPerMinute: mostTokens, burstTokens: this.#options.burstTokens });
    }
    const requests = perMinute(hints.requests);
    if (requests === undefined || requests === this.#named) return;
    this.#named = requests;
    this.#search = undefined;
    this.#guessing = false;
    this.#inSpite = 0;
    this.#apply(nowMs, this.#most);
  }

  get #bucket(): MinuteBucket {
    return this.layer.requests as MinuteBucket;
  }

  /** A named limit that shared layers keep anyway is left to them, who know its burst. */
  get #most(): number {
    const own = this.#options.requestsPerMinute as number;
    return this.#named < this.#sharedPerMinute ? Math.min(own, this.#named) : own;
  }

  /** What was asked for, here or in the layers that are shared. */
  get #configured(): number {
    const perMinute = Math.min(this.#most, this.#sharedPerMinute);
    return perMinute < UNLIMITED ? perMinute : Infinity;
  }

  #begin(nowMs: number, mark: SentMark): void {
    const { passed, overMs } = this.#lately(nowMs);
    const configured = this.#configured;
    // It held for a while, so it may be back.
    const held = overMs >= 5000 && passed > (0.5 * configured * overMs) / MINUTE_MS;
    const search = new RateSearch(nowMs, configured, held && this.#named === Infinity ? configured : undefined);
    this.#search = search;
    this.#guessing = true;
    this.#firstRefused = this.#nothingPassed = 0;
    // What passed next to those that were rejected with it had been there before.
    this.#between.mark({ order: this.#heardOrder, atMs: mark.atMs });
    this.#guess(nowMs, search);
  }

  /** From the first rejection: what was configured, else what got through, as far as is known by now. */
  #guess(nowMs: number, search: RateSearch): void {
    const { passed, overMs } = this.#lately(nowMs);
    const seen = ((passed - this.#firstRefused - 1) * MINUTE_MS) / overMs;
    const configured = this.#configured;
    search.guess(configured < Infinity ? configured : Math.max(passed < FEW ? LEAST_OF_FEW : LEAST_GUESS, seen));
    this.#follow(nowMs, search);
    this.#bucket.reset(nowMs, 0);
  }

  #lately(nowMs: number): { readonly passed: number; readonly overMs: number } {
    const overMs = Math.min(this.#recent.reachMs(nowMs), nowMs - (this.#firstAtMs ?? nowMs));
    return { passed: this.#recent.first(nowMs), overMs: Math.max(1000, overMs) };
  }

  #measure(nowMs: number, search: RateSearch, mark: SentMark, fresh: number): void {
    this.#guessing = false;
    const between = this.#between.until(mark);
    if (between === undefined) {
      this.#between.mark(mark);
      search.again();
    } else {
      this.#judge(nowMs, search, mark, fresh, between);
      search.stretch(nowMs, this.#cluster);
    }
    this.#follow(nowMs, search);
  }

  #judge(nowMs: number, search: RateSearch, mark: SentMark, fresh: number, between: Between): void {
    const wasInDebt = this.#nothingPassed > 0;
    this.#nothingPassed = fresh === 0 ? this.#nothingPassed + 1 : 0;
    this.#owed = fresh === 0 ? between.refused + this.#firstRefused : 0;
    // While nobody waited the bucket over there may have filled up: what passed since tells nothing.
    const idle = this.#idleMs > 0.3 * between.overMs;
    // After a first burst that shows a debt over there, not a lower rate.
    const inDebt = fresh === 0 && this.#firstRefused > 3 && this.#nothingPassed < 3;
    if (wasInDebt && fresh > 0) {
      const passed = (fresh * MINUTE_MS) / Math.max(1, mark.atMs - this.#freshFromMs);
      search.afterDebt(Math.min(0.85 * this.#set, passed));
    } else if (!idle && fresh >= FEW) search.measured(nowMs, between, this.#set);
    else if (!idle && !inDebt) search.tooFew(nowMs, between, this.#nothingPassed < 2);
    if (fresh > 0) this.#firstRefused = 0;
    if (idle || fresh > 0) this.#between.mark(mark);
  }

  /** The bucket over there was empty as this one arrived. */
  #empty(nowMs: number, mark: SentMark): void {
    const perMs = Math.min(this.#search?.estimate ?? this.#set, this.#set, this.#sharedPerMinute) / MINUTE_MS;
    const level = perMs * (nowMs - mark.atMs) - (this.#between.sent - mark.order) - this.#owed;
    const longestMs = this.#search?.slow
      ? LONGEST_SLOW_DEBT_MS
      : LONGEST_DEBT_MS * 2 ** Math.min(4, this.#nothingPassed);
    this.#bucket.lower(nowMs, Math.max(level, -perMs * longestMs) - perMs * RESERVE_MS);
  }

  #grow(nowMs: number, search: RateSearch, passedMs: number): void {
    const grown = search.estimate * paceAt(search.pace, this.#probedMs);
    const known = (this.#named === Infinity ? search.remembered(nowMs) : undefined) ?? Infinity;
    const configured = this.#configured;
    if (grown >= known && this.#excessMs > (BURST_MS * known) / search.estimate) {
      search.returned(known);
      this.#between.forget();
      this.#probedMs = this.#excessMs = 0;
      this.#follow(nowMs, search);
    } else if (this.#set >= configured && (this.#calmMs += passedMs) > CALM_MS) {
      this.#search = undefined;
      this.#apply(nowMs, UNLIMITED);
    } else {
      const next = Math.min(grown, known, configured);
      if (Math.abs(next - this.#set) > 0.001 * this.#set) this.#apply(nowMs, next);
    }
  }

  #follow(nowMs: number, search: RateSearch): void {
    this.#apply(nowMs, search.estimate * paceAt(search.pace, 0));
  }

  #apply(nowMs: number, rate: number): void {
    const set = Math.max(1, Math.min(rate, this.#most));
    if (set === this.#set) return;
    this.#set = set;
    const { requestsPerMinute, burstRequests } = this.#options;
    // Half a second's worth: it is not known how much the provider takes at once.
    const burst = Math.max(1 + set / 600, set / 120);
    this.layer.setRate(nowMs, {
      requestsPerMinute: set,
      burstRequests: set === requestsPerMinute ? burstRequests : Math.min(burstRequests ?? burst, burst),
    });
  }
}

function perMinute(reading: LimitReading | undefined): number | undefined {
  if (reading?.limit === undefined || !(reading.limit > 0) || !(reading.windowMs > 0)) return undefined;
  return reading.windowMs <= MINUTE_MS ? (reading.limit * MINUTE_MS) / reading.windowMs : undefined;
}
