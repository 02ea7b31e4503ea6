import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';

/** What to do with a connection once a request has begun to arrive. */
export type Serve = (socket: Socket) => void | Promise<void>;

export interface ByteServer {
  readonly baseURL: string;
  /** For the requests from now on. */
  serve(serve: Serve): void;
  readonly open: number;
  close(): Promise<void>;
}

/** A server on loopback that speaks no HTTP of its own: the head is in the hands of the test too. */
export async function byteServer(): Promise<ByteServer> {
  const sockets = new Set<Socket>();
  let current: Serve = () => {};
  const server = createServer({ noDelay: true }, (socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => sockets.delete(socket));
    socket.once('data', () => void current(socket));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    baseURL: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    serve(serve) {
      current = serve;
    },
    get open() {
      return sockets.size;
    },
    async close() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}
