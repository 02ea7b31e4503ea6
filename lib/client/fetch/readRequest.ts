export type FetchInput = Parameters<typeof globalThis.fetch>[0];

/** Larger bodies are not read: their request goes through as it is. */
export const MAX_REQUEST_BYTES: number = 64 * 1024 * 1024;

/** Told by what it can do, since a `Request` may come from another realm or another implementation of `fetch`. */
export function isRequest(input: FetchInput): input is Request {
  return typeof input === 'object' && !(input instanceof URL) && typeof input.clone === 'function';
}

/**
 * What `fetch` would make of a `Request` and `init`, with the body as bytes. The Request stays as it is; `undefined` where
 * its body is too large, was used before, or breaks off.
 */
export async function readRequest(request: Request, init: RequestInit = {}): Promise<RequestInit | undefined> {
  const { method = request.method, headers = request.headers, signal = request.signal } = init;
  const plain = { ...init, method, headers, signal };
  if (init.body !== undefined && init.body !== null) return plain;
  if (request.body === null || request.bodyUsed) return undefined;
  const body = await bytesOf(request.clone().body, signal);
  return body && { ...plain, body };
}

async function bytesOf(
  body: ReadableStream<Uint8Array> | null,
  signal: AbortSignal | null,
): Promise<Uint8Array<ArrayBuffer> | undefined> {
  if (body === null) return undefined;
  const reader = body.getReader();
  const leave = (): void => void reader.cancel().catch(() => {});
  signal?.addEventListener('abort', leave, { once: true });
  const parts: Uint8Array[] = [];
  let size = 0;
  try {
    for (let read = await reader.read(); !read.done; read = await reader.read()) {
      size += read.value.length;
      if (size > MAX_REQUEST_BYTES) return undefined;
      parts.push(read.value);
    }
    return joined(parts, size);
  } catch {
    return undefined;
  } finally {
    signal?.removeEventListener('abort', leave);
    leave();
  }
}

function joined(parts: readonly Uint8Array[], size: number): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(size);
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
