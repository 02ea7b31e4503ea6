import type { SluiceEvent } from '../../core/events.ts';
import { clipped } from './clipped.ts';
import type { LiveAttempt, LiveCall, LiveWait } from './LiveFrame.ts';

type EventOf<T extends SluiceEvent['type']> = Extract<SluiceEvent, { readonly type: T }>;

/** Attempts, and waits, that are kept of one call. */
const MOST = 12;

interface OpenAttempt {
  readonly number: number;
  firstContentMs: number | undefined;
}

/** What one call has been through so far. */
export class CallTrail {
  /** When it began; `undefined` where its beginning was not seen. */
  readonly #beganMs: number | undefined;
  readonly #attempts: (LiveAttempt & { readonly absoluteMs: number })[] = [];
  readonly #waits: (LiveWait & { readonly absoluteMs: number })[] = [];
  #open: OpenAttempt[] = [];
  /** It waits since then. */
  #queued: EventOf<'queued'> | undefined;
  #firstContentAtMs: number | undefined;

  constructor(first: SluiceEvent) {
    this.#beganMs = beginningOf(first);
  }

  queued(event: EventOf<'queued'>): void {
    this.#queued = event;
  }

  granted({ atMs, where, waitedMs }: EventOf<'granted'>): void {
    this.#queued = undefined;
    this.#waited(where, atMs - waitedMs, waitedMs);
  }

  /** It waits no more, and got nothing. */
  turnedAway(atMs: number): void {
    const queued = this.#queued;
    this.#queued = undefined;
    if (queued !== undefined) this.#waited(queued.where, queued.atMs, atMs - queued.atMs);
  }

  attemptStarted({ attempt }: EventOf<'attempt.started'>): void {
    if (this.#attempts.length + this.#open.length >= MOST) return;
    this.#open.push({ number: attempt, firstContentMs: undefined });
  }

  /** Returns the time since the call began, the first time, where that is known. */
  committed({ attempt, atMs, firstContentMs }: EventOf<'committed'>): number | undefined {
    const open = this.#open.findLast(({ number }) => number === attempt);
    if (open !== undefined) open.firstContentMs = firstContentMs;
    if (this.#firstContentAtMs !== undefined) return undefined;
    this.#firstContentAtMs = atMs;
    return this.#beganMs === undefined ? undefined : atMs - this.#beganMs;
  }

  attemptEnded(event: EventOf<'attempt.ended'>): void {
    const { attempt, model, atMs, durationMs, outcome, code, status } = event;
    const open = this.#open.findLast(({ number }) => number === attempt);
    this.#open = this.#open.filter((other) => other !== open);
    if (open === undefined && this.#attempts.length >= MOST) return;
    const firstContentMs = open?.firstContentMs;
    const absoluteMs = atMs - durationMs;
    this.#attempts.push({
      model: clipped(model),
      atMs: 0,
      durationMs,
      firstContentMs,
      outcome,
      code,
      status,
      absoluteMs,
    });
  }

  ended(event: EventOf<'call.ended'>, number: number, wallOffsetMs: number): LiveCall {
    const { callId, tenant, atMs, durationMs, outcome, code, attempts, usage, wastedTokens, cost } = event;
    const beganMs = atMs - durationMs;
    this.turnedAway(atMs);
    const model = clipped(event.model);
    const answeredBy = this.#attempts.at(-1)?.model;
    const placed = <T extends { readonly absoluteMs: number }>({ absoluteMs, ...rest }: T): Omit<T, 'absoluteMs'> => ({
      ...rest,
      atMs: Math.max(0, absoluteMs - beganMs),
    });
    return {
      number,
      callId,
      beganWallMs: beganMs + wallOffsetMs,
      model,
      answeredBy: outcome === 'success' && answeredBy !== model ? answeredBy : undefined,
      tenant: clipped(tenant),
      outcome,
      code,
      durationMs,
      firstContentMs: this.#firstContentAtMs === undefined ? undefined : this.#firstContentAtMs - beganMs,
      attemptCount: attempts,
      attempts: this.#attempts.map(placed),
      waits: this.#waits.map(placed),
      tokens: usage === undefined ? undefined : usage.inputTokens + usage.outputTokens + (wastedTokens ?? 0),
      cost,
    };
  }

  #waited(where: LiveWait['where'], absoluteMs: number, durationMs: number): void {
    if (durationMs <= 0 || this.#waits.length >= MOST) return;
    this.#waits.push({ where, atMs: 0, durationMs, absoluteMs });
  }
}

/** A call is seen from its beginning if this is the first thing heard of it. */
function beginningOf(event: SluiceEvent): number | undefined {
  if (event.attempt !== 1) return undefined;
  if (event.type === 'granted') return event.atMs - event.waitedMs;
  return event.type === 'queued' || event.type === 'refused' || event.type === 'attempt.started'
    ? event.atMs
    : undefined;
}
