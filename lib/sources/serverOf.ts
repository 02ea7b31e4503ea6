import type { ServerAddress } from '../core/attempt.ts';

const known = new WeakMap<object, { readonly baseURL: string; readonly server: ServerAddress | undefined }>();

/** Where a client sends its requests, as far as its base URL says. */
export function serverOf(client: object): ServerAddress | undefined {
  const { baseURL } = client as { readonly baseURL?: unknown };
  if (typeof baseURL !== 'string') return undefined;
  const before = known.get(client);
  if (before?.baseURL === baseURL) return before.server;
  const server = addressOf(baseURL);
  known.set(client, { baseURL, server });
  return server;
}

/** The host and port of an address. */
export function addressOf(url: string): ServerAddress | undefined {
  if (!URL.canParse(url)) return undefined;
  const { hostname, port, protocol } = new URL(url);
  if (hostname === '') return undefined;
  return {
    host: hostname.replace(/^\[|\]$/g, ''),
    port: port === '' ? (protocol === 'http:' ? 80 : 443) : Number(port),
  };
}
