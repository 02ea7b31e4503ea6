import { once } from 'node:events';
import { createServer } from 'node:http';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import type { HttpListener } from './GatewayOptions.ts';
import type { ListenSettings } from './ListenOptions.ts';
import { HEADERS_TOO_LARGE, NOT_HTTP, TOO_SLOW } from './Refusal.ts';
import type { Refusal } from './Refusal.ts';

/** How often Node looks for heads that are late. */
const CHECK_MS = 1_000;
const SPARE_MS = 1_000;
/** Connections that wait to be taken. With Node's own 511, some of a thousand clients that come at once wait for seconds. */
const BACKLOG = 4_096;

/** A server of the gateway's own. What is no request is answered here: it never gets to a listener. */
export class GatewayServer {
  readonly #server: Server;
  readonly #settings: ListenSettings;

  constructor(listener: HttpListener, settings: ListenSettings, bodyMs: number) {
    const { maxHeaderBytes, headersMs, keepAliveMs, maxConnections } = settings;
    this.#settings = settings;
    this.#server = createServer(
      {
        maxHeaderSize: maxHeaderBytes,
        headersTimeout: headersMs,
        // Later than the desk's own limit on bodies, which is answered like all else: this one is for bodies that nobody waits for.
        requestTimeout: headersMs + bodyMs + SPARE_MS,
        keepAliveTimeout: keepAliveMs,
        connectionsCheckingInterval: CHECK_MS,
      },
      listener,
    );
    this.#server.maxConnections = maxConnections;
    this.#server.on('clientError', (error: NodeJS.ErrnoException, socket) => answerRaw(refusalOf(error.code), socket));
  }

  async listening(): Promise<{ readonly host: string; readonly port: number }> {
    const { port, host } = this.#settings;
    this.#server.listen({ port, host, backlog: BACKLOG });
    await once(this.#server, 'listening');
    const { address, port: taken } = this.#server.address() as AddressInfo;
    return { host: address, port: taken };
  }

  /** Takes no more connections; those that are open go on. */
  stop(): void {
    this.#server.close();
  }

  async end(): Promise<void> {
    if (!this.#server.listening) this.#server.closeAllConnections();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }
}

function refusalOf(code: string | undefined): Refusal | undefined {
  if (code === 'HPE_HEADER_OVERFLOW') return HEADERS_TOO_LARGE;
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return TOO_SLOW;
  return code?.startsWith('HPE_') ? NOT_HTTP : undefined;
}

function answerRaw(refusal: Refusal | undefined, socket: Duplex): void {
  if (refusal === undefined || !socket.writable) {
    socket.destroy();
    return;
  }
  const { status, body } = refusal;
  const head = [
    `HTTP/1.1 ${status} -`,
    'content-type: application/json',
    `content-length: ${Buffer.byteLength(body)}`,
    'connection: close',
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`, () => socket.destroy());
}
