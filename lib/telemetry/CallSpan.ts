import { context, SpanKind, trace } from '@opentelemetry/api';
import type { Attributes, Context, Span, Tracer } from '@opentelemetry/api';
import type { CallStart, Home, ObservedCall } from '../core/CallObserver.ts';
import type { AttemptContent, ContentListener } from '../core/content.ts';
import type { EventContext, SluiceEvent } from '../core/events.ts';
import { addSpanEvent } from './addSpanEvent.ts';
import { AttemptSpan, errorStatus } from './AttemptSpan.ts';
import type { AttemptStart } from './AttemptSpan.ts';
import { callAttributes, serverAttributes } from './callAttributes.ts';
import { CallProgress } from './CallProgress.ts';
import { contentAttributes } from './contentAttributes.ts';
import { eventAttributes } from './eventAttributes.ts';
import { homeIn } from './homeIn.ts';
import { operationOf } from './operationOf.ts';
import { outcomeName } from './outcomeName.ts';
import { providerOf } from './providerOf.ts';
import { QueueSpans } from './QueueSpans.ts';
import { SpanClock } from './SpanClock.ts';
import { EVENT_ATTRIBUTES, SPAN_ATTRIBUTES as NAMES, SPAN_EVENTS } from './spanNames.ts';
import type { SpanSettings } from './SpanSettings.ts';

type EventOf<T extends SluiceEvent['type']> = Extract<SluiceEvent, { readonly type: T }>;

/** The spans of one call, made of its facts. */
export class CallSpan implements ObservedCall {
  /** With the span of the call in it. */
  readonly context: Context;
  readonly home: Home;
  readonly onContent: ContentListener | undefined;
  readonly #settings: SpanSettings;
  readonly #tracer: Tracer;
  readonly #start: CallStart;
  readonly #clock: SpanClock;
  readonly #span: Span;
  readonly #queues: QueueSpans;
  readonly #progress = new CallProgress();
  /** Those that have not ended; the one that was sent last comes last. */
  #attempts: AttemptSpan[] = [];
  #content: AttemptContent | undefined;
  #named: boolean;
  /** Calls that have begun under its id and have not ended: one of a client is part of the pipe by hand around it. */
  #open = 1;

  /** Make it while the call is being subscribed to: the active context becomes its home. */
  constructor(settings: SpanSettings, tracer: Tracer, start: CallStart) {
    const { model, server } = start;
    this.#settings = settings;
    this.#tracer = tracer;
    this.#start = start;
    const home = context.active();
    this.home = homeIn(home);
    this.#clock = new SpanClock(start);
    this.#named = model !== undefined;
    const attributes = callAttributes(start, providerOf(settings.provider, server, model));
    const options = { kind: SpanKind.CLIENT, startTime: this.#clock.time(start.atMs), attributes };
    this.#span = tracer.startSpan(nameOf(start, model), options, home);
    this.context = trace.setSpan(home, this.#span);
    this.#queues = new QueueSpans(tracer, this.#clock, this.context);
    const captures = settings.captureContent ?? start.captureContent;
    this.onContent = captures && this.#span.isRecording() ? (content) => (this.#content = content) : undefined;
  }

  get ended(): boolean {
    return this.#open === 0;
  }

  /** Another call begins under its id. */
  join(): void {
    this.#open++;
  }

  readonly around = <R>(work: () => R): R => context.with(this.#attempts.at(-1)?.context ?? this.context, work);

  readonly onEvent = (event: SluiceEvent): void => {
    if (this.ended) return;
    switch (event.type) {
      case 'queued':
        return this.#queues.queued(event);
      case 'granted':
        return this.#queues.granted(event);
      case 'left':
        return this.#queues.left(event);
      case 'refused':
        this.#queues.refused(event);
        return this.#note(event.type, eventAttributes(event), event.atMs);
      case 'attempt.started':
        return this.#attemptStarted(event);
      case 'committed':
        this.#progress.committed(event.atMs);
        return this.#attempts.at(-1)?.firstChunk(event.atMs);
      case 'attempt.ended':
        this.#progress.attemptEnded(event);
        return this.#running(event.attempt)?.end(event);
      case 'retry.scheduled':
      case 'breaker.changed':
      case 'fallback':
      case 'restart':
        return this.#note(event.type, eventAttributes(event), event.atMs);
      case 'call.ended':
        return this.#callEnded(event);
      case 'hints':
      case 'settled':
      case 'cooldown':
      case 'limit.changed':
      case 'store.changed':
    }
  };

  /** The span of an attempt that is about to be sent, unless it has one. */
  attempt({ attempt, model, atMs }: Pick<EventContext, 'attempt' | 'model' | 'atMs'>): AttemptSpan {
    const provider = providerOf(this.#settings.provider, undefined, model);
    return this.#running(attempt) ?? this.#begin({ attempt, model, server: undefined, provider, atMs });
  }

  #running(attempt: number): AttemptSpan | undefined {
    return this.#attempts.find((span) => span.attempt === attempt && !span.ended);
  }

  #begin(start: AttemptStart): AttemptSpan {
    const span = new AttemptSpan(this.#tracer, this.#clock, start, this.context);
    this.#attempts = [...this.#attempts.filter(({ ended }) => !ended), span];
    return span;
  }

  #attemptStarted(event: EventOf<'attempt.started'>): void {
    const { attempt, model, server, atMs } = event;
    const provider = providerOf(this.#settings.provider, server, model);
    this.#progress.attemptStarted();
    if (!this.#named) this.#name(model, server, provider);
    const running = this.#running(attempt);
    if (running === undefined) this.#begin({ attempt, model, server, provider, atMs });
    else running.sent({ model, server, provider });
  }

  /** Only the first attempt tells a pipe by hand what it asks, and whom. */
  #name(model: string | undefined, server: CallStart['server'], provider: string): void {
    if (model === undefined) return;
    this.#named = true;
    const attributes: Attributes = { [NAMES.requestModel]: model, [NAMES.provider]: provider };
    serverAttributes(attributes, server);
    this.#span.updateName(nameOf(this.#start, model));
    this.#span.setAttributes(attributes);
  }

  #note(name: string, attributes: Attributes, atMs: number): void {
    addSpanEvent(this.#span, name, attributes, this.#clock.time(atMs));
  }

  #callEnded(event: EventOf<'call.ended'>): void {
    if (--this.#open > 0) return;
    const { atMs, code, message } = event;
    const outcome = outcomeName(event.outcome, code);
    if (outcome === 'cancelled') {
      const stage = this.#queues.stage(atMs) ?? this.#progress.stage;
      this.#note(SPAN_EVENTS.cancelled, { [EVENT_ATTRIBUTES.stage]: stage }, atMs);
    }
    this.#queues.close(atMs);
    for (const attempt of this.#attempts) {
      attempt.end({ outcome: 'dropped', code: undefined, message: undefined, atMs });
    }
    const attributes = this.#progress.attributes(outcome, this.#start.stream ? this.#start.atMs : undefined);
    attributes[NAMES.outcome] = outcome;
    attributes[NAMES.attempts] = event.attempts;
    if (event.cost !== undefined) attributes[NAMES.cost] = event.cost;
    if (outcome === 'failure') attributes[NAMES.errorType] = code ?? '_OTHER';
    if (this.#content !== undefined) Object.assign(attributes, contentAttributes(this.#content, this.#settings));
    this.#span.setAttributes(attributes);
    if (outcome === 'failure') this.#span.setStatus(errorStatus(message));
    this.#span.end(this.#clock.time(atMs));
  }
}

function nameOf(start: CallStart, model: string | undefined): string {
  const operation = operationOf(start);
  return model === undefined ? operation : `${operation} ${model}`;
}
