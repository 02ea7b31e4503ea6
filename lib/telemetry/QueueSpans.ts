import { SpanKind } from '@opentelemetry/api';
import type { Attributes, Context, Tracer } from '@opentelemetry/api';
import type { EventContext, SluiceEvent } from '../core/events.ts';
import { errorStatus } from './AttemptSpan.ts';
import type { OutcomeName } from './outcomeName.ts';
import type { SpanClock } from './SpanClock.ts';
import { SPAN_ATTRIBUTES as NAMES, SPAN_NAMES } from './spanNames.ts';

/** Shorter waits would only clutter a trace. */
const SHOWN_ABOVE_MS = 1;

type Queued = Extract<SluiceEvent, { readonly type: 'queued' }>;
type Where = Queued['where'];
type Ended = Pick<EventContext, 'atMs' | 'attempt'>;

/** The waits of one call, each as a span once it is over. */
export class QueueSpans {
  readonly #tracer: Tracer;
  readonly #clock: SpanClock;
  readonly #parent: Context;
  readonly #waiting: Queued[] = [];
  #left: { readonly where: Where; readonly atMs: number } | undefined;

  constructor(tracer: Tracer, clock: SpanClock, parent: Context) {
    this.#tracer = tracer;
    this.#clock = clock;
    this.#parent = parent;
  }

  /** The queue that the call is in, or left at this instant. */
  stage(atMs: number): 'lane' | 'queue' | undefined {
    const left = this.#left?.atMs === atMs ? this.#left : undefined;
    const where = (this.#waiting.at(-1) ?? left)?.where;
    return where === undefined || where === 'lane' ? where : 'queue';
  }

  queued(event: Queued): void {
    this.#waiting.push(event);
  }

  granted(event: Ended & { readonly where: Where }): void {
    this.#end(this.#take(event, event.where), event.atMs, 'success');
  }

  refused(event: Ended & { readonly code: string }): void {
    this.#end(this.#take(event), event.atMs, 'failure', event.code);
  }

  left(event: Ended & { readonly where: Where }): void {
    this.#left = event;
    this.#end(this.#take(event, event.where), event.atMs, 'cancelled');
  }

  /** Ends what is left: the call is over. */
  close(atMs: number): void {
    for (const queued of this.#waiting.splice(0)) this.#end(queued, atMs, 'cancelled');
  }

  /** The latest wait of the attempt; where a queue is named, of those in it. */
  #take({ attempt }: Ended, where?: Where): Queued | undefined {
    const at = this.#waiting.findLastIndex(
      (queued) => queued.attempt === attempt && (where === undefined || queued.where === where),
    );
    return at === -1 ? undefined : this.#waiting.splice(at, 1)[0];
  }

  #end(queued: Queued | undefined, atMs: number, outcome: OutcomeName, code?: string): void {
    if (queued === undefined || atMs - queued.atMs <= SHOWN_ABOVE_MS) return;
    const attributes: Attributes = {
      [NAMES.queue]: queued.where,
      [NAMES.queuePosition]: queued.position,
      [NAMES.outcome]: outcome,
    };
    if (queued.waitMs !== undefined) attributes[NAMES.queueExpected] = queued.waitMs;
    if (code !== undefined) attributes[NAMES.errorType] = code;
    const options = { kind: SpanKind.INTERNAL, startTime: this.#clock.time(queued.atMs), attributes };
    const span = this.#tracer.startSpan(SPAN_NAMES.queue, options, this.#parent);
    if (code !== undefined) span.setStatus(errorStatus(undefined));
    span.end(this.#clock.time(atMs));
  }
}
