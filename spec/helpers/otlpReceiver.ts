import { once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gunzipSync } from 'node:zlib';
import { metricsOf, spansOf } from './otlpMessages.ts';
import type { ReceivedMetric, ReceivedSpan } from './otlpMessages.ts';

export interface ReceivedRequest {
  readonly path: string;
  readonly contentType: string;
  readonly encoding: string | undefined;
  readonly headers: IncomingMessage['headers'];
  /** Unpacked. */
  readonly body: Buffer;
}

/** A back end for OTLP over HTTP, JSON and protobuf, packed by gzip or not, that keeps all it is sent. */
export interface OtlpReceiver {
  /** For `OTEL_EXPORTER_OTLP_ENDPOINT`. */
  readonly endpoint: string;
  readonly requests: readonly ReceivedRequest[];
  /** In the order in which they arrived, which is about that in which they ended. */
  readonly spans: readonly ReceivedSpan[];
  readonly metrics: readonly ReceivedMetric[];
  /** Why a request could not be read. */
  readonly complaints: readonly string[];
  close(): Promise<void>;
}

export async function otlpReceiver(): Promise<OtlpReceiver> {
  const requests: ReceivedRequest[] = [];
  const spans: ReceivedSpan[] = [];
  const metrics: ReceivedMetric[] = [];
  const complaints: string[] = [];

  const keep = (request: ReceivedRequest): void => {
    requests.push(request);
    if (request.path === '/v1/traces') spans.push(...spansOf(request.body, request.contentType));
    else if (request.path === '/v1/metrics') metrics.push(...metricsOf(request.body, request.contentType));
    else throw new Error(`path ${request.path}`);
  };
  const server = createServer((request, response) => {
    void requestOf(request)
      .then(keep)
      .then(
        () => answer(response, 200, request.headers['content-type']),
        (error: unknown) => {
          complaints.push(String(error));
          answer(response, 400, request.headers['content-type']);
        },
      );
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');

  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    spans,
    metrics,
    complaints,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

async function requestOf(request: IncomingMessage): Promise<ReceivedRequest> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  const encoding = request.headers['content-encoding'];
  const body = Buffer.concat(parts);
  return {
    path: request.url ?? '',
    contentType: request.headers['content-type'] ?? '',
    encoding,
    headers: request.headers,
    body: encoding === 'gzip' ? gunzipSync(body) : body,
  };
}

/** An empty message says that all was taken. */
function answer(response: ServerResponse, status: number, contentType = 'text/plain'): void {
  response.writeHead(status, { 'content-type': contentType });
  response.end(contentType === 'application/json' ? '{}' : '');
}
