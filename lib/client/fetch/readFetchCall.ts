import type { Fields } from '../CallPlan.ts';
import { isRequest } from './readRequest.ts';
import type { FetchInput } from './readRequest.ts';

/** A request of an SDK that is understood, taken apart. */
export interface FetchCall {
  readonly api: 'chat' | 'responses';
  /** What `fetch` is given again with the changed `init`: a Request keeps there what `init` does not say. */
  readonly input: FetchInput;
  readonly init: RequestInit;
  /** Of the request, without those that are for us. */
  readonly headers: Headers;
  /** Those that are for us, by the part behind `x-sluice-`. */
  readonly ours: ReadonlyMap<string, string>;
  /** The body, as it came and as it reads. */
  readonly body: string | Uint8Array;
  readonly fields: Fields;
  readonly model: string;
  readonly stream: boolean;
}

const PREFIX = 'x-sluice-';
const PATHS = [
  ['/chat/completions', 'chat'],
  ['/responses', 'responses'],
] as const;

/** What a request may be a call of, by its method and address. */
export function apiOf(input: FetchInput, method: string | undefined): FetchCall['api'] | undefined {
  if (method?.toUpperCase() !== 'POST') return undefined;
  const path = pathOf(isRequest(input) ? input.url : String(input));
  return PATHS.find(([end]) => path?.endsWith(end))?.[1];
}

/** `undefined` for everything that is not one of the requests that calls are made of. */
export function readFetchCall(input: FetchInput, init: RequestInit = {}): FetchCall | undefined {
  const api = apiOf(input, init.method);
  const { body } = init;
  if (api === undefined || !(typeof body === 'string' || body instanceof Uint8Array)) return undefined;
  const fields = fieldsOf(typeof body === 'string' ? body : new TextDecoder().decode(body));
  const { model, stream = false, background } = fields ?? {};
  if (fields === undefined || typeof model !== 'string' || model === '' || background === true) return undefined;
  if (!(typeof stream === 'boolean' || stream === null)) return undefined;
  const { headers, ours } = split(new Headers(init.headers));
  return { api, input, init, headers, ours, body, fields, model, stream: stream === true };
}

/** The request as it may leave: what is for us never reaches a provider. */
export function withoutOurs(input: FetchInput, init: RequestInit | undefined): [FetchInput, RequestInit | undefined] {
  if (init?.headers !== undefined) {
    const { headers, ours } = split(new Headers(init.headers));
    return ours.size === 0 ? [input, init] : [input, { ...init, headers }];
  }
  if (!isRequest(input)) return [input, init];
  const { headers, ours } = split(new Headers(input.headers));
  return ours.size === 0 ? [input, init] : [new Request(input, { headers }), init];
}

function split(headers: Headers): { readonly headers: Headers; readonly ours: ReadonlyMap<string, string> } {
  const ours = new Map<string, string>();
  for (const [name, value] of [...headers]) {
    if (!name.startsWith(PREFIX)) continue;
    ours.set(name.slice(PREFIX.length), value);
    headers.delete(name);
  }
  return { headers, ours };
}

function pathOf(url: string): string | undefined {
  return URL.canParse(url) ? new URL(url).pathname : undefined;
}

function fieldsOf(text: string): Fields | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : undefined;
  } catch {
    return undefined;
  }
}
