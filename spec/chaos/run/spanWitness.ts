import { TracerProvider } from '@opentelemetry/sdk-trace';
import type { ReadableSpan, Span } from '@opentelemetry/sdk-trace';
import type { CallObserver } from '../../../lib/core/CallObserver.ts';
import { openTelemetry } from '../../../lib/telemetry/index.ts';
import type { SpanFacts } from './Fact.ts';

/** The tracing that users have, which tells of every span instead of exporting it. */
export function spanWitness(tell: (what: 'started' | 'ended', span: SpanFacts) => void): CallObserver {
  const factsOf = (span: Span | ReadableSpan): SpanFacts => ({
    id: span.spanContext().spanId,
    name: span.name,
    attributes: 'events' in span ? [span.attributes, span.status, span.events] : undefined,
  });
  const processor = {
    onStart: (span: Span) => tell('started', factsOf(span)),
    onEnd: (span: ReadableSpan) => tell('ended', factsOf(span)),
    forceFlush: () => Promise.resolve(),
    shutdown: () => Promise.resolve(),
  };
  return openTelemetry({ tracerProvider: new TracerProvider({ spanProcessors: [processor] }), metrics: false });
}
