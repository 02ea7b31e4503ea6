import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Engine } from '../../client/Engine.ts';
import { closedError } from '../../client/RunningCalls.ts';
import type { Sluice } from '../../client/Sluice.ts';
import { startTimer } from '../../core/runtime.ts';
import type { AskedCall } from './askedCall.ts';
import { GatewayExchange } from './GatewayExchange.ts';
import type { GatewaySettings } from './GatewayOptions.ts';
import { isAddressedTo, isLoopback } from './hosts.ts';
import { ANYONE, Keyring, presentedKey } from './Keyring.ts';
import type { Caller } from './Keyring.ts';
import { modelList } from './modelList.ts';
import * as refused from './Refusal.ts';
import type { Refusal } from './Refusal.ts';
import { sendJson, sendRefusal } from './replies.ts';
import { routeOf } from './routes.ts';
import { standingText } from './standingText.ts';

/** How long a client gets to read the end of an answer that was cut. */
const FLUSH_MS = 1_000;

/** Takes requests: says who asks and what for, and who answers. */
export class GatewayDesk {
  readonly #sluice: Sluice;
  readonly #engine: Engine;
  readonly #settings: GatewaySettings;
  readonly #running = new Set<GatewayExchange>();
  #keyring: Keyring;
  #host: string | undefined;
  #closing: Promise<void> | undefined;
  #drained: () => void = () => {};
  readonly #left = (exchange: GatewayExchange): void => {
    this.#running.delete(exchange);
    if (this.#running.size === 0) this.#drained();
  };

  constructor(sluice: Sluice, engine: Engine, settings: GatewaySettings) {
    this.#sluice = sluice;
    this.#engine = engine;
    this.#settings = settings;
    this.#keyring = new Keyring(engine.policy.gateway);
  }

  get inFlight(): number {
    return this.#running.size;
  }

  /** Where requests come from: warns if others than programs of this machine need no key, now or after a reload. */
  listensOn(host: string): void {
    this.#host = host;
    this.#warnIfOpen();
  }

  #warnIfOpen(): void {
    const host = this.#host;
    if (host === undefined || isLoopback(host) || this.#engine.policy.gateway.keys.length > 0) return;
    this.#engine.warnOnce(
      `the gateway listens on ${host} and asks for no key: whoever reaches it may use the accounts behind it`,
    );
  }

  answer(request: IncomingMessage, response: ServerResponse): void {
    // Without a listener the error of a connection that breaks would end the process.
    response.on('error', ignore);
    try {
      const refusal = this.#answer(request, response);
      if (refusal === undefined) return;
      sendRefusal(response, refusal);
      request.resume();
    } catch {
      sendRefusal(response, refused.BROKEN);
    }
  }

  /** What it is refused for; nothing where it is answered, now or later. */
  #answer(request: IncomingMessage, response: ServerResponse): Refusal | undefined {
    const hosts = this.#settings.hosts();
    const { method = '', url = '' } = request;
    if (hosts !== undefined && !isAddressedTo(request.headers.host, hosts)) return refused.WRONG_HOST;
    const route = routeOf(url);
    if (route === undefined) return this.#page(request, response);
    if (!route.methods.includes(method)) return refused.wrongMethod(route.methods);
    const caller = route.open ? ANYONE : this.#callerOf(request);
    if (caller instanceof refused.Refusal) return caller;
    switch (route.kind) {
      case 'call':
        return this.#call(request, response, route.api, caller);
      case 'models':
        return this.#models(response, route.model);
      case 'metrics':
        return this.#metrics(request, response, caller);
      case 'ready':
        return this.#closed ? refused.CLOSING : done(sendJson(response, 200, '{"status":"ready"}'));
      case 'health':
        return done(sendJson(response, 200, '{"status":"ok"}'));
    }
  }

  get #closed(): boolean {
    return this.#closing !== undefined || this.#engine.calls.closed;
  }

  #callerOf(request: IncomingMessage): Caller | Refusal {
    const { gateway } = this.#engine.policy;
    if (!this.#keyring.isOf(gateway)) {
      this.#keyring = new Keyring(gateway);
      this.#warnIfOpen();
    }
    if (this.#keyring.open) return ANYONE;
    const key = presentedKey(request.headers);
    return this.#keyring.callerOf(key) ?? (key === undefined ? refused.NO_KEY : refused.WRONG_KEY);
  }

  #call(
    request: IncomingMessage,
    response: ServerResponse,
    api: AskedCall['api'],
    caller: Caller,
  ): Refusal | undefined {
    if (this.#closed) return refused.CLOSING;
    const exchange = new GatewayExchange(this.#engine, request, response, this.#settings, this.#left);
    this.#running.add(exchange);
    return done(exchange.run(api, caller));
  }

  #models(response: ServerResponse, name: string | undefined): Refusal | undefined {
    const models = modelList(this.#engine.policy);
    if (name === undefined) return done(sendJson(response, 200, JSON.stringify({ object: 'list', data: models })));
    const model = models.find(({ id }) => id === name);
    return model === undefined ? refused.UNKNOWN_MODEL : done(sendJson(response, 200, JSON.stringify(model)));
  }

  #metrics(request: IncomingMessage, response: ServerResponse, caller: Caller): Refusal | undefined {
    if (caller.tenant !== undefined) return refused.NOT_OF_OPERATOR;
    const { metrics } = this.#settings;
    if (metrics !== undefined) return done(metrics(request, response));
    const text = standingText(this.#sluice.snapshot());
    response.writeHead(200, {
      'content-type': 'text/plain; version=0.0.4; charset=utf-8',
      'cache-control': 'no-store',
    });
    return done(response.end(request.method === 'HEAD' ? undefined : text));
  }

  #page(request: IncomingMessage, response: ServerResponse): Refusal | undefined {
    const { page } = this.#settings;
    if (page === undefined || !(request.method === 'GET' || request.method === 'HEAD')) return refused.UNKNOWN_PATH;
    const caller = this.#callerOf(request);
    // A browser asks for a key as for a password.
    if (caller instanceof refused.Refusal) return refused.NO_KEY_FOR_PAGE;
    return caller.tenant === undefined ? done(page(request, response)) : refused.NOT_OF_OPERATOR;
  }

  /** Ends when no call runs any more: after `drainMs` they are ended. */
  close(drainMs: number): Promise<void> {
    this.#closing ??= new Promise((resolve) => {
      if (this.#running.size === 0) return resolve();
      let stop = startTimer(this.#engine.runtime, drainMs, () => {
        for (const exchange of [...this.#running]) exchange.cut(closedError());
        stop = startTimer(this.#engine.runtime, FLUSH_MS, () => {
          for (const exchange of this.#running) exchange.destroy();
        });
      });
      const drained = (): void => {
        stop();
        resolve();
      };
      this.#drained = drained;
    });
    return this.#closing;
  }
}

function ignore(): void {}

/** Answered: there is nothing to refuse. */
function done(_: unknown): undefined {
  return undefined;
}
