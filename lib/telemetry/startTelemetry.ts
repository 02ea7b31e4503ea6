import * as api from '@opentelemetry/api';
import type { NodeSDK } from '@opentelemetry/sdk-node';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { nonEmpty, oneOf, positive } from '../core/checks.ts';
import { SluiceError } from '../core/errors.ts';
import { startTimer, systemRuntime } from '../core/runtime.ts';
import { loadPeer } from './loadPeer.ts';
import { onShutdown } from './onShutdown.ts';
import { prometheusAddress, prometheusReader } from './prometheusReader.ts';
import { TELEMETRY_DEFAULTS } from './StartTelemetryOptions.ts';
import type { StartTelemetryOptions } from './StartTelemetryOptions.ts';

/** What `startTelemetry` started. */
export interface Telemetry {
  /** Where Prometheus reads, such as `http://127.0.0.1:9464/metrics`. `undefined` where metrics go elsewhere, or nowhere. */
  readonly metricsUrl: string | undefined;
  /** Answers a request of Prometheus in a server of your own. `undefined` as above. */
  readonly metricsListener: ((request: IncomingMessage, response: ServerResponse) => void) | undefined;
  /**
   * Sends what has not been sent, stops, and lets go of OpenTelemetry's globals. Never rejects: what could not be sent
   * is told to OpenTelemetry's own log (`OTEL_LOG_LEVEL`). A second call returns the promise of the first.
   */
  shutdown(): Promise<void>;
}

/**
 * Starts OpenTelemetry's SDK for this process: spans go out by OTLP, metrics wait for Prometheus to read them. Everything
 * may be changed by the standard variables `OTEL_*`; those that Prometheus and OTLP need most are in the documentation.
 *
 * Call it before anything is traced, once a process, and hand `openTelemetry()` to `createSluice`. The SDK is loaded by
 * this call only: the packages `@opentelemetry/sdk-node` and what comes with it.
 *
 * Rejects with:
 * - `invalid_option`: an option is wrong, a package is not there, or another SDK is registered in this process.
 * - Node's own error (`EADDRINUSE`) where the port for Prometheus is taken.
 *
 * @example
 * ```ts
 * import OpenAI from 'openai';
 * import { createSluice } from 'sluice';
 * import { openTelemetry, startTelemetry } from 'sluice/telemetry';
 *
 * const telemetry = await startTelemetry({ serviceName: 'chat-backend', shutdownOn: ['SIGTERM', 'SIGINT'] });
 * const sluice = createSluice(new OpenAI(), {}, { telemetry: openTelemetry() });
 * // ...
 * await sluice.close();
 * await telemetry.shutdown();
 * ```
 */
export async function startTelemetry(options: StartTelemetryOptions): Promise<Telemetry> {
  const { prometheusHost = TELEMETRY_DEFAULTS.prometheusHost, prometheusPort = TELEMETRY_DEFAULTS.prometheusPort } =
    options;
  const { flushTimeoutMs = TELEMETRY_DEFAULTS.flushTimeoutMs, shutdownOn = [] } = options;
  nonEmpty('serviceName', options.serviceName);
  positive('flushTimeoutMs', flushTimeoutMs);
  for (const cause of shutdownOn) oneOf('shutdownOn', cause, ['SIGTERM', 'SIGINT', 'beforeExit']);
  const { env } = process;
  const address = prometheusAddress(env, {
    prometheusHost: nonEmpty('prometheusHost', prometheusHost),
    prometheusPort,
  });
  if (isRegistered()) {
    throw new SluiceError(
      'invalid_option',
      'startTelemetry must be the only one to start OpenTelemetry in a process: another SDK is registered already',
    );
  }

  const sdkNode = await loadPeer('@opentelemetry/sdk-node', () => import('@opentelemetry/sdk-node'));
  const resources = await loadPeer('@opentelemetry/resources', () => import('@opentelemetry/resources'));
  const reader = readByPrometheusOnly(env) ? await prometheusReader(address) : undefined;
  if (reader === undefined) {
    // Prometheus next to other exporters is made by the SDK, of which older versions then listen to the whole network.
    env['OTEL_EXPORTER_PROMETHEUS_HOST'] ??= address.host;
    env['OTEL_EXPORTER_PROMETHEUS_PORT'] ??= String(address.port);
  }

  const { serviceName, serviceVersion, attributes } = options;
  const described = { 'service.name': serviceName, ...(serviceVersion && { 'service.version': serviceVersion }) };
  const sdk = new sdkNode.NodeSDK({
    resource: resources.defaultResource().merge(resources.resourceFromAttributes({ ...attributes, ...described })),
    // The SDK's own default also tells the command line, which may hold a key, and the user and the machine by name.
    ...(!env['OTEL_NODE_RESOURCE_DETECTORS'] && {
      // eslint-disable-next-line @typescript-eslint/no-deprecated -- what replaces it is not in versions before 3
      resourceDetectors: [resources.serviceInstanceIdDetector, resources.envDetector],
    }),
    instrumentations: [...(options.instrumentations ?? [])] as [],
    // `metricReader` is how older versions call it.
    ...(reader !== undefined && { metricReaders: [reader.exporter], metricReader: reader.exporter }),
    ...(!env['OTEL_LOGS_EXPORTER'] && { logRecordProcessors: [] }),
  });
  try {
    sdk.start();
  } catch (error) {
    reader?.close();
    letGo();
    throw error;
  }

  let ended: Promise<void> | undefined;
  const shutdown = (): Promise<void> => {
    stopListening();
    return (ended ??= end(sdk, flushTimeoutMs).then(() => reader?.close()));
  };
  const stopListening = onShutdown(shutdownOn, shutdown);
  return { metricsUrl: reader?.url, metricsListener: reader?.listener, shutdown };
}

async function end(sdk: NodeSDK, timeoutMs: number): Promise<void> {
  await new Promise<void>((resolve) => {
    const stop = startTimer(systemRuntime, timeoutMs, resolve);
    sdk.shutdown().then(resolve, resolve).finally(stop);
  });
  letGo();
}

function letGo(): void {
  for (const global of [api.trace, api.metrics, api.context, api.propagation]) global.disable();
}

function isRegistered(): boolean {
  const provider = api.trace.getTracerProvider() as { getDelegateTracer?(name: string): unknown };
  return (
    provider.getDelegateTracer?.('sluice') !== undefined || api.metrics.getMeter('sluice') !== api.createNoopMeter()
  );
}

/** Unless told otherwise, metrics are for Prometheus. */
function readByPrometheusOnly(env: NodeJS.ProcessEnv): boolean {
  if (env['OTEL_SDK_DISABLED']?.trim().toLowerCase() === 'true') return false;
  const names = (env['OTEL_METRICS_EXPORTER'] ?? '').split(',').map((name) => name.trim());
  return names.every((name) => name === '' || name === 'prometheus');
}
