/** What `shutdownOn` may name: signals, or that the process has nothing left to do. */
export type ShutdownCause = 'SIGTERM' | 'SIGINT' | 'beforeExit';

/** Variables of the environment, `OTEL_*`, win over what stands here: whoever runs a program has the last word. */
export interface StartTelemetryOptions {
  /** Name of the service; variable `OTEL_SERVICE_NAME`. */
  readonly serviceName: string;
  /** Its version. Default: none. */
  readonly serviceVersion?: string | undefined;
  /** More attributes of the resource, such as `deployment.environment.name`; variable `OTEL_RESOURCE_ATTRIBUTES`. */
  readonly attributes?: Readonly<Record<string, string | number | boolean>> | undefined;
  /** Address that Prometheus reads from; variable `OTEL_EXPORTER_PROMETHEUS_HOST`. Default: this machine only. */
  readonly prometheusHost?: string | undefined;
  /** Its port, 0 for any that is free; variable `OTEL_EXPORTER_PROMETHEUS_PORT`. Default: 9464. */
  readonly prometheusPort?: number | undefined;
  /** Instrumentations to register, such as an `UndiciInstrumentation` for a span of each HTTP request. Default: none. */
  readonly instrumentations?: readonly object[] | undefined;
  /** When to flush without being asked. Default: never, so that the program decides. */
  readonly shutdownOn?: readonly ShutdownCause[] | undefined;
  /** Longest time that `shutdown` waits for exporters. Milliseconds, above 0. Default: 5,000. */
  readonly flushTimeoutMs?: number | undefined;
}

/** Defaults of {@link StartTelemetryOptions}. */
export const TELEMETRY_DEFAULTS: {
  readonly prometheusHost: string;
  readonly prometheusPort: number;
  readonly flushTimeoutMs: number;
} = Object.freeze({ prometheusHost: '127.0.0.1', prometheusPort: 9464, flushTimeoutMs: 5_000 });
