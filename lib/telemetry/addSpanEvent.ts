import type { Attributes, HrTime, Span } from '@opentelemetry/api';

/**
 * Notes an event on a span. All of them pass here: OpenTelemetry is moving events from spans to logs, and what shows
 * traces today reads those of spans only.
 */
export function addSpanEvent(span: Span, name: string, attributes: Attributes, time: HrTime): void {
  span.addEvent(name, attributes, time);
}
