import type { CallStage } from '../core/errors.ts';

export interface StageLimits {
  readonly headersMs: number;
  readonly firstContentMs: number;
  readonly idleMs: number;
  readonly tailMs: number;
  readonly responseMs: number;
  /** Monotonic milliseconds; holds up to the first content, and for the whole of an answer that is not streamed. */
  readonly deadlineAtMs: number;
}

/** Which limit was reached. That of the tail is no failure: it was waited long enough for what may follow the answer. */
export type StageCut =
  | { readonly kind: 'limit'; readonly stage: CallStage; readonly limitMs: number }
  | { readonly kind: 'deadline'; readonly stage: CallStage }
  | { readonly kind: 'tail'; readonly stage: CallStage };

/**
 * Knows when an attempt has to be cut. It has no timer and reads no clock: it is told what happens and when, and says
 * when the next limit is reached if nothing else happens. Progress moves that instant back, which costs one assignment.
 *
 * Limits but the deadline stand still between `pause` and `resume`.
 */
export class StageTimers {
  readonly #limits: StageLimits;
  readonly #streamed: boolean;
  #stage: 'unsent' | 'headers' | 'first_content' | 'streaming' | 'tail' | 'response' = 'unsent';
  #sentAtMs = 0;
  /** When the running stage's own limit is reached. */
  #limitAtMs = Infinity;
  #pausedAtMs: number | undefined;

  constructor(limits: StageLimits, streamed: boolean) {
    this.#limits = limits;
    this.#streamed = streamed;
  }

  get stage(): CallStage {
    return this.#stage === 'unsent' ? 'entry' : this.#stage;
  }

  dispatched(nowMs: number): void {
    if (this.#stage !== 'unsent') return;
    const { headersMs, firstContentMs, responseMs } = this.#limits;
    this.#stage = this.#streamed ? 'headers' : 'response';
    this.#sentAtMs = nowMs;
    this.#limitAtMs = nowMs + (this.#streamed ? Math.min(headersMs, firstContentMs) : responseMs);
  }

  headed(): void {
    if (this.#stage === 'headers') this.#awaitContent();
  }

  /** What was taken for a whole answer turns out to be a stream. */
  streams(): void {
    if (this.#stage === 'response') this.#awaitContent();
  }

  /** Content, or what else proves that the answer goes on. Before the first content only content counts. */
  progress(nowMs: number): void {
    // The tail is as long as it is, whatever comes in it.
    if (this.#stage === 'tail') return;
    if (this.#pausedAtMs !== undefined) this.#pausedAtMs = nowMs;
    if (this.#stage === 'first_content' || this.#stage === 'headers') this.#stage = 'streaming';
    if (this.#stage === 'streaming') this.#limitAtMs = nowMs + this.#limits.idleMs;
  }

  finished(nowMs: number): void {
    this.#stage = 'tail';
    this.#limitAtMs = nowMs + this.#limits.tailMs;
  }

  pause(nowMs: number): void {
    this.#pausedAtMs ??= nowMs;
  }

  resume(nowMs: number): void {
    if (this.#pausedAtMs === undefined) return;
    const pausedMs = nowMs - this.#pausedAtMs;
    this.#sentAtMs += pausedMs;
    this.#limitAtMs += pausedMs;
    this.#pausedAtMs = undefined;
  }

  /** When the next limit is reached if nothing happens until then; `Infinity` where none runs. */
  dueAtMs(): number {
    return Math.min(this.#pausedAtMs === undefined ? this.#limitAtMs : Infinity, this.#deadlineAtMs);
  }

  /** What {@link dueAtMs} leads to. Call it when that instant has come. */
  cut(): StageCut {
    const { stage } = this;
    if (this.#deadlineAtMs <= this.dueAtMs()) return { kind: 'deadline', stage };
    const { headersMs, firstContentMs, idleMs, responseMs } = this.#limits;
    switch (this.#stage) {
      case 'headers':
        return headersMs < firstContentMs
          ? { kind: 'limit', stage, limitMs: headersMs }
          : { kind: 'limit', stage: 'first_content', limitMs: firstContentMs };
      case 'first_content':
        return { kind: 'limit', stage, limitMs: firstContentMs };
      case 'response':
        return { kind: 'limit', stage, limitMs: responseMs };
      case 'tail':
        return { kind: 'tail', stage };
      default:
        return { kind: 'limit', stage, limitMs: idleMs };
    }
  }

  #awaitContent(): void {
    this.#stage = 'first_content';
    this.#limitAtMs = this.#sentAtMs + this.#limits.firstContentMs;
  }

  get #deadlineAtMs(): number {
    const committed = this.#stage === 'streaming' || this.#stage === 'tail' || this.#stage === 'unsent';
    return committed ? Infinity : this.#limits.deadlineAtMs;
  }
}
