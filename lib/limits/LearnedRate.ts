import type { LimitReading, RateLimitHints } from '../core/hints.ts';
import type { LayerSnapshot } from '../core/ports.ts';
import { QuotaLayer } from './QuotaLayer.ts';
import { SlidingSums } from './SlidingSums.ts';
import type { LayerOptions } from './QuotaLayer.ts';

const MINUTE_MS = 60_000;
/** So large that it limits nothing. */
const UNLIMITED = 1e9;
/** The first cut, where nothing has been measured yet: of the rate that was configured. */
const FIRST_CUT = 0.5;
/** Where none was: what got through, or at least this part of what was sent. */
const UNKNOWN_SHARE = 0.125;
/** One rejection alone is no reason to go slower than that, per minute. */
const LEAST_GUESS = 600;
/** A measurement takes so many requests, and so long. Without one the rate is cut by `UNSEEN_CUT`. */
const LEAST_ARRIVED = 10;
const LEAST_MS = 2000;
const UNSEEN_CUT = 0.8;
/** No one measurement is believed below this part of the last. */
const FURTHEST = 0.4;
/** How often growth is looked at while everyone waits. */
const LOOK_MS = 500;
/** What was sent of late, less a second's worth for the burst over there, got through: measured where the rate had been too
 * low to fill that. */
const RECENT_MS = 8000;
/** Kept below what was measured, so that noise is not answered 429. */
const BELOW = 0.98;
/** Two measurements this close are one and the same rate. */
const AGREE = 0.1;
/** How growth begins after a rejection: `heldMs` of none, then `first` of the rate, twice as much every `doublesMs`. */
const SEARCHING = { heldMs: 1500, first: 0.03, doublesMs: 1000 };
const SETTLED = { heldMs: 10_000, first: 0.005, doublesMs: 1500 };
/** Slow providers are probed less often: there one rejection is a large part of the traffic. */
const SLOW_PER_MINUTE = 600;
const SLOW_HELD_MS = 25_000;
/** A rate that held before a fall is gone back to for so long. */
const REMEMBERED_MS = 60_000;

/**
 * Keeps the layer of one deployment at what its provider really allows. Pure: times are passed in.
 *
 * A rejection says that the provider's bucket is empty. Between two of them it has let in what was sent, no more and no
 * less, so their distance measures its rate, whatever its burst; what was rejected counts as sent, as providers count it.
 * From the measured rate growth is nothing at first and then exponential, until the next rejection: slow while two
 * measurements agree, fast after a fall, back up to the rate that held before it.
 *
 * A limit that the provider names is taken at once, as the most.
 */
export class LearnedRate {
  readonly layer: QuotaLayer;
  readonly #options: LayerOptions;
  /** The least rate of the layers that it shares with others. */
  readonly #sharedPerMinute: number;
  /** Per minute, as all below. What the buckets are set to. */
  #set: number;
  /** As measured last. `undefined`: nothing was rejected yet. */
  #measured: number | undefined;
  #named = Infinity;
  #before = { perMinute: 0, atMs: -Infinity };
  #searching = true;
  readonly #recent = new SlidingSums(RECENT_MS);
  #sent = 0;
  #heldFromMs = -Infinity;
  /** Rejections that were new, although the limit had been named. */
  #inSpite = 0;
  #unanswered = 0;
  #firstAtMs: number | undefined;
  /** Of the last rejection that was a new one, and what had arrived over there by then. */
  #eventAtMs = -Infinity;
  #eventArrived = 0;

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

  sent(nowMs: number): void {
    this.#firstAtMs ??= nowMs;
    this.#sent++;
    this.#recent.add(nowMs, 1, 0);
    this.#unanswered++;
    this.#grow(nowMs);
  }

  /** Lets the rate grow. Returns when to do so again, at the latest, in milliseconds. */
  advance(nowMs: number): number {
    this.#grow(nowMs);
    return this.#measured === undefined || this.#set >= this.#most ? Infinity : LOOK_MS;
  }

  answered(): void {
    this.#unanswered--;
  }

  /** An attempt that was sent then was rejected for its rate. Call it before `answered`. */
  rejected(nowMs: number, sentAtMs: number): void {
    const { requests } = this.layer;
    if (sentAtMs < this.#eventAtMs) {
      // It tells of the same moment. The bucket over there is charged for it all the same.
      requests?.chargeMore(nowMs, 1);
      return;
    }
    // A rate that is named is the right one, unless rejections go on: then others have a part of it.
    if (this.#named === Infinity || ++this.#inSpite > 2) this.#measure(nowMs);
    this.#eventAtMs = this.#heldFromMs = nowMs;
    this.#eventArrived = this.#sent - this.#unanswered;
    requests?.report(nowMs, { limit: undefined, remaining: 0, resetMs: undefined, windowMs: MINUTE_MS }, undefined);
  }

  reported(nowMs: number, hints: RateLimitHints): void {
    const tokens = perMinute(hints.tokens);
    const mostTokens = this.#options.tokensPerMinute as number;
    if (tokens !== undefined && Math.min(tokens, mostTokens) !== this.layer.tokens?.perMinute) {
      this.layer.setRate(nowMs, {
        tokensPerMinute: Math.min(tokens, mostTokens),
        burstTokens: this.#options.burstTokens,
      });
    }
    const requests = perMinute(hints.requests);
    if (requests === undefined || requests === this.#named) return;
    this.#named = requests;
    this.#measured = undefined;
    this.#inSpite = 0;
    this.#apply(nowMs, requests);
  }

  get #most(): number {
    return Math.min(this.#options.requestsPerMinute as number, this.#named);
  }

  #measure(nowMs: number): void {
    const before = this.#measured;
    if (before === undefined) {
      const passed = Math.max(this.#sent - this.#unanswered, UNKNOWN_SHARE * this.#sent);
      const configured = Math.min(this.#set, this.#sharedPerMinute);
      const guess = configured < UNLIMITED ? configured * FIRST_CUT : (passed * MINUTE_MS) / this.#overMs(nowMs);
      this.#measured = Math.max(LEAST_GUESS, guess);
      this.#apply(nowMs, this.#measured);
      return;
    }
    const overMs = nowMs - this.#eventAtMs;
    const arrived = this.#sent - this.#unanswered - this.#eventArrived;
    // Too little to measure anything by: still in the debt of the last time.
    const tail = ((this.#recent.first(nowMs) - before / 60) * MINUTE_MS) / RECENT_MS;
    const measurable = arrived >= LEAST_ARRIVED && overMs >= LEAST_MS;
    const seen = measurable
      ? Math.max(
          FURTHEST * before,
          (arrived * MINUTE_MS) / overMs,
          Math.min(tail, this.#searching ? Infinity : 1.1 * before),
        )
      : UNSEEN_CUT * before;
    const fell = seen < before * (1 - AGREE);
    if (fell && !this.#searching) this.#before = { perMinute: before, atMs: nowMs };
    // While it is settled the provider's bucket runs over at times, and what is lost there is not to be believed.
    this.#measured = fell || this.#searching ? seen : Math.max(seen, (seen + 3 * before) / 4);
    this.#searching = !measurable || Math.abs(seen - before) > before * AGREE;
    this.#apply(nowMs, this.#measured * BELOW);
  }

  #overMs(nowMs: number): number {
    return Math.max(1000, nowMs - (this.#firstAtMs ?? nowMs));
  }

  #grow(nowMs: number): void {
    if (this.#measured === undefined || this.#set >= this.#most) return;
    const pace = this.#searching ? SEARCHING : SETTLED;
    const heldMs = this.#measured < SLOW_PER_MINUTE && !this.#searching ? SLOW_HELD_MS : pace.heldMs;
    // Nothing is learned while what was rejected is paid off.
    if ((this.layer.requests?.level(nowMs) ?? 0) < -1) this.#heldFromMs = nowMs;
    const growingMs = nowMs - this.#heldFromMs - heldMs;
    if (growingMs <= 0) return;
    const grown = this.#measured * (BELOW + pace.first * (2 ** (growingMs / pace.doublesMs) - 1));
    const { perMinute: known, atMs } = this.#before;
    if (grown >= known * BELOW && this.#measured < known * BELOW && nowMs - atMs < REMEMBERED_MS) {
      // As it was before the fall: from here on probe slowly.
      this.#measured = known;
      this.#searching = false;
      this.#eventAtMs = this.#heldFromMs = nowMs;
      this.#eventArrived = this.#sent - this.#unanswered;
      this.#apply(nowMs, known * BELOW);
    } else if (grown > this.#set * 1.005) this.#apply(nowMs, grown);
  }

  #apply(nowMs: number, rate: number): void {
    const set = Math.max(1, Math.min(rate, this.#most));
    if (set === this.#set) return;
    this.#set = set;
    const burst = Math.max(1, set / 60);
    this.layer.setRate(nowMs, {
      requestsPerMinute: set,
      burstRequests: Math.min(this.#options.burstRequests ?? burst, burst),
    });
  }
}

function perMinute(reading: LimitReading | undefined): number | undefined {
  if (reading?.limit === undefined || !(reading.limit > 0) || !(reading.windowMs > 0)) return undefined;
  return reading.windowMs <= MINUTE_MS ? (reading.limit * MINUTE_MS) / reading.windowMs : undefined;
}
