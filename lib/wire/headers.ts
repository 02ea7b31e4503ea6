/** Reads one header by its lower-case name. A Fetch `Headers` object satisfies it. */
export interface HeaderReader {
  get(name: string): string | null;
  /** Goes through all of them, by their names. Without it, each name that may be there is asked for. */
  forEach?(each: (value: string, name: string) => void): void;
}

export const NO_HEADERS: HeaderReader = { get: () => null };

/** The header's value, trimmed; `undefined` where it is absent, empty, or no text. */
export function headerOf(headers: HeaderReader, name: string): string | undefined {
  let value: unknown;
  try {
    value = headers.get(name);
  } catch {
    return undefined;
  }
  if (typeof value !== 'string') return undefined;
  const trimmed = value.trim();
  return trimmed === '' ? undefined : trimmed;
}

/**
 * Those headers whose names have one of `parts` in them, or all where `headers` does not list its own; `undefined` where
 * there are none. Going through all headers once takes less than asking a `Headers` object for a dozen names.
 */
export function headersNamed(headers: HeaderReader, ...parts: readonly string[]): HeaderReader | undefined {
  if (typeof headers.forEach !== 'function') return headers;
  const found = new Map<string, string>();
  try {
    headers.forEach((value, name) => {
      const lower = name.toLowerCase();
      if (parts.some((part) => lower.includes(part))) found.set(lower, value);
    });
  } catch {
    return headers;
  }
  return found.size === 0 ? undefined : { get: (name) => found.get(name) ?? null };
}

/** A reader over what SDKs call headers: a `Headers` object, a `Map`, or a plain object in any letter case. */
export function headerReader(headers: unknown): HeaderReader {
  if (typeof headers !== 'object' || headers === null) return NO_HEADERS;
  if (typeof (headers as { get?: unknown }).get === 'function') return headers as HeaderReader;
  const values = new Map<string, string>();
  for (const [name, value] of Object.entries(headers)) {
    const text: unknown = Array.isArray(value) ? value[0] : value;
    if (typeof text === 'string' || typeof text === 'number') values.set(name.toLowerCase(), String(text));
  }
  return { get: (name) => values.get(name) ?? null, forEach: (each) => values.forEach(each) };
}
