import type { CallObserver } from '../../core/CallObserver.ts';
import type { HttpListener } from '../../http/gateway/GatewayOptions.ts';
import type { ObservedSluice } from '../../telemetry/observeSluice.ts';

export interface ServeTelemetry {
  readonly observer: CallObserver;
  readonly metrics: HttpListener | undefined;
  observe(sluice: ObservedSluice): void;
  shutdown(): Promise<void>;
}

/** OpenTelemetry for a gateway. Loaded only when it is asked for: its packages may not be there. */
export async function serveTelemetry(): Promise<ServeTelemetry> {
  const { startTelemetry, openTelemetry, observeSluice } = await import('../../telemetry/index.ts');
  const telemetry = await startTelemetry({
    serviceName: process.env['OTEL_SERVICE_NAME'] || 'sluice',
    // The gateway has a path for it; a port of its own it gets only where the environment names one.
    prometheusPort: 0,
  });
  return {
    observer: openTelemetry(),
    metrics: telemetry.metricsListener,
    observe: (sluice) => void observeSluice(sluice),
    shutdown: () => telemetry.shutdown(),
  };
}
