import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import protobuf from 'protobufjs';

/** Attributes with plain values, whichever encoding they came in. */
export type PlainAttributes = Readonly<Record<string, unknown>>;

export interface ReceivedSpan {
  readonly traceId: string;
  readonly spanId: string;
  /** `undefined` for the root of a trace. */
  readonly parentSpanId: string | undefined;
  readonly name: string;
  /** As `SpanKind` of the API counts. */
  readonly kind: number;
  readonly status: { readonly code: number; readonly message?: string };
  readonly attributes: PlainAttributes;
  readonly events: readonly { readonly name: string; readonly attributes: PlainAttributes; readonly atNs: bigint }[];
  readonly startNs: bigint;
  readonly endNs: bigint;
  readonly scope: string;
  readonly resource: PlainAttributes;
}

export interface ReceivedMetric {
  readonly name: string;
  readonly unit: string;
  readonly resource: PlainAttributes;
  readonly points: readonly PlainAttributes[];
}

interface AnyValue {
  readonly stringValue?: string;
  readonly boolValue?: boolean;
  readonly intValue?: string | number;
  readonly doubleValue?: number;
  readonly arrayValue?: { readonly values?: readonly AnyValue[] };
  readonly kvlistValue?: { readonly values?: readonly KeyValue[] };
}
interface KeyValue {
  readonly key: string;
  readonly value?: AnyValue;
}
interface Attributed {
  readonly attributes?: readonly KeyValue[];
}
interface SpanMessage extends Attributed {
  readonly traceId: string | Uint8Array;
  readonly spanId: string | Uint8Array;
  readonly parentSpanId?: string | Uint8Array;
  readonly name: string;
  readonly kind?: number;
  readonly status?: { readonly code?: number; readonly message?: string };
  readonly events?: readonly (Attributed & { readonly name: string; readonly timeUnixNano: string })[];
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
}
interface TraceMessage {
  readonly resourceSpans?: readonly {
    readonly resource?: Attributed;
    readonly scopeSpans?: readonly {
      readonly scope?: { readonly name?: string };
      readonly spans?: readonly SpanMessage[];
    }[];
  }[];
}
interface PointsMessage {
  readonly dataPoints?: readonly Attributed[];
}
interface MetricsMessage {
  readonly resourceMetrics?: readonly {
    readonly resource?: Attributed;
    readonly scopeMetrics?: readonly {
      readonly metrics?: readonly {
        readonly name: string;
        readonly unit?: string;
        readonly gauge?: PointsMessage;
        readonly sum?: PointsMessage;
        readonly histogram?: PointsMessage;
      }[];
    }[];
  }[];
}

const types = protobuf.parse(readFileSync(join(import.meta.dirname, 'otlp.proto'), 'utf8')).root;

/** The spans of one export request. @throws where the body is not what its content type says. */
export function spansOf(body: Buffer, contentType: string): readonly ReceivedSpan[] {
  const { resourceSpans = [] } = decode(body, contentType, 'TraceRequest') as TraceMessage;
  return resourceSpans.flatMap(({ resource, scopeSpans = [] }) =>
    scopeSpans.flatMap(({ scope, spans = [] }) =>
      spans.map((span) => ({
        traceId: hex(span.traceId),
        spanId: hex(span.spanId),
        parentSpanId: span.parentSpanId?.length ? hex(span.parentSpanId) : undefined,
        name: span.name,
        // 0 stands for none; the API counts from 0.
        kind: (span.kind ?? 0) - 1,
        status: {
          code: span.status?.code ?? 0,
          ...(span.status?.message ? { message: span.status.message } : {}),
        },
        attributes: plain(span),
        events: (span.events ?? []).map((event) => ({
          name: event.name,
          attributes: plain(event),
          atNs: BigInt(event.timeUnixNano),
        })),
        startNs: BigInt(span.startTimeUnixNano),
        endNs: BigInt(span.endTimeUnixNano),
        scope: scope?.name ?? '',
        resource: plain(resource),
      })),
    ),
  );
}

/** The metrics of one export request. @throws where the body is not what its content type says. */
export function metricsOf(body: Buffer, contentType: string): readonly ReceivedMetric[] {
  const { resourceMetrics = [] } = decode(body, contentType, 'MetricsRequest') as MetricsMessage;
  return resourceMetrics.flatMap(({ resource, scopeMetrics = [] }) =>
    scopeMetrics.flatMap(({ metrics = [] }) =>
      metrics.map(({ name, unit = '', gauge, sum, histogram }) => ({
        name,
        unit,
        resource: plain(resource),
        points: ((gauge ?? sum ?? histogram)?.dataPoints ?? []).map(plain),
      })),
    ),
  );
}

function decode(body: Buffer, contentType: string, type: string): unknown {
  if (contentType === 'application/json') return JSON.parse(body.toString('utf8'));
  if (contentType !== 'application/x-protobuf') throw new Error(`content type ${contentType}`);
  const message = types.lookupType(type);
  // JSON writes 64-bit numbers as text too.
  return message.toObject(message.decode(body), { longs: String });
}

function plain(of: Attributed | undefined): PlainAttributes {
  return Object.fromEntries((of?.attributes ?? []).map(({ key, value }) => [key, valueOf(value)]));
}

function valueOf(value: AnyValue | undefined): unknown {
  if (value?.intValue !== undefined) return Number(value.intValue);
  if (value?.arrayValue !== undefined) return (value.arrayValue.values ?? []).map(valueOf);
  if (value?.kvlistValue !== undefined) return plain({ attributes: value.kvlistValue.values ?? [] });
  return value?.stringValue ?? value?.boolValue ?? value?.doubleValue;
}

function hex(id: string | Uint8Array): string {
  return typeof id === 'string' ? id : Buffer.from(id).toString('hex');
}
