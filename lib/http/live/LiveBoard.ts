import type { SluiceEvent } from '../../core/events.ts';
import type { Clock } from '../../core/runtime.ts';
import { CallTrail } from './CallTrail.ts';
import { clipped } from './clipped.ts';
import { LiveChanges } from './LiveChanges.ts';
import type { LiveCall, LiveFrame } from './LiveFrame.ts';
import { LiveSeries } from './LiveSeries.ts';
import type { LiveSample } from './LiveSeries.ts';
import type { LiveSnapshot } from './LiveSource.ts';
import { liveStanding } from './liveStanding.ts';
import type { LiveBounds } from './liveStanding.ts';
import { Recent } from './Recent.ts';
import { SlidingCounts } from './SlidingCounts.ts';

/** Calls that are followed at once; those beyond are counted, and not listed. */
const FOLLOWED = 10_000;
const LISTED = 100;
/** Calls that one frame brings at most. */
const LISTED_IN_A_FRAME = 30;
const CODES = 6;
const FIVE_MINUTES_MS = 300_000;

/** Up to where a viewer has been told. */
export interface LivePlace {
  readonly points: number;
  readonly calls: number;
  readonly troubled: number;
}

const NOWHERE: LivePlace = { points: 0, calls: 0, troubled: 0 };

/** All that the page shows, put together once for all who look. It is told the events and the time. */
export class LiveBoard {
  readonly #clock: Clock;
  readonly #snapshot: () => LiveSnapshot;
  readonly #bounds: LiveBounds;
  readonly #beganWallMs: number;
  /** From monotonic time to the wall's, as it was at the beginning: a correction of the clock bends no chart. */
  readonly #wallOffsetMs: number;
  readonly #series: LiveSeries;
  readonly #changes = new LiveChanges();
  readonly #codes = new SlidingCounts(FIVE_MINUTES_MS);
  readonly #running = new Map<string, CallTrail>();
  readonly #calls = new Recent<LiveCall>(LISTED);
  readonly #troubled = new Recent<LiveCall>(LISTED);

  constructor(clock: Clock, snapshot: () => LiveSnapshot, bounds: LiveBounds) {
    this.#clock = clock;
    this.#snapshot = snapshot;
    this.#bounds = bounds;
    const nowMs = clock.now();
    this.#beganWallMs = clock.wallNow();
    this.#wallOffsetMs = this.#beganWallMs - nowMs;
    this.#series = new LiveSeries(nowMs, () => this.#sample());
  }

  /** What comes after this. */
  get place(): LivePlace {
    return { points: this.#series.added, calls: this.#calls.added, troubled: this.#troubled.added };
  }

  hear(event: SluiceEvent): void {
    this.#changes.hear(event, event.atMs + this.#wallOffsetMs);
    switch (event.type) {
      case 'queued':
        return this.#follow(event)?.queued(event);
      case 'granted':
        return this.#follow(event)?.granted(event);
      case 'refused':
        return this.#follow(event)?.turnedAway(event.atMs);
      case 'left':
        return this.#running.get(event.callId)?.turnedAway(event.atMs);
      case 'attempt.started':
        return this.#follow(event)?.attemptStarted(event);
      case 'committed': {
        const ms = this.#running.get(event.callId)?.committed(event);
        if (ms !== undefined) this.#series.firstContent(event.atMs, ms);
        return;
      }
      case 'attempt.ended':
        this.#series.attempt(event.atMs, event.status === 429 || event.code === 'rate_limited');
        return this.#running.get(event.callId)?.attemptEnded(event);
      case 'breaker.changed':
        return this.#series.breaker(event.atMs, clipped(event.breaker), event.to);
      case 'call.ended':
        return this.#ended(event);
      case 'hints':
      case 'retry.scheduled':
      case 'limit.changed':
      case 'cooldown':
      case 'fallback':
      case 'restart':
      case 'settled':
      case 'store.changed':
    }
  }

  /** What is new since `place`; from the beginning, everything that is kept. */
  frame(place: LivePlace = NOWHERE): LiveFrame {
    const nowMs = this.#clock.now();
    const listed = place === NOWHERE ? LISTED : LISTED_IN_A_FRAME;
    this.#series.advance(nowMs);
    return {
      wallMs: nowMs + this.#wallOffsetMs,
      beganWallMs: this.#beganWallMs,
      standing: liveStanding(this.#snapshot(), this.#bounds),
      totals: { ...this.#series.totals(nowMs), codes: this.#codes.top(nowMs, CODES) },
      firstContent: this.#series.firstContentOf(nowMs),
      points: this.#series.since(place.points),
      changes: this.#changes.all(),
      calls: this.#calls.since(place.calls, listed),
      troubled: this.#troubled.since(place.troubled, listed),
    };
  }

  #ended(event: Extract<SluiceEvent, { readonly type: 'call.ended' }>): void {
    const { callId, atMs, outcome, code, attempts } = event;
    this.#series.call(atMs, outcome, attempts);
    if (outcome === 'failure') this.#codes.add(atMs, code ?? 'other');
    // Of a call that was running when the watch began, and told nothing since, its end is all there is.
    const trail = this.#running.get(callId) ?? new CallTrail(event);
    this.#running.delete(callId);
    const call = trail.ended(event, this.#calls.added + 1, this.#wallOffsetMs);
    this.#calls.push(call);
    if (outcome === 'failure' || attempts > 1) this.#troubled.push(call);
  }

  /** Only what begins something may begin a trail: an attempt may end after its call has. */
  #follow(event: SluiceEvent): CallTrail | undefined {
    let trail = this.#running.get(event.callId);
    if (trail === undefined && this.#running.size < FOLLOWED) {
      this.#running.set(event.callId, (trail = new CallTrail(event)));
    }
    return trail;
  }

  #sample(): LiveSample {
    const { inFlight, waiting, models } = this.#snapshot().admission;
    const deployments = Object.values(models)
      .slice(0, this.#bounds.maxModels)
      .flatMap((model) => model.deployments);
    const breakers = Object.fromEntries(
      deployments.map(({ name, breaker }) => [clipped(name), breaker.state] as const),
    );
    return { inFlight, waiting, breakers };
  }
}
