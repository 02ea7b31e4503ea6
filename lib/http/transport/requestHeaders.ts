import type { HttpSettings } from './HttpSourceOptions.ts';

/** Makes the headers of an attempt, as a flat list of names and values. */
export type RequestHeaders = (added: Readonly<Record<string, string>>) => string[];

/** Most attempts add no headers: theirs are put together once. */
export function requestHeaders({ headers, apiKey }: HttpSettings): RequestHeaders {
  const withKey = (key: string | undefined): Readonly<Record<string, string>> =>
    // A header of that name was given on purpose.
    key === undefined ? headers : { authorization: `Bearer ${key}`, ...headers };
  const fixed = typeof apiKey === 'function' ? undefined : flat(withKey(apiKey));
  return (added) => {
    const own = Object.keys(added);
    if (own.length === 0 && fixed !== undefined) return fixed;
    const all = { ...withKey(typeof apiKey === 'function' ? apiKey() : apiKey) };
    for (const name of own) all[name.toLowerCase()] = added[name] as string;
    return flat(all);
  };
}

function flat(headers: Readonly<Record<string, string>>): string[] {
  return Object.entries(headers).flat();
}
