import { connect } from 'node:net';

/** A request that is wrong in some way, as bytes, and the statuses that are right for it. */
export interface BadRequest {
  readonly kind: string;
  /** Written one after the other. */
  readonly writes: readonly string[];
  /** The connection stays open after the last write, and says no more. */
  readonly hangs?: boolean | undefined;
  readonly statuses: readonly number[];
}

type Random = () => number;

const PATH = '/v1/chat/completions';
/** Stands in every wrong request where it could be told on. */
export const SECRET = 'SECRET-0123456789';
export const KEY = 'right-key';
const AUTHORIZED = `authorization: Bearer ${KEY}`;
const MESSAGES = [{ role: 'user', content: 'hello' }];

const pick = <T>(random: Random, values: readonly T[]): T => values[Math.floor(random() * values.length)] as T;

function request(
  path: string,
  headers: readonly string[],
  body: string,
  { method = 'POST', length = Buffer.byteLength(body) }: { readonly method?: string; readonly length?: number } = {},
): string {
  const head = [
    `${method} ${path} HTTP/1.1`,
    'host: 127.0.0.1',
    'connection: close',
    `content-length: ${length}`,
    ...headers,
  ];
  return `${head.join('\r\n')}\r\n\r\n${body}`;
}

const posted = (body: string, path = PATH): string =>
  request(path, [AUTHORIZED, 'content-type: application/json'], body);

/** Characters that parsers stumble over. */
function noise(random: Random, length: number): string {
  const parts = [
    '{',
    '}',
    '[',
    ']',
    '"',
    ':',
    ',',
    '\\',
    '\\u00',
    '\u0000',
    'é',
    '\ud83d\ude00',
    'null',
    'true',
    '-0',
    '1e999',
    SECRET,
    ' ',
  ];
  return Array.from({ length }, () => pick(random, parts)).join('');
}

/** A value of the wrong type. */
function wrongValue(random: Random): unknown {
  return pick<unknown>(random, [null, 5, -1, true, {}, [], [[]], '', { [SECRET]: SECRET }, [null], 1e308]);
}

function brokenJson(random: Random): BadRequest {
  const text = JSON.stringify({ model: 'm', messages: MESSAGES, note: SECRET });
  const cut = Math.floor(random() * (text.length - 1));
  const body = pick(random, [
    text.slice(0, cut),
    `${text}}`,
    `x${text}`,
    noise(random, 1 + Math.floor(random() * 40)) + '{',
    '',
  ]);
  return { kind: 'wrong JSON', writes: [posted(body, pick(random, [PATH, '/v1/responses']))], statuses: [400] };
}

function wrongTypes(random: Random): BadRequest {
  const right = { model: 'm', messages: MESSAGES, stream: false };
  const body = pick<unknown>(random, [
    { ...right, model: pick<unknown>(random, [null, 5, true, {}, [], '', { [SECRET]: SECRET }]) },
    { ...right, messages: pick<unknown>(random, [null, 5, true, {}, [], '', { [SECRET]: SECRET }]) },
    { ...right, stream: pick<unknown>(random, [5, {}, [], 'true', SECRET]) },
    wrongValue(random),
  ]);
  return { kind: 'wrong types', writes: [posted(JSON.stringify(body))], statuses: [400] };
}

/** Values that a provider would have to judge: an answer of any kind will do, but an answer. */
function oddValues(random: Random): BadRequest {
  const name = pick(random, [
    'temperature',
    'max_tokens',
    'n',
    'tools',
    'stop',
    '__proto__',
    'constructor',
    'stream_options',
    'response_format',
  ]);
  const body = JSON.stringify({ model: 'm', messages: MESSAGES }).replace(
    '{',
    `{${JSON.stringify(name)}:${JSON.stringify(wrongValue(random))},`,
  );
  return { kind: 'odd values', writes: [posted(body)], statuses: [200, 400, 429] };
}

function deep(random: Random): BadRequest {
  const depth = 1_000 + Math.floor(random() * 20_000);
  const nested = '['.repeat(depth) + ']'.repeat(depth);
  return {
    kind: 'deep nesting',
    writes: [posted(`{"model":"m","messages":[{"role":"user","content":${nested}}]}`)],
    statuses: [200, 400, 413],
  };
}

function huge(random: Random): BadRequest {
  const size = 70_000 + Math.floor(random() * 30_000);
  const announced = random() < 0.5;
  const body = JSON.stringify({ model: 'm', messages: MESSAGES, note: SECRET + 'x'.repeat(size) });
  const headers = [AUTHORIZED, 'content-type: application/json'];
  if (announced) return { kind: 'huge body', writes: [request(PATH, headers, body)], statuses: [413] };
  const head = [
    `POST ${PATH} HTTP/1.1`,
    'host: 127.0.0.1',
    'connection: close',
    'transfer-encoding: chunked',
    ...headers,
  ];
  const chunked = `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`;
  return { kind: 'huge body', writes: [`${head.join('\r\n')}\r\n\r\n`, chunked], statuses: [413] };
}

function hugeHead(random: Random): BadRequest {
  const header = `x-note: ${SECRET}${'x'.repeat(17_000 + Math.floor(random() * 20_000))}`;
  return {
    kind: 'huge headers',
    writes: [request('/v1/models', [header, AUTHORIZED], '', { method: 'GET' })],
    statuses: [431],
  };
}

function slow(random: Random): BadRequest {
  const whole = request(PATH, [AUTHORIZED, 'content-type: application/json'], '{"model":', { length: 500 });
  const cut = random() < 0.5 ? whole.length : Math.floor(20 + random() * (whole.length - 60));
  return { kind: 'slow-loris', writes: [whole.slice(0, cut)], hangs: true, statuses: [408] };
}

function injection(random: Random): BadRequest {
  const evil = pick(random, ['\rx-evil: 1', '\nx-evil: 1', '\u0000', '\u0001', '\r\n x-evil: 1', '%0d%0ax-evil: 1']);
  const name = pick(random, ['x-sluice-tenant', 'x-sluice-conversation', 'x-sluice-priority', 'x-note']);
  const headers = [AUTHORIZED, 'content-type: application/json', `${name}: ${SECRET}${evil}`];
  const body = JSON.stringify({ model: pick(random, ['m', `m\r\nx-evil: 1`, `m${SECRET}\u0000`]), messages: MESSAGES });
  return { kind: 'header injection', writes: [request(PATH, headers, body)], statuses: [200, 400, 429] };
}

function smuggling(random: Random): BadRequest {
  const headers = pick(random, [
    ['transfer-encoding: chunked', 'content-length: 5'],
    ['content-length: 5', 'content-length: 6'],
    ['content-length: -1'],
    ['content-length: 5x'],
    ['transfer-encoding: chunked, identity'],
  ]);
  const head = [
    `POST ${PATH} HTTP/1.1`,
    'host: 127.0.0.1',
    'connection: close',
    AUTHORIZED,
    'content-type: application/json',
    ...headers,
  ];
  return {
    kind: 'hidden requests',
    writes: [`${head.join('\r\n')}\r\n\r\n0\r\n\r\nGET /metrics HTTP/1.1\r\n\r\n`],
    statuses: [400],
  };
}

function path(random: Random): BadRequest {
  const steps = [
    '..',
    '.',
    '%2e%2e',
    '',
    'v1',
    'chat',
    'completions',
    '%00',
    '%',
    '..%2f',
    '\\',
    'etc',
    'passwd',
    SECRET,
    '*',
    '~',
  ];
  const made = `/${Array.from({ length: 1 + Math.floor(random() * 6) }, () => pick(random, steps)).join('/')}`;
  const url = pick(random, [
    made,
    `/v1/../${made}`,
    `/v1/chat/completions/${made}`,
    `${PATH};${made}`,
    `/v1/chat/completions%2f`,
    `/V1/CHAT/COMPLETIONS`,
  ]);
  return {
    kind: 'path tricks',
    writes: [request(`${url}x`, [AUTHORIZED, 'content-type: application/json'], '{}')],
    statuses: [400, 404],
  };
}

function method(random: Random): BadRequest {
  const name = pick(random, ['GET', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'TRACE', 'PROPFIND']);
  return { kind: 'wrong methods', writes: [request(PATH, [AUTHORIZED], '', { method: name })], statuses: [405] };
}

function route(random: Random): BadRequest {
  const url = pick(random, ['/v1/embeddings', '/v1/images', '/v2/chat/completions', '/v1', '/admin', `/${SECRET}`]);
  return { kind: 'unknown routes', writes: [posted('{}', url)], statuses: [404] };
}

function key(random: Random): BadRequest {
  const header = pick(random, [
    `authorization: Bearer ${SECRET}`,
    `authorization: Bearer ${KEY}x`,
    `authorization: ${KEY}`,
    `authorization: Basic ${SECRET}`,
    'authorization: Bearer',
    `api-key: ${SECRET}`,
    'x-nothing: 1',
  ]);
  const body = JSON.stringify({ model: 'm', messages: MESSAGES });
  return {
    kind: 'wrong keys',
    writes: [request(PATH, [header, 'content-type: application/json'], body)],
    statuses: [401],
  };
}

function type(random: Random): BadRequest {
  const header = pick(random, [
    'content-type: text/plain',
    'content-type: multipart/form-data',
    `content-type: ${SECRET}`,
    'x-a: b',
    'content-type: application/jsonp',
  ]);
  return { kind: 'wrong types of content', writes: [request(PATH, [AUTHORIZED, header], '{}')], statuses: [415] };
}

function garbage(random: Random): BadRequest {
  return {
    kind: 'no HTTP',
    writes: [`${SECRET} ${noise(random, 1 + Math.floor(random() * 30))}\r\n\r\n`],
    statuses: [400],
  };
}

const KINDS: readonly ((random: Random) => BadRequest)[] = [
  brokenJson,
  wrongTypes,
  oddValues,
  injection,
  smuggling,
  path,
  method,
  route,
  key,
  type,
  garbage,
];
/** Kinds that take their time: one in so many. */
const RARE: readonly ((random: Random) => BadRequest)[] = [deep, huge, hugeHead];
const RARE_EVERY = 20;
const SLOW_EVERY = 400;

export function badRequest(index: number, random: Random): BadRequest {
  if (index % SLOW_EVERY === SLOW_EVERY - 1) return slow(random);
  return pick(random, index % RARE_EVERY === RARE_EVERY - 1 ? RARE : KINDS)(random);
}

/** All that comes back for it, until the connection is closed. */
export function send(port: number, { writes }: BadRequest): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    let text = '';
    socket.setEncoding('utf8').on('data', (part: string) => (text += part));
    socket.on('error', () => {}).on('close', () => resolve(text));
    for (const bytes of writes) socket.write(bytes);
  });
}
