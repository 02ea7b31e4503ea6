import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';

export interface HangingProxy {
  readonly port: number;
  /** Connections stay open and carry nothing. */
  hang(): void;
  goOn(): void;
  close(): Promise<void>;
}

/** A way to a port of this machine that can hang. */
export async function startHangingProxy(toPort: number): Promise<HangingProxy> {
  const sockets = new Set<Socket>();
  let hanging = false;
  const add = (socket: Socket): void => {
    sockets.add(socket);
    socket.on('error', () => {}).on('close', () => sockets.delete(socket));
    if (hanging) socket.pause();
  };
  const server = createServer((near) => {
    const far = connect(toPort, '127.0.0.1');
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      from.on('data', (bytes) => to.write(bytes)).on('close', () => to.destroy());
      add(from);
    }
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    hang() {
      hanging = true;
      for (const socket of sockets) socket.pause();
    },
    goOn() {
      hanging = false;
      for (const socket of sockets) socket.resume();
    },
    async close() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}
