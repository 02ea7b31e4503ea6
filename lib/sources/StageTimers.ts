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
  /** Since when the running stage's own limit counts. */
  #sinceMs = 0;
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
    this.#stage = this.#streamed ? 'headers' : 'response';
    this.#sentAtMs = nowMs;
  }

  headed(): void {
    if (this.#stage === 'headers') this.#stage = 'first_content';
  }

  /** What was taken for a whole answer turns out to be a stream. */
  streams(): void {
    if (this.#stage === 'response') this.#stage = 'first_content';
  }

  /** Content, or what else proves that the answer goes on. Before the first content only content counts. */
  progress(nowMs: number): void {
    // The tail is as long as it is, whatever comes in it.
    if (this.#stage === 'tail') return;
    this.#sinceMs = nowMs;
    if (this.#pausedAtMs !== undefined) this.#pausedAtMs = nowMs;
    if (this.#stage === 'first_content' || this.#stage === 'headers') this.#stage = 'streaming';
  }

  finished(nowMs: number): void {
    this.#sinceMs = nowMs;
    this.#stage = 'tail';
  }

  pause(nowMs: number): void {
    this.#pausedAtMs ??= nowMs;
  }

  resume(nowMs: number): void {
    if (this.#pausedAtMs === undefined) return;
    const pausedMs = nowMs - this.#pausedAtMs;
    this.#sentAtMs += pausedMs;
    this.#sinceMs += pausedMs;
    this.#pausedAtMs = undefined;
  }

  /** When the next limit is reached if nothing happens until then; `Infinity` where none runs. */
  dueAtMs(): number {
    return Math.min(this.#limitAtMs(), this.#deadlineAtMs());
  }

  /** What {@link dueAtMs} leads to. Call it when that instant has come. */
  cut(): StageCut {
    const { stage } = this;
    if (this.#deadlineAtMs() <= this.#limitAtMs()) return { kind: 'deadline', stage };
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

  #limitAtMs(): number {
    if (this.#pausedAtMs !== undefined) return Infinity;
    const { headersMs, firstContentMs, idleMs, tailMs, responseMs } = this.#limits;
    switch (this.#stage) {
      case 'unsent':
        return Infinity;
      case 'headers':
        return this.#sentAtMs + Math.min(headersMs, firstContentMs);
      case 'first_content':
        return this.#sentAtMs + firstContentMs;
      case 'response':
        return this.#sentAtMs + responseMs;
      case 'streaming':
        return this.#sinceMs + idleMs;
      case 'tail':
        return this.#sinceMs + tailMs;
    }
  }

  #deadlineAtMs(): number {
    const committed = this.#stage === 'streaming' || this.#stage === 'tail' || this.#stage === 'unsent';
    return committed ? Infinity : this.#limits.deadlineAtMs;
  }
}
