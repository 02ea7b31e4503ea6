import type { IncomingMessage } from 'node:http';

export type ReadBody =
  | { readonly kind: 'json'; readonly value: unknown }
  /** The client left before the end of the body. */
  | { readonly kind: 'gone' }
  | { readonly kind: 'too_large' }
  | { readonly kind: 'not_json' };

/** Reads a JSON body of at most `maxBytes`. An empty body is `undefined`. Calls back once. */
export function readBody(request: IncomingMessage, maxBytes: number, then: (body: ReadBody) => void): void {
  const parts: Buffer[] = [];
  let length = 0;
  let settled = false;
  const settle = (body: ReadBody): void => {
    if (settled) return;
    settled = true;
    then(body);
  };
  request.on('data', (part: Buffer) => {
    length += part.length;
    if (length <= maxBytes) {
      parts.push(part);
      return;
    }
    parts.length = 0;
    request.pause();
    settle({ kind: 'too_large' });
  });
  request.on('end', () => {
    if (length === 0) settle({ kind: 'json', value: undefined });
    else settle(parsed(Buffer.concat(parts).toString('utf8')));
  });
  request.on('close', () => settle({ kind: 'gone' }));
  request.on('error', () => settle({ kind: 'gone' }));
}

function parsed(text: string): ReadBody {
  try {
    return { kind: 'json', value: JSON.parse(text) as unknown };
  } catch {
    return { kind: 'not_json' };
  }
}
