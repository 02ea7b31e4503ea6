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
    // A reader that fails has no such header.
  }
  return textOf(value);
}

/** A header's value as {@link headerOf} gives it. */
export function textOf(value: unknown): string | undefined {
  if (typeof value !== 'string') return undefined;
  const trimmed = value.trim();
  return trimmed === '' ? undefined : trimmed;
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
