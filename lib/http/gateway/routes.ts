import type { AskedCall } from './askedCall.ts';

/** What a path is for. `open`: needs no key. */
export type Route = {
  readonly methods: readonly string[];
  readonly open?: true;
} & (
  | { readonly kind: 'call'; readonly api: AskedCall['api'] }
  | { readonly kind: 'models'; readonly model: string | undefined }
  | { readonly kind: 'health' | 'ready' | 'metrics' }
);

const READ: readonly string[] = ['GET', 'HEAD'];
const POST: readonly string[] = ['POST'];

const ROUTES: ReadonlyMap<string, Route> = new Map<string, Route>([
  ['/v1/chat/completions', { kind: 'call', api: 'chat', methods: POST }],
  ['/v1/responses', { kind: 'call', api: 'responses', methods: POST }],
  ['/v1/models', { kind: 'models', model: undefined, methods: READ }],
  ['/healthz', { kind: 'health', methods: READ, open: true }],
  ['/readyz', { kind: 'ready', methods: READ, open: true }],
  ['/metrics', { kind: 'metrics', methods: READ }],
]);
const MODEL = '/v1/models/';

/** `undefined` for a path that is none of the gateway's. No path is made into another one: what is not it, is not there. */
export function routeOf(url: string): Route | undefined {
  const path = url.split('?', 1)[0] ?? '';
  const route = ROUTES.get(path);
  if (route !== undefined || !path.startsWith(MODEL)) return route;
  const model = decoded(path.slice(MODEL.length));
  return model === undefined || model === '' ? undefined : { kind: 'models', model, methods: READ };
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
