import { nonEmpty, positive, wholeNumber } from '../../core/checks.ts';
import { invalidOption } from '../../core/errors.ts';

export interface ListenOptions {
  /** 0 takes any that is free. */
  readonly port?: number | undefined;
  /** Default: this machine only. */
  readonly host?: string | undefined;
  /** Largest head of a request, in bytes. A larger one is answered with 431. */
  readonly maxHeaderBytes?: number | undefined;
  /** How long the head of a request may take. After it: 408. */
  readonly headersMs?: number | undefined;
  /** How long a connection may wait for its next request: longer than what stands in front of the gateway keeps it. */
  readonly keepAliveMs?: number | undefined;
  /** Connections that may be open at one time. Others are closed as they come. */
  readonly maxConnections?: number | undefined;
}

/** Defaults of {@link ListenOptions}. */
export const LISTEN_DEFAULTS: {
  readonly port: number;
  readonly host: string;
  readonly maxHeaderBytes: number;
  readonly headersMs: number;
  readonly keepAliveMs: number;
  readonly maxConnections: number;
} = Object.freeze({
  port: 0,
  host: '127.0.0.1',
  maxHeaderBytes: 16 * 1024,
  headersMs: 10_000,
  keepAliveMs: 72_000,
  maxConnections: 20_000,
});

export type ListenSettings = typeof LISTEN_DEFAULTS;

/** @throws SluiceError `invalid_option` */
export function listenOptions(options: ListenOptions, running: object | undefined): ListenSettings {
  if (running !== undefined) throw invalidOption('listen', 'called once', 'again');
  const { port, host, maxHeaderBytes, headersMs, keepAliveMs, maxConnections } = options;
  return {
    port: portOf(port ?? LISTEN_DEFAULTS.port),
    host: nonEmpty('host', host ?? LISTEN_DEFAULTS.host),
    maxHeaderBytes: wholeNumber('maxHeaderBytes', maxHeaderBytes ?? LISTEN_DEFAULTS.maxHeaderBytes),
    headersMs: positive('headersMs', headersMs ?? LISTEN_DEFAULTS.headersMs),
    keepAliveMs: positive('keepAliveMs', keepAliveMs ?? LISTEN_DEFAULTS.keepAliveMs),
    maxConnections: wholeNumber('maxConnections', maxConnections ?? LISTEN_DEFAULTS.maxConnections),
  };
}

function portOf(port: number): number {
  if (Number.isInteger(port) && port >= 0 && port <= 65_535) return port;
  throw invalidOption('port', 'a whole number from 0 to 65535', port);
}
