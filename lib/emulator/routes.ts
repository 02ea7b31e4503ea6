import type { ProviderApi } from './model/request.ts';

export type Route =
  | { readonly kind: 'ask'; readonly api: ProviderApi; readonly deployment: string | undefined }
  | { readonly kind: 'models' | 'report' | 'script' | 'reset' | 'quota' }
  | { readonly kind: 'unknown' }
  | { readonly kind: 'method'; readonly allowed: string };

const APIS: Readonly<Record<string, ProviderApi>> = {
  'chat/completions': 'chat',
  responses: 'responses',
  embeddings: 'embeddings',
};
// With and without the version, and as Azure's client spells it.
const ASKED = /^(?:\/openai(?:\/deployments\/([^/]+))?)?(?:\/v1)?\/(chat\/completions|responses|embeddings)$/;
const CONTROLS: Readonly<
  Record<string, readonly ['GET' | 'POST', 'models' | 'report' | 'script' | 'reset' | 'quota']>
> = {
  '/models': ['GET', 'models'],
  '/v1/models': ['GET', 'models'],
  '/report': ['GET', 'report'],
  '/script': ['POST', 'script'],
  '/reset': ['POST', 'reset'],
  '/quota': ['POST', 'quota'],
};

export function routeOf(method: string | undefined, url: string | undefined): Route {
  const [path = ''] = (url ?? '').split('?');
  const asked = ASKED.exec(path);
  if (asked !== null) {
    if (method !== 'POST') return { kind: 'method', allowed: 'POST' };
    const api = APIS[asked[2] ?? ''];
    return api === undefined ? { kind: 'unknown' } : { kind: 'ask', api, deployment: decoded(asked[1]) };
  }
  const control = Object.hasOwn(CONTROLS, path) ? CONTROLS[path] : undefined;
  if (control === undefined) return { kind: 'unknown' };
  const [allowed, kind] = control;
  return method === allowed ? { kind } : { kind: 'method', allowed };
}

function decoded(part: string | undefined): string | undefined {
  if (part === undefined) return undefined;
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
