import type { ReadableSpan } from '@opentelemetry/sdk-trace';
import type { ReceivedSpan } from './otlpMessages.ts';

/** A span with what is below it: everything that it says, and no number that is another one each time. */
export interface SpanNode {
  readonly name: string;
  readonly kind: number;
  readonly status: ReceivedSpan['status'];
  readonly attributes: ReceivedSpan['attributes'];
  /** Milliseconds, since the start of the first span below the root. */
  readonly fromMs: number;
  readonly toMs: number;
  readonly events: readonly { readonly name: string; readonly attributes: unknown; readonly atMs: number }[];
  readonly below: readonly SpanNode[];
}

/** A span in memory, as a receiver would have got it. */
export function asReceived(span: ReadableSpan): ReceivedSpan {
  const { message } = span.status;
  return {
    traceId: span.spanContext().traceId,
    spanId: span.spanContext().spanId,
    parentSpanId: span.parentSpanContext?.spanId,
    name: span.name,
    kind: span.kind,
    status: { code: span.status.code, ...(message ? { message } : {}) },
    attributes: span.attributes,
    events: span.events.map(({ name, attributes = {}, time }) => ({ name, attributes, atNs: nsOf(time) })),
    startNs: nsOf(span.startTime),
    endNs: nsOf(span.endTime),
    scope: span.instrumentationScope.name,
    resource: span.resource.attributes,
  };
}

/**
 * The traces that spans make, by the name of their root.
 *
 * @throws where a span's parent is missing or belongs to another trace.
 */
export function spanForest(spans: readonly ReceivedSpan[]): readonly SpanNode[] {
  const byId = new Map(spans.map((span) => [span.spanId, span]));
  const children = new Map<string, ReceivedSpan[]>();
  for (const span of spans) {
    if (span.parentSpanId === undefined) continue;
    const parent = byId.get(span.parentSpanId);
    if (parent?.traceId !== span.traceId) throw new Error(`${span.name} has a foreign parent: ${parent?.name}`);
    children.set(parent.spanId, [...(children.get(parent.spanId) ?? []), span]);
  }

  const nodeOf = (span: ReceivedSpan, originNs: bigint, isRoot: boolean): SpanNode => {
    const ms = (ns: bigint): number => Math.round(Number(ns - originNs) / 1e6);
    return {
      name: span.name,
      kind: span.kind,
      status: span.status,
      attributes: span.attributes,
      // Callers live in real time.
      fromMs: isRoot ? 0 : ms(span.startNs),
      toMs: isRoot ? 0 : ms(span.endNs),
      events: span.events.map(({ name, attributes, atNs }) => ({ name, attributes, atMs: ms(atNs) })),
      below: (children.get(span.spanId) ?? [])
        .toSorted((a, b) => Number(a.startNs - b.startNs) || Number(a.endNs - b.endNs))
        .map((child) => nodeOf(child, originNs, false)),
    };
  };
  return spans
    .filter(({ parentSpanId }) => parentSpanId === undefined)
    .map((root) => nodeOf(root, earliest(children.get(root.spanId) ?? [root]), true))
    .toSorted((a, b) => a.name.localeCompare(b.name));
}

/** Its names, each below its parent's. */
export function outline(node: SpanNode, indent = ''): readonly string[] {
  const error = node.attributes['error.type'];
  const line = `${indent}${node.name}${typeof error === 'string' ? ` ${error}` : ''}`;
  return [line, ...node.below.flatMap((child) => outline(child, `${indent}  `))];
}

function earliest(spans: readonly ReceivedSpan[]): bigint {
  return spans.reduce((least, { startNs }) => (startNs < least ? startNs : least), spans[0]?.startNs ?? 0n);
}

function nsOf([seconds, nanos]: readonly [number, number]): bigint {
  return BigInt(seconds) * 1_000_000_000n + BigInt(nanos);
}
