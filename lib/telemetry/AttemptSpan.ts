import { SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import type { Attributes, Context, Span, Tracer } from '@opentelemetry/api';
import type { ServerAddress } from '../core/attempt.ts';
import type { ErrorCode } from '../core/errors.ts';
import { addSpanEvent } from './addSpanEvent.ts';
import { serverAttributes } from './callAttributes.ts';
import { outcomeName } from './outcomeName.ts';
import type { SpanClock } from './SpanClock.ts';
import { SPAN_ATTRIBUTES as NAMES, SPAN_EVENTS } from './spanNames.ts';

export interface AttemptStart {
  readonly attempt: number;
  readonly model: string | undefined;
  readonly server: ServerAddress | undefined;
  readonly provider: string;
  readonly atMs: number;
}

export interface AttemptEnd {
  readonly outcome: 'success' | 'failure' | 'dropped';
  readonly code: ErrorCode | undefined;
  readonly message: string | undefined;
  readonly status?: number | undefined;
  readonly requestId?: string | undefined;
  readonly responseModel?: string | undefined;
  readonly atMs: number;
}

/** The span of one request to a provider. It says nothing of tokens, which back ends would then count twice. */
export class AttemptSpan {
  readonly attempt: number;
  readonly #parent: Context;
  #context: Context | undefined;
  readonly #span: Span;
  readonly #clock: SpanClock;
  #ended = false;

  /** `parent`: with the span of the call in it. */
  constructor(tracer: Tracer, clock: SpanClock, start: AttemptStart, parent: Context) {
    const { model, attempt } = start;
    const attributes: Attributes = { [NAMES.attempt]: attempt, [NAMES.provider]: start.provider };
    if (model !== undefined) attributes[NAMES.requestModel] = model;
    if (attempt > 1) attributes[NAMES.resendCount] = attempt - 1;
    serverAttributes(attributes, start.server);
    const name = model === undefined ? 'attempt' : `attempt ${model}`;
    const options = { kind: SpanKind.CLIENT, startTime: clock.time(start.atMs), attributes };
    this.attempt = attempt;
    this.#clock = clock;
    this.#span = tracer.startSpan(name, options, parent);
    this.#parent = parent;
  }

  /** With the span in it. */
  get context(): Context {
    return (this.#context ??= trace.setSpan(this.#parent, this.#span));
  }

  get ended(): boolean {
    return this.#ended;
  }

  /** What the source says of it, where the span was started before the source spoke. */
  sent({ model, provider, server }: Pick<AttemptStart, 'model' | 'provider' | 'server'>): void {
    const attributes: Attributes = { [NAMES.provider]: provider };
    if (model !== undefined) {
      this.#span.updateName(`attempt ${model}`);
      attributes[NAMES.requestModel] = model;
    }
    serverAttributes(attributes, server);
    this.#span.setAttributes(attributes);
  }

  firstChunk(atMs: number): void {
    if (!this.#ended) addSpanEvent(this.#span, SPAN_EVENTS.firstChunk, {}, this.#clock.time(atMs));
  }

  end({ outcome, code, message, status, requestId, responseModel, atMs }: AttemptEnd): void {
    if (this.#ended) return;
    this.#ended = true;
    const named = outcomeName(outcome, code);
    const attributes: Attributes = { [NAMES.outcome]: named };
    if (status !== undefined) attributes[NAMES.status] = status;
    if (requestId !== undefined) attributes[NAMES.requestId] = requestId;
    if (responseModel !== undefined) attributes[NAMES.responseModel] = responseModel;
    if (named === 'failure') attributes[NAMES.errorType] = code ?? '_OTHER';
    this.#span.setAttributes(attributes);
    if (named === 'failure') this.#span.setStatus(errorStatus(message));
    this.#span.end(this.#clock.time(atMs));
  }
}

export function errorStatus(message: string | undefined): { readonly code: SpanStatusCode; readonly message?: string } {
  return message === undefined ? { code: SpanStatusCode.ERROR } : { code: SpanStatusCode.ERROR, message };
}
