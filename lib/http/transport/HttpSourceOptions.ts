import { validateHeaderName, validateHeaderValue } from 'node:http';
import type { ConnectionOptions } from 'node:tls';
import type { ServerAddress } from '../../core/attempt.ts';
import { nonEmpty, positive, wholeNumber } from '../../core/checks.ts';
import { invalidOption } from '../../core/errors.ts';
import { systemRuntime } from '../../core/runtime.ts';
import type { Runtime } from '../../core/runtime.ts';
import { SOURCE_DEFAULTS } from '../../sources/AttemptOptions.ts';
import { addressOf } from '../../sources/serverOf.ts';

export interface HttpSourceOptions {
  /** What the paths of the API are added to: `https://api.openai.com/v1`. A query in it goes along with each request. */
  readonly baseURL: string;
  /** Sent as `authorization: Bearer`. A function is asked at each attempt. Default: none is sent. */
  readonly apiKey?: string | (() => string) | undefined;
  /** Sent with each request. Those of an attempt take their place. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Most connections; requests above it wait for one. A whole number from 1, or `Infinity`. Default: `Infinity`. */
  readonly maxConnections?: number | undefined;
  /** How long a connection is kept without a request, where the server does not say. Default: 4,000. */
  readonly keepAliveMs?: number | undefined;
  /** How long a connection may take to come about. Default: 10,000. */
  readonly connectMs?: number | undefined;
  /** Of the connection, for https: `ca`, `cert`, `key`, `servername` and the like. Default: as Node has them. */
  readonly tls?: ConnectionOptions | undefined;
  /** Largest event of a stream, or whole answer, in bytes. A larger one is `upstream_body_invalid`. Default: 8 MiB. */
  readonly maxEventBytes?: number | undefined;
  /** Default: real time. */
  readonly runtime?: Runtime | undefined;
}

/** Defaults of {@link HttpSourceOptions}. */
export const HTTP_SOURCE_DEFAULTS: {
  readonly maxConnections: number;
  readonly keepAliveMs: number;
  readonly connectMs: number;
  readonly maxEventBytes: number;
} = Object.freeze({
  maxConnections: Infinity,
  keepAliveMs: 4_000,
  connectMs: 10_000,
  maxEventBytes: SOURCE_DEFAULTS.maxEventBytes,
});

/** {@link HttpSourceOptions}, checked. */
export interface HttpSettings {
  readonly origin: string;
  readonly server: ServerAddress;
  readonly paths: Readonly<Record<'chat' | 'responses', string>>;
  readonly apiKey: string | (() => string) | undefined;
  /** By their lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
  readonly maxConnections: number;
  readonly keepAliveMs: number;
  readonly connectMs: number;
  readonly tls: ConnectionOptions | undefined;
  readonly maxEventBytes: number;
  readonly runtime: Runtime;
}

/** @throws SluiceError `invalid_option` */
export function httpSettings(options: HttpSourceOptions): HttpSettings {
  const defaults = HTTP_SOURCE_DEFAULTS;
  const { maxConnections = defaults.maxConnections, apiKey, tls } = options;
  const url = urlOf(options.baseURL);
  const base = url.pathname.replace(/\/+$/, '');
  if (typeof apiKey === 'string') nonEmpty('apiKey', apiKey);
  else if (apiKey !== undefined && typeof apiKey !== 'function') {
    throw invalidOption('apiKey', 'a string or a function', apiKey);
  }
  if (tls !== undefined && (typeof tls !== 'object' || tls === null)) throw invalidOption('tls', 'an object', tls);
  return {
    origin: url.origin,
    server: addressOf(url.origin) as ServerAddress,
    paths: { chat: `${base}/chat/completions${url.search}`, responses: `${base}/responses${url.search}` },
    apiKey,
    headers: {
      'content-type': 'application/json',
      accept: 'application/json',
      'user-agent': 'sluice',
      ...lowerCased(options.headers ?? {}),
    },
    maxConnections: maxConnections === Infinity ? Infinity : wholeNumber('maxConnections', maxConnections),
    keepAliveMs: positive('keepAliveMs', options.keepAliveMs ?? defaults.keepAliveMs),
    connectMs: positive('connectMs', options.connectMs ?? defaults.connectMs),
    tls,
    maxEventBytes: wholeNumber('maxEventBytes', options.maxEventBytes ?? defaults.maxEventBytes),
    runtime: options.runtime ?? systemRuntime,
  };
}

function urlOf(baseURL: string): URL {
  const url = typeof baseURL === 'string' && URL.canParse(baseURL) ? new URL(baseURL) : undefined;
  const known = url?.protocol === 'http:' || url?.protocol === 'https:';
  if (url !== undefined && known && url.username === '' && url.password === '') return url;
  throw invalidOption('baseURL', 'an http or https URL without a user name', baseURL);
}

/** @throws SluiceError `invalid_option`, which does not tell the value: it may be a key. */
function lowerCased(headers: Readonly<Record<string, string>>): Record<string, string> {
  const lower: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    try {
      validateHeaderName(name);
      validateHeaderValue(name, value);
    } catch {
      throw invalidOption(`headers.${name.replace(/[^\w-]/g, '?')}`, 'a header with a value that can be sent', value);
    }
    lower[name.toLowerCase()] = value;
  }
  return lower;
}
