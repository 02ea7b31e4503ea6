import type OpenAI from 'openai';
import { sentBySource } from '../sources/captureFailures.ts';

interface Copy {
  readonly client: OpenAI;
  /** What the original held when it was copied. */
  readonly of: readonly unknown[];
}

const copies = new WeakMap<OpenAI, Copy>();

/**
 * A copy of `client` for calls that have been admitted: its own retries are off, and a `sluice.fetch` in it lets its
 * requests pass. Methods that somebody has put on the instance, such as an instrumentation or a test, are on the copy
 * too. Copied anew only where the original has changed, since the SDK takes a fifth of a millisecond for it. A client
 * that cannot be copied is given as it is.
 */
export function admittedClient(client: OpenAI): OpenAI {
  const { fetch } = client as unknown as { readonly fetch?: typeof globalThis.fetch };
  if (typeof fetch !== 'function' || typeof client.withOptions !== 'function') return client;
  const of = heldBy(client, client);
  const known = copies.get(client);
  if (known?.of.length === of.length && known.of.every((value, at) => value === of[at])) return known.client;
  try {
    const copy = client.withOptions({ maxRetries: 0, fetch: sentBySource(fetch) });
    // The SDK copies the key that the client was made with.
    copy.apiKey = client.apiKey;
    keepMethods(client, client, copy);
    copies.set(client, { client: copy, of });
    return copy;
  } catch {
    return client;
  }
}

/** All own values of the client and of its resources. */
function heldBy(client: object, holder: object): unknown[] {
  const values: unknown[] = [];
  for (const name of Object.getOwnPropertyNames(holder)) {
    const value = (holder as Record<string, unknown>)[name];
    values.push(value);
    if (isResourceOf(client, value)) values.push(...heldBy(client, value));
  }
  return values;
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
