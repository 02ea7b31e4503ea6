import { once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';

/** One request that the server got, to be answered by hand. Everything is written as it stands, and at once. */
export interface RawExchange {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Record<string, unknown>;
  /** Number of the connection that it came on, from 0. */
  readonly connection: number;
  /** Settles when the answer is over or the client has closed the connection; tells which, and when. */
  readonly closed: Promise<{ readonly aborted: boolean; readonly atMs: number }>;
  /** Bytes handed to the socket so far. */
  readonly written: number;
  head(status?: number, headers?: Record<string, string>): void;
  write(bytes: string | Uint8Array): boolean;
  /** `data:` events, one for each value; text is sent as it is. */
  events(...values: readonly unknown[]): void;
  /** `head` and body of an answer that is not streamed. */
  json(status: number, body: unknown, headers?: Record<string, string>): void;
  /** Settles when the socket takes more. */
  drained(): Promise<unknown>;
  end(): void;
  /** Closes the connection in the middle of the body. */
  cut(): void;
  /** The same by a TCP reset. */
  reset(): void;
}

export interface RawServer {
  readonly baseURL: string;
  readonly exchanges: readonly RawExchange[];
  /** Connections opened so far. */
  readonly connections: number;
  /** Connections that are open. */
  readonly open: number;
  /** The next request that was not asked for yet. */
  next(): Promise<RawExchange>;
  close(): Promise<void>;
}

/** A server on loopback whose every byte is written by the test. `answer` is called for each request, if given. */
export async function rawServer(answer?: (exchange: RawExchange, index: number) => void): Promise<RawServer> {
  const exchanges: RawExchange[] = [];
  const waiting: ((exchange: RawExchange) => void)[] = [];
  const sockets = new Set<Socket>();
  const numbers = new WeakMap<Socket, number>();
  let taken = 0;
  let connections = 0;

  const server = createServer((request, response) => {
    void exchangeOf(request, response, numbers.get(request.socket) ?? -1).then((exchange) => {
      exchanges.push(exchange);
      waiting.shift()?.(exchanges[taken++] as RawExchange);
      answer?.(exchange, exchanges.length - 1);
    });
  });
  server.on('connection', (socket) => {
    numbers.set(socket, connections++);
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => sockets.delete(socket));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');

  return {
    baseURL: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    exchanges,
    get connections() {
      return connections;
    },
    get open() {
      return sockets.size;
    },
    next() {
      const exchange = exchanges[taken];
      if (exchange === undefined) return new Promise((resolve) => waiting.push(resolve));
      taken++;
      return Promise.resolve(exchange);
    },
    async close() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

async function exchangeOf(
  request: IncomingMessage,
  response: ServerResponse,
  connection: number,
): Promise<RawExchange> {
  const { socket } = request;
  const closed = new Promise<{ aborted: boolean; atMs: number }>((resolve) => {
    response.on('close', () => resolve({ aborted: !response.writableFinished, atMs: performance.now() }));
  });
  let text = '';
  for await (const part of request.setEncoding('utf8')) text += part as string;
  let written = 0;
  const write = (bytes: string | Uint8Array): boolean => {
    written += bytes.length;
    return response.write(bytes);
  };
  const head = (status = 200, headers: Record<string, string> = { 'content-type': 'text/event-stream' }): void => {
    response.writeHead(status, headers);
    response.flushHeaders();
  };
  return {
    path: request.url ?? '',
    headers: request.headers,
    body: text === '' ? {} : (JSON.parse(text) as Record<string, unknown>),
    connection,
    closed,
    get written() {
      return written;
    },
    head,
    write,
    events(...values) {
      for (const value of values) write(`data: ${typeof value === 'string' ? value : JSON.stringify(value)}\n\n`);
    },
    json(status, body, headers = {}) {
      head(status, { 'content-type': 'application/json', ...headers });
      response.end(JSON.stringify(body));
    },
    drained: () => once(response, 'drain'),
    end: () => void response.end(),
    cut: () => void socket.destroy(),
    reset: () => void socket.resetAndDestroy(),
  };
}
