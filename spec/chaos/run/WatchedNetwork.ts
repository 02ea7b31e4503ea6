import OpenAI from 'openai';
import type { SourceWitness } from './watchedSource.ts';
import type { StallingRuntime } from './StallingRuntime.ts';
import { WatchedRequest } from './WatchedRequest.ts';

/** By which a request that an SDK was asked for is known when it comes to be sent. */
const WATCHED: unique symbol = Symbol('chaos.watchedRequest') as never;

type Init = RequestInit & { [WATCHED]?: WatchedRequest };
type Create = (this: object, request: object, options?: RequestOptions) => unknown;
interface RequestOptions {
  readonly signal?: AbortSignal | undefined;
  readonly fetchOptions?: object | undefined;
}

export interface NetworkOptions {
  /** Of the clients, by their names. */
  readonly addresses: Readonly<Record<string, string>>;
  readonly process: number;
  readonly witness: SourceWitness;
  readonly runtime: StallingRuntime;
  /** Stands between what watches and what is watched. */
  readonly between: (fetch: typeof globalThis.fetch) => typeof globalThis.fetch;
  readonly send: typeof globalThis.fetch;
}

/** What the client of a plan sends by over HTTP: an SDK client for each provider, and `fetch` for requests made elsewhere. */
export class WatchedNetwork {
  readonly clients: Readonly<Record<string, OpenAI>>;
  readonly fetch: typeof globalThis.fetch;
  readonly #options: NetworkOptions;

  constructor(options: NetworkOptions) {
    this.#options = options;
    this.fetch = options.between((input, init) => this.#fetch(input, init));
    this.clients = Object.fromEntries(
      Object.entries(options.addresses).map(([name, baseURL]) => [name, this.#client(name, baseURL)]),
    );
  }

  #client(name: string, baseURL: string): OpenAI {
    const client = new OpenAI({ baseURL, apiKey: 'none', maxRetries: 0, fetch: this.fetch, logLevel: 'off' });
    this.#watch(client.chat.completions, name);
    this.#watch(client.responses, name);
    return client;
  }

  /** An SDK prepares a request for some turns of promises: that one is sent is known here, in the tick of its admission. */
  #watch(resource: object, name: string): void {
    const holder = resource as { create: Create };
    const { create } = holder;
    const begin = (request: object): WatchedRequest => this.#begin(name, request);
    holder.create = function (request, options = {}) {
      const watched = begin(request);
      watched.closeBy(options.signal);
      // By the resource that was asked: clients are copied.
      return create.call(this, request, { ...options, fetchOptions: { ...options.fetchOptions, [WATCHED]: watched } });
    };
  }

  #fetch(input: Parameters<typeof fetch>[0], init: Init = {}): Promise<Response> {
    const watched = init[WATCHED] ?? this.#begin(this.#nameOf(input), bodyOf(init));
    watched.closeBy(init.signal);
    return watched.answered(this.#options.send(input, init));
  }

  #begin(client: string, request: object): WatchedRequest {
    const { process, witness, runtime } = this.#options;
    return new WatchedRequest(witness.sent(client, process, { ...request }), witness, runtime);
  }

  #nameOf(input: Parameters<typeof fetch>[0]): string {
    const url = input instanceof Request ? input.url : input.toString();
    const [found] = Object.entries(this.#options.addresses).filter(([, address]) => url.startsWith(address));
    if (found === undefined) throw new Error(`no provider is at ${url}`);
    return found[0];
  }
}

function bodyOf({ body }: RequestInit): object {
  const text = typeof body === 'string' ? body : new TextDecoder().decode(body as Uint8Array);
  return JSON.parse(text) as object;
}
