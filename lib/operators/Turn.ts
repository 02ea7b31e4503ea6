import type { CallScope } from '../core/CallScope.ts';
import type { AttemptRecord, ErrorCode, SluiceError } from '../core/errors.ts';
import type { Runtime } from '../core/runtime.ts';
import { classifyThrown } from '../wire/classify.ts';

/** The call is over for whoever started it: nothing may be tried, asked or answered instead. */
export const CALL_IS_OVER: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'aborted',
  'superseded',
  'closed',
  'lane_lost',
]);

/** One subscription to a source that stands for an attempt, or for several. Make it before subscribing. */
export class Turn {
  /** The frame to subscribe in. */
  readonly scope: CallScope;
  readonly #runtime: Runtime;
  readonly #startedAtMs: number;
  readonly #dispatchedBefore: number;
  /** Attempts of the call that had failed when the turn began. */
  readonly failedBefore: number;

  constructor(scope: CallScope, runtime: Runtime) {
    this.scope = scope;
    this.#runtime = runtime;
    this.#startedAtMs = runtime.clock.now();
    this.#dispatchedBefore = scope.call.dispatched;
    this.failedBefore = scope.call.failed.length;
  }

  /**
   * What the source ended with, as one of our errors that names every failed attempt of the call. An attempt whose
   * source does not speak to the scope is counted and recorded here.
   */
  failure(thrown: unknown): SluiceError {
    const { call, model } = this.scope;
    const wallNowMs = this.#runtime.clock.wallNow();
    // Stryker disable next-line StringLiteral: a model, and when a wait is over, are all that is asked for
    const error = classifyThrown(thrown, { model, wallNowMs });
    const tried = error.source === 'upstream' || isForeign(thrown, error);
    if (tried && call.failed.length === this.failedBefore) {
      if (call.dispatched === this.#dispatchedBefore) call.dispatched++;
      call.failed.push(this.record(error));
    }
    const namesAll = error.attempts.length >= call.failed.length;
    if (namesAll && (error.model ?? model) === error.model) return error;
    return error.with({ attempts: namesAll ? error.attempts : [...call.failed], model: error.model ?? model });
  }

  record(error: SluiceError): AttemptRecord {
    return {
      attempt: error.attempt ?? this.scope.attempt,
      model: error.model ?? this.scope.model,
      code: error.code,
      status: error.status,
      requestId: error.requestId,
      retryAfterMs: error.retryAfterMs,
      durationMs: this.#runtime.clock.now() - this.#startedAtMs,
    };
  }
}

/** The source failed in a way that is none of ours and no cancel: nobody refused it, so it was tried. */
export function isForeign(thrown: unknown, classified: SluiceError): boolean {
  return thrown !== classified && classified.code !== 'aborted';
}
