import type { Answer } from '../core/answer.ts';
import type { WireHead } from '../core/attempt.ts';
import type { AttemptSink } from '../core/AttemptSink.ts';
import { CallScope } from '../core/CallScope.ts';
import type { AttemptContent } from '../core/content.ts';
import { currentScope } from '../core/currentScope.ts';
import type { SluiceError } from '../core/errors.ts';
import type { AttemptRecord } from '../core/errors.ts';
import type { Usage } from '../core/hints.ts';
import type { AnswerFindings } from '../wire/ChunkReader.ts';
import type { AttemptSettings } from './AttemptOptions.ts';
import { isBilled } from './isBilled.ts';

type Outcome = 'success' | 'failure' | 'dropped';

/** The attempt that a log is of, as far as the log asks it. */
export interface LoggedAttempt {
  /** It leaves now. */
  dispatched(atMs: number): void;
  readonly streamed: boolean;
  /** Guesses what it was billed, where the provider does not say. */
  estimatedUsage?(): Usage;
  /** What is captured of it, where anything is. */
  captured?(): Omit<AttemptContent, 'attempt'>;
}

export const NOTHING_FOUND: AnswerFindings = {
  usage: undefined,
  responseId: undefined,
  responseModel: undefined,
  serviceTier: undefined,
  systemFingerprint: undefined,
  finishReasons: [],
};

/**
 * Tells the scope and the listeners of one attempt what happens to it, and keeps its record. Make it while being
 * subscribed: it takes the frame that the subscription runs in.
 */
export class AttemptLog implements AttemptSink {
  /** The frame to subscribe and send in. */
  readonly scope: CallScope;
  readonly model: string | undefined;
  readonly #attempt: LoggedAttempt;
  readonly #settings: AttemptSettings;
  /** Of the head of the answer. */
  status: number | undefined;
  requestId: string | undefined;
  #sentAtMs: number | undefined;
  #contentChunks = 0;
  #firstContentAtMs = 0;
  #lastContentAtMs = 0;
  #ended = false;

  constructor(attempt: LoggedAttempt, settings: AttemptSettings, model: string | undefined) {
    const outer = currentScope() ?? CallScope.start(settings.runtime);
    // A plain re-subscription, such as that of RxJS's own `retry`, comes in the frame of the attempt before it.
    const numbered = outer.call.dispatched < outer.attempt ? outer : outer.forNextAttempt();
    this.#attempt = attempt;
    this.#settings = settings;
    this.model = model ?? numbered.model;
    this.scope = numbered.with({ model, onEvent: settings.onEvent, sink: this });
  }

  /** For the scope. */
  dispatched(atMs: number): void {
    if (this.#sentAtMs !== undefined) return;
    this.#sentAtMs = atMs;
    this.scope.report(atMs, { type: 'attempt.started', server: this.#settings.server });
    this.#attempt.dispatched(atMs);
  }

  head({ status, requestId, hints }: WireHead): void {
    this.status = status;
    this.requestId = requestId;
    this.scope.responded(status);
    if (hints === undefined) return;
    this.scope.hints(hints);
    this.scope.report(this.#settings.runtime.clock.now(), { type: 'hints', hints, status });
    try {
      this.#settings.onHints?.(hints);
    } catch {
      // It only observes.
    }
  }

  /** A chunk with content came. */
  content(atMs: number): void {
    this.#lastContentAtMs = atMs;
    if (++this.#contentChunks > 1) return;
    this.#firstContentAtMs = atMs;
    this.scope.report(atMs, { type: 'committed', firstContentMs: atMs - (this.#sentAtMs ?? atMs) });
  }

  /** Returns the error as the consumer gets it: with the attempt, and with all that failed before it. */
  failed(error: SluiceError, findings: AnswerFindings = NOTHING_FOUND, partial?: Answer): SluiceError {
    const { scope, model } = this;
    const sent = this.#sentAtMs !== undefined;
    const { status } = error;
    const requestId = error.requestId ?? this.requestId;
    if (sent) {
      const record: AttemptRecord = {
        attempt: scope.attempt,
        model,
        code: error.code,
        status,
        requestId,
        retryAfterMs: error.retryAfterMs,
        durationMs: this.#settings.runtime.clock.now() - (this.#sentAtMs as number),
      };
      scope.call.failed.push(record);
    }
    this.ended('failure', findings, error);
    return error.with({
      requestId,
      model: error.model ?? model,
      attempt: sent ? scope.attempt : undefined,
      attempts: [...scope.call.failed],
      partial: error.partial ?? partial,
    });
  }

  /** Failures by way of {@link failed}; `'dropped'` where the caller left. */
  ended(outcome: Outcome, findings: AnswerFindings = NOTHING_FOUND, error?: SluiceError): void {
    if (this.#ended) return;
    this.#ended = true;
    if (this.#sentAtMs === undefined) return;
    const { scope } = this;
    if (findings.usage !== undefined) scope.usage(findings.usage);
    if (scope.wantsContent && this.#attempt.captured) scope.content(this.#attempt.captured());
    if (scope.heard) this.#report(this.#sentAtMs, outcome, findings, error);
  }

  #report(sentAtMs: number, outcome: Outcome, findings: AnswerFindings, error: SluiceError | undefined): void {
    const nowMs = this.#settings.runtime.clock.now();
    this.scope.report(nowMs, {
      type: 'attempt.ended',
      outcome,
      code: error?.code,
      message: error?.message,
      status: error?.status ?? this.status,
      requestId: error?.requestId ?? this.requestId,
      durationMs: nowMs - sentAtMs,
      estimatedUsage: findings.usage === undefined ? this.#estimated(outcome, error) : undefined,
      ...findings,
      contentChunks: this.#contentChunks,
      contentMs: this.#lastContentAtMs - this.#firstContentAtMs,
    });
  }

  #estimated(outcome: Outcome, error: SluiceError | undefined): Usage | undefined {
    const attempt = this.#attempt;
    if (attempt.estimatedUsage === undefined) return undefined;
    const { streamed } = attempt;
    const billed = isBilled({ outcome, error, status: this.status, streamed, content: this.#contentChunks > 0 });
    return billed ? attempt.estimatedUsage() : undefined;
  }
}
