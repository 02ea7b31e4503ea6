import type { IncomingMessage, ServerResponse } from 'node:http';
import { engineOf } from '../../client/engineOf.ts';
import type { Sluice } from '../../client/Sluice.ts';
import { SLUICE_DEFAULTS } from '../../client/SluiceOptions.ts';
import { zeroOrInfinity } from '../../core/checks.ts';
import { GatewayDesk } from './GatewayDesk.ts';
import { gatewaySettings } from './GatewayOptions.ts';
import type { GatewayOptions, HttpListener } from './GatewayOptions.ts';
import { GatewayServer } from './GatewayServer.ts';
import { listenOptions } from './ListenOptions.ts';
import type { ListenOptions } from './ListenOptions.ts';

/** What `createSluice` returns; nothing else will do. */
export interface GatewayClient {
  readonly fetch: typeof globalThis.fetch;
}

export interface GatewayCloseOptions {
  /** How long calls that run may go on. Milliseconds, 0 or more, or `Infinity`. Default: 10,000. */
  readonly drainMs?: number | undefined;
}

/** Where a gateway listens. */
export interface GatewayAddress {
  readonly host: string;
  readonly port: number;
  /** Such as `http://127.0.0.1:8787`. */
  readonly url: string;
  /** What an OpenAI client takes as its base URL. */
  readonly baseURL: string;
}

/** See {@link createGateway}. */
export interface Gateway {
  /** For `http.createServer`, or for `app.use` of Express, before anything that reads bodies. */
  readonly listener: HttpListener;
  /** Calls that run. */
  readonly inFlight: number;
  /**
   * Listens with a server of its own, whose limits keep off clients that are slow on purpose. Rejects with Node's own
   * error where that cannot be, such as `EADDRINUSE`.
   */
  listen(options?: ListenOptions): Promise<GatewayAddress>;
  /**
   * Answers new requests with 503 and takes no more connections, lets calls that run come to their end, and ends with
   * `closed` what is left after `drainMs`. The client itself stays open.
   */
  close(options?: GatewayCloseOptions): Promise<void>;
}

/**
 * An OpenAI-compatible HTTP server in front of a client: every OpenAI SDK is protected by its policy once its base URL is
 * changed.
 *
 * ```text
 * POST /v1/chat/completions  streamed or not
 * POST /v1/responses         streamed or not
 * GET  /v1/models            the models that the policy lists
 * GET  /healthz  /readyz     whether it runs; whether it takes calls
 * GET  /metrics              for Prometheus
 * ```
 *
 * Requests and answers pass byte for byte where the policy changes nothing. A client that leaves ends its call in the same
 * tick; one that reads slowly slows its own answer down, and nothing else.
 *
 * - **Keys:** those of the policy's `gateway.keys`. Without any, whoever reaches the gateway may ask it.
 * - **Headers of a request:** `x-sluice-tenant`, `-priority`, `-conversation`, `-deadline-ms`, `-mid-stream`.
 * - **Headers of an answer:** `x-request-id`, `x-sluice-attempts`, `x-sluice-model`, `x-ratelimit-*`, and of a failure
 *   `retry-after`, `retry-after-ms`, `x-should-retry`.
 * - **Shared:** all that the client has; a gateway adds no limits of its own.
 *
 * @param sluice - What `createSluice` returns.
 * @param options - See {@link GatewayOptions}.
 * @throws SluiceError `invalid_option`.
 *
 * @example
 * ```ts
 * import OpenAI from 'openai';
 * import { createSluice } from 'sluice';
 * import { createGateway } from 'sluice/http';
 *
 * const sluice = createSluice(new OpenAI(), { preset: 'interactive' });
 * const gateway = createGateway(sluice);
 * const { baseURL } = await gateway.listen({ port: 8787 });
 * console.log(`Set OPENAI_BASE_URL=${baseURL}`);
 * ```
 */
export function createGateway(sluice: GatewayClient, options: GatewayOptions = {}): Gateway {
  const engine = engineOf(sluice);
  const settings = gatewaySettings(options);
  const desk = new GatewayDesk(sluice as Sluice, engine, settings);
  const listener = (request: IncomingMessage, response: ServerResponse): void => desk.answer(request, response);
  let server: GatewayServer | undefined;
  return {
    listener,
    get inFlight() {
      return desk.inFlight;
    },
    async listen(where = {}) {
      const opened = new GatewayServer(listener, listenOptions(where, server), settings.bodyMs);
      const { host, port } = await opened.listening();
      server = opened;
      desk.listensOn(host);
      const url = `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
      return { host, port, url, baseURL: `${url}/v1` };
    },
    async close({ drainMs = SLUICE_DEFAULTS.drainMs } = {}) {
      zeroOrInfinity('drainMs', drainMs);
      server?.stop();
      await desk.close(drainMs);
      await server?.end();
    },
  };
}
