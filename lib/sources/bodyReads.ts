export type BodyReader = ReadableStreamDefaultReader<Uint8Array>;
export type Read = Awaited<ReturnType<BodyReader['read']>>;

export const END: Read = { done: true, value: undefined };

/** Tab, line feed, carriage return, space, and the three bytes of a byte-order mark. */
const BLANK: ReadonlySet<number> = new Set([0x09, 0x0a, 0x0d, 0x20, 0xef, 0xbb, 0xbf]);

/** `undefined` where there is no body. */
export function readerOf(body: unknown): BodyReader | undefined {
  const stream = body as { getReader?: unknown; [Symbol.asyncIterator]?: unknown } | null | undefined;
  if (typeof stream?.getReader === 'function') return (stream as ReadableStream<Uint8Array>).getReader();
  // A `fetch` that is not of this platform may give a stream of another kind.
  return typeof stream?.[Symbol.asyncIterator] === 'function'
    ? ReadableStream.from(stream as AsyncIterable<Uint8Array>).getReader()
    : undefined;
}

/** The first that is no white space and not of a byte-order mark. */
export function firstByte(bytes: Uint8Array): number | undefined {
  for (const byte of bytes) if (!BLANK.has(byte)) return byte;
  return undefined;
}
