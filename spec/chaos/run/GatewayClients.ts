import { createParser } from 'eventsource-parser';
import { AsyncLocalStorage } from 'node:async_hooks';
import { createServer } from 'node:http';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { once } from 'node:events';
import { Observable } from 'rxjs';
import { createGateway } from '../../../lib/http/index.ts';
import type { HttpListener } from '../../../lib/http/gateway/GatewayOptions.ts';
import { SluiceError } from '../../../lib/index.ts';
import type { Sluice } from '../../../lib/index.ts';
import type { PlannedCall } from '../plan/ChaosPlan.ts';
import { requestOf } from '../plan/requestOf.ts';

/** Says to the listener, not to the gateway, which call a request is of. */
const NUMBER = 'x-chaos-call';

/** A gateway before each process, and clients that ask it over HTTP. */
export class GatewayClients {
  readonly #servers: Server[] = [];
  readonly #gateways: ReturnType<typeof createGateway>[] = [];
  readonly #asked = new AsyncLocalStorage<number>();

  static async start(
    sluices: readonly Sluice[],
    break_: (listener: HttpListener) => HttpListener,
  ): Promise<GatewayClients> {
    const clients = new GatewayClients();
    for (const sluice of sluices) {
      const gateway = createGateway(sluice);
      const listener = break_(gateway.listener);
      const server = createServer((request, response) => {
        clients.#asked.run(Number(request.headers[NUMBER]), () => listener(request, response));
      });
      await once(server.listen(0, '127.0.0.1'), 'listening');
      clients.#servers.push(server);
      clients.#gateways.push(gateway);
    }
    return clients;
  }

  /** Of which call the request is that is being worked for now. */
  get asked(): number | undefined {
    return this.#asked.getStore();
  }

  get inFlight(): number {
    return this.#gateways.reduce((sum, { inFlight }) => sum + inFlight, 0);
  }

  /** What the client of an SSE stream, or of a whole answer, reads. Unsubscribing closes its connection. */
  ask(planned: PlannedCall, index: number, signal: AbortSignal): Observable<unknown> {
    // Hand-written: a promise that ends in either of three ways, and is aborted from outside.
    return new Observable((subscriber) => {
      const leaving = new AbortController();
      const leave = (): void => subscriber.error(new SluiceError('aborted', 'the client has left'));
      signal.addEventListener('abort', leave);
      subscriber.add(() => {
        signal.removeEventListener('abort', leave);
        leaving.abort();
      });
      this.#read(planned, index, leaving.signal, (value) => subscriber.next(value)).then(
        () => subscriber.complete(),
        (error: unknown) => subscriber.error(error),
      );
    });
  }

  async close(): Promise<void> {
    await Promise.all(this.#gateways.map((gateway) => gateway.close({ drainMs: 0 })));
    for (const server of this.#servers) {
      server.close();
      server.closeAllConnections();
    }
  }

  async #read(planned: PlannedCall, index: number, signal: AbortSignal, next: (value: unknown) => void): Promise<void> {
    const { api, process = 0, tenant, conversation, priority, deadlineMs } = planned;
    const { port } = this.#servers[process]?.address() as AddressInfo;
    const ours = { tenant, conversation, priority, 'deadline-ms': deadlineMs, 'mid-stream': 'fail' };
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
      if (!response.ok) throw failureOf(body);
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
        if ('error' in value || value['type'] === 'error') failure = failureOf(value);
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

/** Its words are those of a provider where that has failed, so that only they can be told from it. */
function failureOf(body: unknown): SluiceError {
  return new SluiceError('server_error', JSON.stringify(body));
}
