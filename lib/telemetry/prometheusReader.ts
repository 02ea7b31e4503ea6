import type { PrometheusExporter } from '@opentelemetry/exporter-prometheus';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { invalidOption } from '../core/errors.ts';
import { loadPeer } from './loadPeer.ts';

export interface PrometheusAddress {
  readonly host: string;
  readonly port: number;
}

export interface PrometheusReader {
  readonly exporter: PrometheusExporter;
  /** Where to read. */
  readonly url: string;
  /** The same for a server of somebody else's. */
  readonly listener: (request: IncomingMessage, response: ServerResponse) => void;
  close(): void;
}

/** Where Prometheus is to read, with the variables of the environment before the options. */
export function prometheusAddress(
  env: NodeJS.ProcessEnv,
  options: { readonly prometheusHost: string; readonly prometheusPort: number },
): PrometheusAddress {
  const variable = env['OTEL_EXPORTER_PROMETHEUS_PORT']?.trim();
  const [name, port] = variable
    ? (['OTEL_EXPORTER_PROMETHEUS_PORT', Number(variable)] as const)
    : (['prometheusPort', options.prometheusPort] as const);
  if (!(Number.isInteger(port) && port >= 0 && port <= 65_535)) throw invalidOption(name, 'from 0 to 65535', port);
  return { host: env['OTEL_EXPORTER_PROMETHEUS_HOST']?.trim() || options.prometheusHost, port };
}

/**
 * A reader of metrics behind a server that listens already. The exporter's own server tells nobody that its port is
 * taken, cannot take any port that is free, and answers nothing at an IPv6 address.
 */
export async function prometheusReader({ host, port }: PrometheusAddress): Promise<PrometheusReader> {
  const name = '@opentelemetry/exporter-prometheus';
  const module = await loadPeer(name, () => import('@opentelemetry/exporter-prometheus'));
  const exporter = new module.PrometheusExporter({ preventServerStart: true });
  const listener = (request: IncomingMessage, response: ServerResponse): void =>
    exporter.getMetricsRequestHandler(request, response);
  const server = createServer((request, response) => {
    if (request.url?.split('?')[0] === '/metrics') listener(request, response);
    else response.writeHead(404).end();
  });
  server.listen(port, host).unref();
  await once(server, 'listening');

  const { address, family, port: taken } = server.address() as AddressInfo;
  return {
    exporter,
    listener,
    url: `http://${family === 'IPv6' ? `[${address}]` : address}:${taken}/metrics`,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}
