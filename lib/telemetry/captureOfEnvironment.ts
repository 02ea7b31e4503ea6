/** Values of the variable that let content onto spans. `event_only` does not: this library emits no such events. */
const ON_SPANS: ReadonlySet<string> = new Set(['true', 'span_only', 'span_and_event']);

/** What OpenTelemetry's own variable says of capturing content. `undefined`: nothing. */
export function captureOfEnvironment(): boolean | undefined {
  const value = process.env['OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT']?.trim().toLowerCase();
  if (value === undefined || value === '') return undefined;
  return ON_SPANS.has(value) ? true : undefined;
}
