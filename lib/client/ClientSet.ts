import type OpenAI from 'openai';
import type { AttemptSource, ServerAddress } from '../core/attempt.ts';
import { invalidOption, invalidRequest } from '../core/errors.ts';
import type { Runtime } from '../core/runtime.ts';
import { openaiTransport } from '../sources/openaiTransport.ts';
import { serverOf } from '../sources/serverOf.ts';
import type { Client, Clients } from './SluiceOptions.ts';

const ONLY = 'main';

/** The clients by name, each as a transport. */
export class ClientSet {
  readonly names: readonly string[];
  readonly #sources = new Map<string, AttemptSource>();
  readonly #sdks = new Map<string, OpenAI>();

  /** @throws SluiceError `invalid_option` */
  constructor(clients: Clients, runtime: Runtime) {
    const named = isClient(clients) ? { [ONLY]: clients } : clients;
    if (typeof named !== 'object' || named === null || Object.keys(named).length === 0) {
      throw invalidOption('clients', 'an OpenAI client, a transport, or an object of them by name', clients);
    }
    for (const [name, client] of Object.entries(named)) {
      if (!isClient(client)) throw invalidOption(`clients.${name}`, 'an OpenAI client or a transport', client);
      if (typeof client === 'function') this.#sources.set(name, client);
      else {
        this.#sources.set(name, openaiTransport(client, { runtime }));
        this.#sdks.set(name, client);
      }
    }
    this.names = [...this.#sources.keys()];
  }

  /** @throws SluiceError `invalid_request` */
  source(name: string): AttemptSource {
    const source = this.#sources.get(name);
    if (source === undefined) throw invalidRequest('client', `one of ${this.names.join(', ')}`, name);
    return source;
  }

  /** Where a client sends its requests, as far as it says. */
  server(name: string): ServerAddress | undefined {
    const sdk = this.#sdks.get(name);
    return sdk === undefined ? this.#sources.get(name)?.server : serverOf(sdk);
  }

  /** @throws SluiceError `invalid_request` where the client is a transport. */
  sdk(name: string): OpenAI {
    const sdk = this.#sdks.get(name);
    if (sdk === undefined) throw invalidRequest('client', `an OpenAI client to call it, as ${name} is not`, name);
    return sdk;
  }
}

function isClient(value: unknown): value is Client {
  if (typeof value === 'function') return true;
  return typeof (value as Partial<OpenAI> | null | undefined)?.chat?.completions?.create === 'function';
}
