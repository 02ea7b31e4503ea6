import type { IncomingMessage, ServerResponse } from 'node:http';
import { LiveFeed } from './LiveFeed.ts';
import { liveSettings } from './LivePageOptions.ts';
import type { LivePageOptions } from './LivePageOptions.ts';
import type { LiveSource } from './LiveSource.ts';
import { pageFiles } from './pageFiles.ts';

/** For `node:http`, and for Express with `app.use`. What is not of the page goes to `next`, or is answered 404. */
export type LiveListener = (request: IncomingMessage, response: ServerResponse, next?: () => void) => void;

export interface LivePage {
  readonly listener: LiveListener;
  /** Ends every open page, and follows no call any more. Further calls do nothing. */
  close(): void;
}

/** Nothing from elsewhere, nothing inline, in nobody's frame. */
const SECURITY = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
} as const;

/**
 * A page that shows how things stand, while it happens: levels of buckets, queues by tenant, breakers, limits, shares of
 * 429, time to first content, spend, and the latest calls with their attempts. It needs no build step and asks no other host.
 *
 * ```text
 * GET path          the page, its styles and its scripts
 * GET path + events server-sent events: hello, then a frame every frameMs
 * ```
 *
 * - **Shows no content:** no prompt, answer, key, header or conversation; names of models and tenants, codes and times.
 * - **Guards nothing:** whoever reaches it sees it. Put your own check before it where others could.
 * - **Shared:** the calls are followed once for all viewers, and only while there are any, unless `follow` is `'always'`.
 * - **Close:** ends the streams of all viewers. Closing the client alone leaves the page up, showing that it is closed.
 *
 * @throws SluiceError `invalid_option`
 *
 * @example
 * ```ts
 * import { createServer } from 'node:http';
 * import OpenAI from 'openai';
 * import { createSluice } from 'sluice';
 * import { createLivePage } from 'sluice/http';
 *
 * const sluice = createSluice(new OpenAI(), { preset: 'interactive' });
 * const page = createLivePage(sluice, { title: 'Support assistant' });
 * createServer(page.listener).listen(9090, '127.0.0.1');
 * ```
 */
export function createLivePage(sluice: LiveSource, options: LivePageOptions = {}): LivePage {
  const settings = liveSettings(options);
  const feed = new LiveFeed(sluice, settings);
  const base = settings.path.endsWith('/') ? settings.path : `${settings.path}/`;

  const listener: LiveListener = (request, response, next) => {
    const path = pathOf(request.url);
    const mountedAt = pathOf((request as { originalUrl?: string }).originalUrl ?? request.url);
    const name = path.startsWith(base) ? path.slice(base.length) : undefined;
    if (`${path}/` === base || (name === '' && !mountedAt.endsWith('/'))) {
      // The page asks for what it needs by relative addresses.
      return answer(response, 308, { location: `${mountedAt.slice(mountedAt.lastIndexOf('/') + 1)}/` });
    }
    const file = name === undefined ? undefined : pageFiles().get(name);
    if (name !== 'events' && file === undefined) {
      return next === undefined ? answer(response, 404, {}, 'there is nothing at this address') : next();
    }
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      return answer(response, 405, { allow: 'GET, HEAD' }, 'use GET');
    }
    for (const [header, value] of Object.entries(SECURITY)) response.setHeader(header, value);
    if (file !== undefined) {
      const headers = { 'cache-control': 'no-cache', etag: file.etag };
      if (request.headers['if-none-match'] === file.etag) return answer(response, 304, headers);
      response.writeHead(200, { ...headers, 'content-type': file.type, 'content-length': file.body.length });
      response.end(request.method === 'HEAD' ? undefined : file.body);
    } else if (request.method === 'HEAD') {
      answer(response, 200, { 'content-type': 'text/event-stream; charset=utf-8' });
    } else if (!feed.join(response)) {
      answer(response, 503, { 'retry-after': '10' }, 'there are as many viewers as there may be');
    }
  };
  return { listener, close: () => feed.close() };
}

function pathOf(url = '/'): string {
  return url.split('?', 1)[0] ?? '/';
}

function answer(
  response: ServerResponse,
  status: number,
  headers: Readonly<Record<string, string>>,
  message?: string,
): void {
  const body = message === undefined ? '' : JSON.stringify({ error: { message } });
  const type = body === '' ? {} : { 'content-type': 'application/json' };
  response.writeHead(status, { ...type, ...headers }).end(body);
}
