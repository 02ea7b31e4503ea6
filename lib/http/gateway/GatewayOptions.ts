import type { IncomingMessage, ServerResponse } from 'node:http';
import { positive, positiveOrInfinity, wholeNumber, zeroOrInfinity } from '../../core/checks.ts';
import { invalidOption } from '../../core/errors.ts';

/** As `http.createServer` and Express take it. */
export type HttpListener = (request: IncomingMessage, response: ServerResponse) => void;

export interface GatewayOptions {
  /** Largest body of a request, in bytes. A larger one is answered with 413. */
  readonly maxBodyBytes?: number | undefined;
  /** From the head of a request to the end of its body. After it: 408. */
  readonly bodyMs?: number | undefined;
  /** How long a client may read nothing of its answer before it is cut off. */
  readonly idleMs?: number | undefined;
  /**
   * A comment is sent on a stream that has begun after so long without an event: what stands between would take it for
   * dead. Milliseconds above 0; `Infinity`: none.
   */
  readonly heartbeatMs?: number | undefined;
  /**
   * A stream begins after so long without any content, with status 200 and comments. Whatever fails from then on is an event,
   * and its status is lost. Milliseconds, 0 or more. Default: `Infinity`, which waits for the first content.
   */
  readonly openAfterMs?: number | undefined;
  /** From a request to the end of its answer. `Infinity`: no bound but those of the policy. */
  readonly totalMs?: number | undefined;
  /** Most that is kept of an answer which is delivered as a whole only, in bytes of its events. */
  readonly maxBufferedBytes?: number | undefined;
  /**
   * Names and addresses that requests may be sent to, without port, as `Host` says them. Others are answered with 421:
   * so no page in a browser can reach a gateway by a name of its own. A function is asked at each request. Default: any.
   */
  readonly hosts?: readonly string[] | (() => readonly string[] | undefined) | undefined;
  /** Answers `/metrics`. Default: how the client stands, as text that Prometheus reads. */
  readonly metrics?: HttpListener | undefined;
  /** Answers `GET` of `/` and of every path that the gateway has no use for, such as a live page. Default: 404. */
  readonly page?: HttpListener | undefined;
}

/** Defaults of {@link GatewayOptions}. */
export const GATEWAY_DEFAULTS: {
  readonly maxBodyBytes: number;
  readonly bodyMs: number;
  readonly idleMs: number;
  readonly heartbeatMs: number;
  readonly openAfterMs: number;
  readonly totalMs: number;
  readonly maxBufferedBytes: number;
} = Object.freeze({
  maxBodyBytes: 32 * 1024 * 1024,
  bodyMs: 30_000,
  idleMs: 60_000,
  heartbeatMs: 15_000,
  openAfterMs: Infinity,
  totalMs: 3_600_000,
  maxBufferedBytes: 16 * 1024 * 1024,
});

/** {@link GatewayOptions} after checks. */
export interface GatewaySettings {
  readonly maxBodyBytes: number;
  readonly bodyMs: number;
  readonly idleMs: number;
  readonly heartbeatMs: number;
  readonly openAfterMs: number;
  readonly totalMs: number;
  readonly maxBufferedBytes: number;
  readonly hosts: () => ReadonlySet<string> | undefined;
  readonly metrics: HttpListener | undefined;
  readonly page: HttpListener | undefined;
}

/** @throws SluiceError `invalid_option` */
export function gatewaySettings(options: GatewayOptions): GatewaySettings {
  const { maxBodyBytes, bodyMs, idleMs, heartbeatMs, openAfterMs, totalMs, maxBufferedBytes } = {
    ...GATEWAY_DEFAULTS,
    ...given(options),
  };
  const { hosts, metrics, page } = options;
  if (hosts !== undefined && typeof hosts !== 'function' && !Array.isArray(hosts)) {
    throw invalidOption('hosts', 'a list of names, or a function that gives one', hosts);
  }
  for (const [name, value] of Object.entries({ metrics, page })) {
    if (value !== undefined && typeof value !== 'function') throw invalidOption(name, 'a function', value);
  }
  return {
    maxBodyBytes: wholeNumber('maxBodyBytes', maxBodyBytes),
    bodyMs: positive('bodyMs', bodyMs),
    idleMs: positiveOrInfinity('idleMs', idleMs),
    heartbeatMs: positiveOrInfinity('heartbeatMs', heartbeatMs),
    openAfterMs: zeroOrInfinity('openAfterMs', openAfterMs),
    totalMs: positiveOrInfinity('totalMs', totalMs),
    maxBufferedBytes: wholeNumber('maxBufferedBytes', maxBufferedBytes),
    hosts: hostsOf(hosts),
    metrics,
    page,
  };
}

/** The set is made anew only where the list is another one. */
function hostsOf(hosts: GatewayOptions['hosts']): GatewaySettings['hosts'] {
  const listed = typeof hosts === 'function' ? hosts : () => hosts;
  let list: readonly string[] | undefined;
  let set: ReadonlySet<string> | undefined;
  return () => {
    const now = listed();
    if (now !== list) {
      list = now;
      set = now && new Set(now.map((host) => host.toLowerCase()));
    }
    return set;
  };
}

type Numbers = { -readonly [K in keyof typeof GATEWAY_DEFAULTS]?: number };

function given(options: GatewayOptions): Numbers {
  const numbers: Numbers = {};
  for (const name of Object.keys(GATEWAY_DEFAULTS) as (keyof Numbers)[]) {
    const value = options[name];
    if (value !== undefined) numbers[name] = value;
  }
  return numbers;
}
