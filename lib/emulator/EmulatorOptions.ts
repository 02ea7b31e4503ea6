import { nonEmpty, wholeNumber } from '../core/checks.ts';
import { invalidOption } from '../core/errors.ts';
import type { Runtime } from '../core/runtime.ts';
import type { ProviderOptions } from './model/settings.ts';

export interface EmulatorOptions extends ProviderOptions {
  /** 0: any that is free. Default: 0. */
  readonly port?: number | undefined;
  /** Address to listen on. Default: `127.0.0.1`, so that nothing outside this machine can reach it. */
  readonly host?: string | undefined;
  /** Largest body of a request. Default: 1 MiB. */
  readonly maxBodyBytes?: number | undefined;
  /** Requests that the report lists one by one; older ones are counted only. Default: 100,000. */
  readonly maxRecords?: number | undefined;
  /** Headers of requests that the report keeps. Default: none. */
  readonly recordHeaders?: readonly string[] | undefined;
  /** Whether the report keeps the bodies of requests. Default: false. */
  readonly recordBodies?: boolean | undefined;
  /** Where time comes from. Default: real time. */
  readonly runtime?: Runtime | undefined;
}

export const EMULATOR_DEFAULTS = {
  port: 0,
  host: '127.0.0.1',
  maxBodyBytes: 1_048_576,
  maxRecords: 100_000,
} as const;

const SECRET_HEADERS: ReadonlySet<string> = new Set(['authorization', 'api-key', 'x-api-key', 'cookie']);

/** @throws SluiceError `invalid_option`. Options of the provider are checked by the provider. */
export function checkEmulatorOptions(options: EmulatorOptions): void {
  const { port, host, maxBodyBytes, maxRecords, recordHeaders = [] } = options;
  if (port !== undefined && wholeNumber('port', port, 0) > 65_535) throw invalidOption('port', 'at most 65535', port);
  if (host !== undefined) nonEmpty('host', host);
  if (maxBodyBytes !== undefined) wholeNumber('maxBodyBytes', maxBodyBytes);
  if (maxRecords !== undefined) wholeNumber('maxRecords', maxRecords);
  for (const name of recordHeaders) {
    if (SECRET_HEADERS.has(name.toLowerCase())) throw invalidOption('recordHeaders', 'names that hold no key', name);
  }
}
