import type { Runtime } from '../core/runtime.ts';
import { readBounded } from './readBounded.ts';

/** An answer with an error status, as it came. */
export interface CapturedFailure {
  readonly status: number;
  /** What the SDK was told instead, where no `Response` can be made with such a status. */
  readonly shownStatus: number;
  readonly headers: Headers;
  readonly body: string;
}

/** Takes what the SDK does not tell of one request: when it was sent, and the answer if it failed. */
export interface FailureSlot {
  /** The SDK has prepared the request and sends it now. */
  sent(): void;
  readonly runtime: Runtime;
  captured: CapturedFailure | undefined;
}

/** Most that is read of the body of a failed answer, and how long that may take. */
const MAX_BODY_BYTES = 64 * 1024;
const MAX_BODY_MS = 1_000;

const SLOT: unique symbol = Symbol('sluice.failureSlot') as never;
const capturing = new WeakSet<object>();

type Fetch = (url: unknown, init?: RequestInit & { [SLOT]?: FailureSlot }) => Promise<Response>;

/**
 * Makes `client` hand failed answers to the slot of their request. The SDK reads an error body to its end, however long
 * that takes, and keeps of it only what its own error class holds; here the read is bounded and the whole answer known.
 * The client's `fetch` is wrapped in place, once; requests without a slot go through it untouched. A client that does
 * not allow it keeps working: its failures are then classified from what the SDK throws.
 *
 * Returns what to pass to the SDK as `fetchOptions`.
 */
export function captureFailures(client: object, slot: FailureSlot): Record<PropertyKey, unknown> {
  const holder = client as { fetch?: Fetch };
  const send = holder.fetch;
  if (typeof send !== 'function') return {};
  if (!capturing.has(send)) {
    const wrapped = wrap(send);
    try {
      holder.fetch = wrapped;
    } catch {
      return {};
    }
  }
  return { [SLOT]: slot };
}

/** Whether a `fetch` is called for an attempt of one of our sources, and not by an application. */
export function isSentBySource(init: object | undefined): boolean {
  return init !== undefined && SLOT in init;
}

/** A `fetch` whose requests count as sent by one of our sources. */
export function sentBySource(send: typeof globalThis.fetch): typeof globalThis.fetch {
  return (input, init) =>
    isSentBySource(init) ? send(input, init) : send(input, { ...init, [SLOT]: undefined } as RequestInit);
}

function wrap(send: Fetch): Fetch {
  const wrapped: Fetch = async (url, init) => {
    const slot = init?.[SLOT];
    slot?.sent();
    const response = await send(url, init);
    // Below 400 there is no error body, and a `Response` cannot be made with every such status.
    return slot === undefined || response.status < 400 ? response : capture(response, slot);
  };
  capturing.add(wrapped);
  return wrapped;
}

async function capture(response: Response, slot: FailureSlot): Promise<Response> {
  const { status, statusText, headers } = response;
  const body = await readBounded(response.body, MAX_BODY_BYTES, MAX_BODY_MS, slot.runtime);
  const shownStatus = Math.min(status, 599);
  slot.captured = { status, shownStatus, headers, body };
  return new Response(body, { status: shownStatus, statusText, headers });
}
