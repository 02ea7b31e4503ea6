import type { Answer } from '../core/answer.ts';
import type { WireEvent } from '../core/attempt.ts';
import { CallScope } from '../core/CallScope.ts';
import type { AttemptContent } from '../core/content.ts';
import { currentScope } from '../core/currentScope.ts';
import type { SluiceError } from '../core/errors.ts';
import type { AttemptRecord } from '../core/errors.ts';
import type { Usage } from '../core/hints.ts';
import type { AttemptSettings } from './AttemptOptions.ts';
import { isBilled } from './isBilled.ts';

/** What an attempt came to, in so far as it is known. */
export interface AttemptFindings {
  readonly usage: Usage | undefined;
  readonly responseId: string | undefined;
  readonly responseModel: string | undefined;
  readonly serviceTier: string | undefined;
  readonly systemFingerprint: string | undefined;
  readonly finishReasons: readonly string[];
}

export const NOTHING_FOUND: AttemptFindings = {
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
export class AttemptLog {
  /** The frame to subscribe and send in. */
  readonly scope: CallScope;
  readonly model: string | undefined;
  /** Makes what is captured of the attempt; set where it is. */
  contentOf: (() => Omit<AttemptContent, 'attempt'>) | undefined;
  /** Guesses what the attempt was billed, where the provider does not say. */
  estimate: { readonly streamed: boolean; usage(): Usage } | undefined;
  readonly #settings: AttemptSettings;
  #sentAtMs: number | undefined;
  #status: number | undefined;
  #requestId: string | undefined;
  #contentChunks = 0;
  #firstContentAtMs = 0;
  #lastContentAtMs = 0;
  #ended = false;

  constructor(settings: AttemptSettings, model: string | undefined, onDispatched?: (atMs: number) => void) {
    const outer = currentScope() ?? CallScope.start(settings.runtime);
    // A plain re-subscription, such as that of RxJS's own `retry`, comes in the frame of the attempt before it.
    const numbered = outer.call.dispatched < outer.attempt ? outer : outer.forNextAttempt();
    this.#settings = settings;
    this.model = model ?? numbered.model;
    this.scope = numbered.with({
      model,
      onEvent: settings.onEvent,
      sink: {
        dispatched: (atMs) => {
          if (this.#sentAtMs !== undefined) return;
          this.#sentAtMs = atMs;
          this.scope.report(atMs, { type: 'attempt.started', server: settings.server });
          onDispatched?.(atMs);
        },
      },
    });
  }

  get status(): number | undefined {
    return this.#status;
  }
  get requestId(): string | undefined {
    return this.#requestId;
  }
  get #nowMs(): number {
    return this.#settings.runtime.clock.now();
  }

  head({ status, requestId, hints }: WireEvent & { kind: 'head' }): void {
    this.#status = status;
    this.#requestId = requestId;
    this.scope.responded(status);
    if (hints === undefined) return;
    this.scope.hints(hints);
    this.scope.report(this.#nowMs, { type: 'hints', hints, status });
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

  succeeded(findings: AttemptFindings = NOTHING_FOUND): void {
    this.#end('success', undefined, findings);
  }

  /** The caller left. */
  dropped(findings: AttemptFindings = NOTHING_FOUND): void {
    this.#end('dropped', undefined, findings);
  }

  /** Returns the error as the consumer gets it: with the attempt, and with all that failed before it. */
  failed(error: SluiceError, findings: AttemptFindings = NOTHING_FOUND, partial?: Answer): SluiceError {
    const { scope, model } = this;
    const sent = this.#sentAtMs !== undefined;
    const { status } = error;
    const requestId = error.requestId ?? this.#requestId;
    if (sent) {
      const record: AttemptRecord = {
        attempt: scope.attempt,
        model,
        code: error.code,
        status,
        requestId,
        retryAfterMs: error.retryAfterMs,
        durationMs: this.#nowMs - (this.#sentAtMs as number),
      };
      scope.call.failed.push(record);
    }
    this.#end('failure', error, findings);
    return error.with({
      requestId,
      model: error.model ?? model,
      attempt: sent ? scope.attempt : undefined,
      attempts: [...scope.call.failed],
      partial: error.partial ?? partial,
    });
  }

  #estimated(outcome: 'success' | 'failure' | 'dropped', error: SluiceError | undefined): Usage | undefined {
    const { estimate, scope } = this;
    if (estimate === undefined || !scope.heard) return undefined;
    const { streamed } = estimate;
    const billed = isBilled({ outcome, error, status: this.#status, streamed, content: this.#contentChunks > 0 });
    return billed ? estimate.usage() : undefined;
  }

  #end(outcome: 'success' | 'failure' | 'dropped', error: SluiceError | undefined, findings: AttemptFindings): void {
    if (this.#ended) return;
    this.#ended = true;
    const { usage, responseId, responseModel, serviceTier, systemFingerprint, finishReasons } = findings;
    if (this.#sentAtMs === undefined) return;
    if (usage !== undefined) this.scope.usage(usage);
    if (this.contentOf !== undefined) this.scope.content(this.contentOf());
    const nowMs = this.#nowMs;
    this.scope.report(nowMs, {
      type: 'attempt.ended',
      outcome,
      code: error?.code,
      message: error?.message,
      status: error?.status ?? this.#status,
      requestId: error?.requestId ?? this.#requestId,
      durationMs: nowMs - this.#sentAtMs,
      usage,
      estimatedUsage: usage === undefined ? this.#estimated(outcome, error) : undefined,
      responseId,
      responseModel,
      serviceTier,
      systemFingerprint,
      finishReasons,
      contentChunks: this.#contentChunks,
      contentMs: this.#lastContentAtMs - this.#firstContentAtMs,
    });
  }
}
