import { once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Pool } from 'undici';

// Started by gateways.ts with the base URL of the provider. Passes bytes, and does nothing else: what a gateway of the same
// server and the same pool costs at least. Ends with whoever started it.

const pool = new Pool(new URL(process.argv[2] as string).origin, {
  connections: null,
  pipelining: 1,
  headersTimeout: 0,
  bodyTimeout: 0,
});
const headers = { 'content-type': 'application/json', authorization: 'Bearer none' };

function pass(path: string, body: Buffer, response: ServerResponse): void {
  pool.dispatch(
    { method: 'POST', path, headers, body },
    {
      onRequestStart() {},
      onResponseStart(_, status, { 'content-type': type, 'content-length': length }) {
        response.writeHead(status, { 'content-type': type, ...(length !== undefined && { 'content-length': length }) });
      },
      onResponseData: (_, bytes) => void response.write(bytes),
      onResponseEnd: () => void response.end(),
      onResponseError: () => void response.destroy(),
    },
  );
}

const server = createServer((request: IncomingMessage, response) => {
  const parts: Buffer[] = [];
  request.on('data', (part: Buffer) => parts.push(part));
  request.on('end', () => pass(request.url ?? '', Buffer.concat(parts), response));
});
server.listen({ port: 0, host: '127.0.0.1', backlog: 4_096 });
await once(server, 'listening');
process.on('disconnect', () => process.exit());
process.send?.(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
