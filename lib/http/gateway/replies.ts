import type { ServerResponse } from 'node:http';
import type { SluiceError } from '../../core/errors.ts';
import { errorBody, statusOf, waitHeaders } from '../../client/wire/errorBody.ts';
import type { Refusal } from './Refusal.ts';

export type Headers = Readonly<Record<string, string>>;

/** Answers at once, unless an answer has begun already. `body` is JSON. */
export function sendJson(response: ServerResponse, status: number, body: string, headers: Headers = {}): void {
  if (response.headersSent || response.destroyed) return;
  const length = String(Buffer.byteLength(body));
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': length,
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    ...headers,
  });
  response.end(response.req.method === 'HEAD' ? undefined : body);
}

export function sendRefusal(response: ServerResponse, refusal: Refusal): void {
  sendJson(response, refusal.status, refusal.body, { 'x-should-retry': 'false', ...refusal.headers });
}

/** A failed call, as its provider would have told of it. */
export function sendFailure(response: ServerResponse, failure: SluiceError, headers: Headers): void {
  sendJson(response, statusOf(failure), JSON.stringify(errorBody(failure)), { ...headers, ...waitHeaders(failure) });
}

/** What may stand in a header: what comes from elsewhere is left out where it may not. */
export function headerText(text: string | undefined): string | undefined {
  return text !== undefined && /^[\x21-\x7e](?:[\x20-\x7e]{0,254}[\x21-\x7e])?$/.test(text) ? text : undefined;
}
