import { createParser } from 'eventsource-parser';
import type { AsyncLocalStorage } from 'node:async_hooks';
import { createServer } from 'node:http';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { once } from 'node:events';
import type { Observable } from 'rxjs';
import { createGateway } from '../../../lib/http/index.ts';
import type { HttpListener } from '../../../lib/http/gateway/GatewayOptions.ts';
import type { Sluice, SluiceError } from '../../../lib/index.ts';
import type { PlannedCall } from '../plan/ChaosPlan.ts';
import { requestOf } from '../plan/requestOf.ts';
import { failureTold, reading } from './reading.ts';

/** Says to the listener, not to the gateway, which call a request is of. */
const NUMBER = 'x-chaos-call';

/** A gateway before each process, and clients that ask it over HTTP. */
export class GatewayClients {
  readonly #servers: Server[] = [];
  readonly #gateways: ReturnType<typeof createGateway>[] = [];

  /** `asked`: which call the request is of that is being worked for. */
  static async start(
    sluices: readonly Sluice[],
    asked: AsyncLocalStorage<number>,
    break_: (listener: HttpListener) => HttpListener,
  ): Promise<GatewayClients> {
    const clients = new GatewayClients();
    for (const sluice of sluices) {
      const gateway = createGateway(sluice);
      const listener = break_(gateway.listener);
      const server = createServer((request, response) => {
        asked.run(Number(request.headers[NUMBER]), () => listener(request, response));
      });
      // Its bound is in real time: of a process that is kept from running, a connection would be closed as it is used again.
      server.keepAliveTimeout = 0;
      await once(server.listen(0, '127.0.0.1'), 'listening');
      clients.#servers.push(server);
      clients.#gateways.push(gateway);
    }
    return clients;
  }

  get inFlight(): number {
    return this.#gateways.reduce((sum, { inFlight }) => sum + inFlight, 0);
  }

  /** What the client of an SSE stream, or of a whole answer, reads. Unsubscribing closes its connection. */
  ask(planned: PlannedCall, index: number, signal: AbortSignal): Observable<unknown> {
    return reading(signal, (leaving, next) => this.#read(planned, index, leaving, next));
  }

  async close(): Promise<void> {
    await Promise.all(this.#gateways.map((gateway) => gateway.close({ drainMs: 0 })));
    for (const server of this.#servers) {
      server.close();
      server.closeAllConnections();
    }
  }

  async #read(planned: PlannedCall, index: number, signal: AbortSignal, next: (value: unknown) => void): Promise<void> {
    const { api, process = 0, tenant, conversation, priority, deadlineMs, midStream } = planned;
    const { port } = this.#servers[process]?.address() as AddressInfo;
    const ours = { tenant, conversation, priority, 'deadline-ms': deadlineMs, 'mid-stream': midStream };
    const headers = Object.entries(ours).flatMap(([name, value]) =>
      value === undefined ? [] : [[`x-sluice-${name}`, String(value)] as const],
    );
    const stream = api !== 'complete';
    const response = await fetch(
      `http://127.0.0.1:${port}/v1/${api === 'respond' ? 'responses' : 'chat/completions'}`,
      {
        method: 'POST',
        headers: { 'content-type': 'application/json', [NUMBER]: String(index), ...Object.fromEntries(headers) },
        body: JSON.stringify({ ...requestOf(planned, index), stream }),
        signal,
      },
    );
    if (!response.ok || !stream) {
      const body = (await response.json()) as unknown;
      if (!response.ok) throw failureTold(body);
      next(body);
      return;
    }
    let ended = false;
    let failure: SluiceError | undefined;
    const parser = createParser({
      onEvent: ({ data }) => {
        if (ended || failure) throw new Error('something comes behind the end of a stream');
        const value = data === '[DONE]' ? undefined : (JSON.parse(data) as Readonly<Record<string, unknown>>);
        if (value === undefined || ENDS.has(value['type'])) ended = true;
        if (value === undefined) return;
        if ('error' in value || value['type'] === 'error') failure = failureTold(value);
        else next(value);
      },
    });
    for await (const text of (response.body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream())) {
      parser.feed(text);
    }
    if (failure) throw failure;
    if (!ended) throw new Error('a stream ends that has not been ended');
  }
}

const ENDS: ReadonlySet<unknown> = new Set(['response.completed', 'response.incomplete']);
