import type OpenAI from 'openai';
import { sentBySource } from '../sources/captureFailures.ts';

/**
 * A copy of `client` for a call that has been admitted: its own retries are off, and a `sluice.fetch` in it lets its
 * requests pass. Methods that somebody has put on the instance, such as an instrumentation or a test, are on the copy
 * too. A client that cannot be copied is given as it is.
 */
export function admittedClient(client: OpenAI): OpenAI {
  const { fetch } = client as unknown as { readonly fetch?: typeof globalThis.fetch };
  if (typeof fetch !== 'function' || typeof client.withOptions !== 'function') return client;
  try {
    const copy = client.withOptions({ maxRetries: 0, fetch: sentBySource(fetch) });
    keepMethods(client, client, copy);
    return copy;
  } catch {
    return client;
  }
}

/** Resources are objects that know their client; their methods are on prototypes, unless somebody has replaced them. */
function keepMethods(client: object, from: object, to: object): void {
  for (const [name, resource] of Object.entries(from) as [string, unknown][]) {
    const target = (to as Record<string, unknown>)[name];
    if (!isResourceOf(client, resource) || typeof target !== 'object' || target === null) continue;
    for (const [method, descriptor] of Object.entries(Object.getOwnPropertyDescriptors(resource))) {
      if (typeof descriptor.value === 'function') Object.defineProperty(target, method, descriptor);
    }
    keepMethods(client, resource, target);
  }
}

function isResourceOf(client: object, value: unknown): value is object {
  return typeof value === 'object' && value !== null && (value as { readonly _client?: unknown })._client === client;
}
