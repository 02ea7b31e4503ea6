import { context, SpanKind, SpanStatusCode } from '@opentelemetry/api';
import type { Attributes, HrTime, TracerProvider } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import {
  InMemorySpanExporter,
  SimpleSpanProcessor,
  TracerProvider as SdkTracerProvider,
} from '@opentelemetry/sdk-trace';
import type { ReadableSpan, Span } from '@opentelemetry/sdk-trace';
import { EVENT_ATTRIBUTES, SPAN_ATTRIBUTES, SPAN_EVENTS } from '../../lib/telemetry/spanNames.ts';

/** Spans as they were exported, and what must be true of all of them. */
export interface Tracing {
  readonly provider: TracerProvider;
  /** Spans that ended, in the order in which they did. */
  readonly spans: readonly ReadableSpan[];
  readonly started: number;
  /** Attributes that each span had when it was started. */
  readonly startedWith: readonly Attributes[];
  named(name: string): ReadableSpan;
  /** Spans below those without a parent, by their start: name, then what is remarkable. */
  tree(): readonly string[];
  stop(): void;
}

/** A provider of its own, with real contexts for as long as it runs. */
export function tracing(): Tracing {
  const exporter = new InMemorySpanExporter();
  const startedWith: Attributes[] = [];
  const order = new Map<string, number>();
  const counting = {
    onStart: (span: Span): void => {
      order.set(span.spanContext().spanId, order.size);
      startedWith.push({ ...span.attributes });
    },
    onEnd: () => {},
    forceFlush: () => Promise.resolve(),
    shutdown: () => Promise.resolve(),
  };
  const provider = new SdkTracerProvider({ spanProcessors: [counting, new SimpleSpanProcessor({ exporter })] });
  const manager = new AsyncLocalStorageContextManager().enable();
  context.disable();
  context.setGlobalContextManager(manager);
  return {
    provider,
    get spans() {
      return exporter.getFinishedSpans();
    },
    get started() {
      return startedWith.length;
    },
    startedWith,
    named: (name) => {
      const found = exporter.getFinishedSpans().filter((span) => span.name === name);
      if (found.length !== 1) throw new Error(`${found.length} spans are named ${name}`);
      return found[0] as ReadableSpan;
    },
    tree: () => {
      const rank = (span: ReadableSpan): number => order.get(span.spanContext().spanId) ?? 0;
      return treeOf(exporter.getFinishedSpans().toSorted((a, b) => rank(a) - rank(b)));
    },
    stop: () => {
      context.disable();
      manager.disable();
      void provider.shutdown();
    },
  };
}

export function msOf([seconds, nanos]: HrTime): number {
  return seconds * 1000 + nanos / 1e6;
}

/** Siblings by their start, then as they are given. */
export function treeOf(spans: readonly ReadableSpan[]): readonly string[] {
  const lines: string[] = [];
  const known = new Set(spans.map((span) => span.spanContext().spanId));
  const firstMs = Math.min(...spans.map(({ startTime }) => msOf(startTime)));
  const below = (parent: string | undefined, indent: string): void => {
    const children = spans.filter(({ parentSpanContext }) => {
      const id = parentSpanContext?.spanId;
      return parent === undefined ? id === undefined || !known.has(id) : id === parent;
    });
    for (const span of children.toSorted((a, b) => msOf(a.startTime) - msOf(b.startTime))) {
      lines.push(indent + lineOf(span, firstMs));
      below(span.spanContext().spanId, `${indent}  `);
    }
  };
  below(undefined, '');
  return lines;
}

/** `attempt a CLIENT 503 ERROR overloaded 10..15 [first_chunk]`: times in milliseconds since `firstMs`. */
function lineOf(span: ReadableSpan, firstMs: number): string {
  const { attributes, status, events } = span;
  const parts = [
    span.name,
    SpanKind[span.kind],
    attributes['http.response.status_code'] as number | undefined,
    status.code === SpanStatusCode.UNSET ? undefined : SpanStatusCode[status.code],
    attributes['error.type'] as string | undefined,
    attributes['sluice.outcome'] === 'cancelled' ? 'cancelled' : undefined,
    `${Math.round(msOf(span.startTime) - firstMs)}..${Math.round(msOf(span.endTime) - firstMs)}`,
    events.length === 0 ? undefined : `[${events.map(({ name }) => name).join(' ')}]`,
  ];
  return parts.filter((part) => part !== undefined).join(' ');
}

/** Names on spans that the tables do not have. */
export function unknownNames(spans: readonly ReadableSpan[]): readonly string[] {
  const known = new Set<string>([
    ...Object.values(SPAN_ATTRIBUTES),
    ...Object.values(EVENT_ATTRIBUTES),
    ...Object.values(SPAN_EVENTS),
  ]);
  const used = spans.flatMap(({ attributes, events }) => [
    ...Object.keys(attributes),
    ...events.flatMap((event) => [event.name, ...Object.keys(event.attributes ?? {})]),
  ]);
  return [...new Set(used)].filter((name) => !known.has(name));
}
