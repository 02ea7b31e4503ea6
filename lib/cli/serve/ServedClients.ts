import type { AttemptSource } from '../../core/attempt.ts';
import { SluiceError } from '../../core/errors.ts';
import { httpSource } from '../../http/transport/httpSource.ts';
import type { HttpSource } from '../../http/transport/httpSource.ts';
import type { HttpSourceOptions } from '../../http/transport/HttpSourceOptions.ts';
import type { ClientSettings } from './clientSettings.ts';

interface Served {
  settings: string;
  source: HttpSource;
}

/** The clients of a gateway. Each goes on under its name when it gets another address or another key. */
export class ServedClients {
  readonly sources: Readonly<Record<string, AttemptSource>>;
  readonly #served: ReadonlyMap<string, Served>;

  /** @throws SluiceError `invalid_option` */
  constructor(settings: ClientSettings) {
    this.#served = new Map(Object.entries(settings).map(([name, options]) => [name, servedBy(options)]));
    this.sources = Object.fromEntries([...this.#served].map(([name, served]) => [name, current(served)]));
  }

  /**
   * Makes what has changed. Nothing goes by it before the result is called. What runs by then ends where it began: the
   * connections of a client that was replaced close by themselves.
   *
   * @throws SluiceError `invalid_option`, or `invalid_policy` for a client that there was not.
   */
  prepare(settings: ClientSettings): () => void {
    const changed: (readonly [Served, Served])[] = [];
    for (const [name, options] of Object.entries(settings)) {
      const served = this.#served.get(name);
      if (served === undefined) {
        const message = `clients.${name} is new, and clients are made as the gateway starts: restart it to add one`;
        throw new SluiceError('invalid_policy', message);
      }
      if (served.settings !== textOf(options)) changed.push([served, servedBy(options)]);
    }
    return () => {
      for (const [served, next] of changed) Object.assign(served, next);
    };
  }

  async close(): Promise<void> {
    await Promise.all([...this.#served.values()].map(({ source }) => source.close()));
  }
}

function servedBy(options: HttpSourceOptions): Served {
  return { settings: textOf(options), source: httpSource(options) };
}

function textOf({ baseURL, apiKey, headers = {} }: HttpSourceOptions): string {
  return JSON.stringify([baseURL, apiKey, Object.entries(headers)]);
}

function current(served: Served): AttemptSource {
  const send: AttemptSource = (attempt) => served.source(attempt);
  return Object.defineProperty(send, 'server', { get: () => served.source.server });
}
