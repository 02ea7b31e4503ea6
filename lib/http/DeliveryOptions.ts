import { oneOf, positive, positiveOrInfinity, wholeNumber, zeroOrInfinity, zeroOrMore } from '../core/checks.ts';
import { invalidOption } from '../core/errors.ts';
import { systemRuntime } from '../core/runtime.ts';
import type { Runtime } from '../core/runtime.ts';
import type { StreamFormat } from './EventEncoding.ts';
import type { MessageOf } from './httpFailure.ts';

export interface DeliveryOptions {
  /** What the client reads. Default: `'events'`. */
  readonly format?: StreamFormat | undefined;
  /** How long an `EventSource` waits before it comes back. Milliseconds, a whole number. Default: 3,000. */
  readonly retryMs?: number | undefined;
  /** A comment is sent after so long without an event. Above 0; `Infinity`: none. Default: 15,000. */
  readonly heartbeatMs?: number | undefined;
  /**
   * The headers are sent after so long without a first event, since proxies end connections on which nothing comes. A
   * failure is an event from then on, and not a status. 0 or more; `Infinity`: wait for the first event. Default: 15,000.
   */
  readonly openAfterMs?: number | undefined;
  /** Bytes of events that wait for the client before the provider's body is read on. 0 or more. Default: 65,536. */
  readonly pauseBytes?: number | undefined;
  /** Bytes of events that may wait, where the source cannot pause; the client is dropped for more. Default: 1,048,576. */
  readonly maxPendingBytes?: number | undefined;
  /** A client that takes nothing for so long is dropped. Above 0, or `Infinity`. Default: 30,000. */
  readonly maxStalledMs?: number | undefined;
  /** What the client is told of a failure, `undefined` for the default: the message of a SluiceError, else `internal error`. */
  readonly messageOf?: MessageOf | undefined;
  /** Further headers of the stream. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Time and waiting. Default: real time. */
  readonly runtime?: Runtime | undefined;
}

export const DELIVERY_DEFAULTS: {
  readonly format: StreamFormat;
  readonly retryMs: number;
  readonly heartbeatMs: number;
  readonly openAfterMs: number;
  readonly pauseBytes: number;
  readonly maxPendingBytes: number;
  readonly maxStalledMs: number;
} = {
  format: 'events',
  retryMs: 3000,
  heartbeatMs: 15_000,
  openAfterMs: 15_000,
  pauseBytes: 64 * 1024,
  maxPendingBytes: 1024 * 1024,
  maxStalledMs: 30_000,
};

/** How a stream to a client ended. */
export interface DeliveryReport {
  /**
   * `'done'`: all was handed over. `'failed'`: so was the failure. `'left'`: the client went away. `'dropped'`: it did
   * not read, and was cut off.
   */
  readonly outcome: 'done' | 'failed' | 'left' | 'dropped';
  /** Events that were written; those that waited together count as one. */
  readonly events: number;
  /** Why it failed, or why the client was dropped. */
  readonly error: unknown;
}

export interface DeliverySettings {
  readonly format: StreamFormat;
  readonly retryMs: number;
  readonly heartbeatMs: number;
  readonly openAfterMs: number;
  readonly pauseBytes: number;
  readonly maxPendingBytes: number;
  readonly maxStalledMs: number;
  readonly messageOf: MessageOf | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly runtime: Runtime;
}

/** @throws SluiceError `invalid_option` if an option is wrong. */
export function deliverySettings(options: DeliveryOptions): DeliverySettings {
  const of = <K extends keyof typeof DELIVERY_DEFAULTS>(key: K): (typeof DELIVERY_DEFAULTS)[K] =>
    (options[key] as (typeof DELIVERY_DEFAULTS)[K] | undefined) ?? DELIVERY_DEFAULTS[key];
  return {
    format: oneOf('format', of('format'), ['events', 'ui-messages']),
    retryMs: wholeNumber('retryMs', of('retryMs'), 0),
    heartbeatMs: positiveOrInfinity('heartbeatMs', of('heartbeatMs')),
    openAfterMs: zeroOrInfinity('openAfterMs', of('openAfterMs')),
    pauseBytes: zeroOrMore('pauseBytes', of('pauseBytes')),
    maxPendingBytes: positive('maxPendingBytes', of('maxPendingBytes')),
    maxStalledMs: positiveOrInfinity('maxStalledMs', of('maxStalledMs')),
    messageOf: options.messageOf,
    headers: validHeaders(options.headers),
    runtime: options.runtime ?? systemRuntime,
  };
}

/** Checked here, so that a wrong one shows at once and not with the first event. */
function validHeaders(headers: Readonly<Record<string, string>> | undefined): Readonly<Record<string, string>> {
  try {
    return Object.fromEntries(new Headers(headers));
  } catch {
    throw invalidOption('headers', 'names and values that may stand in headers', headers);
  }
}
