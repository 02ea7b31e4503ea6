import { isSluiceError, SluiceError } from '../core/errors.ts';
import type { ErrorCode, SluiceErrorFields } from '../core/errors.ts';
import { classifyErrorObject, classifyResponse } from './classifyResponse.ts';
import { codeOfName } from './codes.ts';
import { unwrapBody } from './errorBody.ts';
import { headerOf, headerReader } from './headers.ts';
import type { HeaderReader } from './headers.ts';
import { causeOf, fieldOf, nameOf, textOf, wordsOf } from './redact.ts';

export interface ThrownContext {
  readonly model?: string | undefined;
  /** Of the answer whose body was being read. */
  readonly status?: number | undefined;
  readonly requestId?: string | undefined;
  readonly wallNowMs?: number | undefined;
}

const CONNECTION_CODES =
  /^(?:E(?:CONN(?:RESET|REFUSED|ABORTED)|TIMEDOUT|PIPE|NOTFOUND|AI_AGAIN|AI_FAIL|HOSTUNREACH|HOSTDOWN|NETUNREACH|NETDOWN|NETRESET|PROTO|ADDRNOTAVAIL|MFILE)|UND_ERR_(?:SOCKET|CONNECT_TIMEOUT|CLOSED|DESTROYED|RES_CONTENT_LENGTH_MISMATCH|HEADERS_OVERFLOW|INFO)|HPE_[A-Z_]+|ERR_(?:STREAM_PREMATURE_CLOSE|SOCKET_CLOSED|HTTP2_[A-Z_]+|SSL_[A-Z_]+|NETWORK)|ConnectionRefused|ConnectionClosed|FailedToOpenSocket)$/;
const CERTIFICATE_CODES =
  /^(?:CERT_[A-Z_]+|(?:DEPTH_ZERO_)?SELF_SIGNED_CERT[A-Z_]*|UNABLE_TO_[A-Z_]+|ERR_TLS_CERT_ALTNAME_INVALID)$/;
const CONNECTION_WORDS =
  /^(?:terminated|fetch failed|failed to fetch|network ?error\b|load failed|connection error|premature close|socket hang up|other side closed|network request failed|networkerror when attempting)/i;
const BODY_WORDS = /\bJSON\b|server-sent event/i;

/**
 * Tells what an exception of an SDK call, a fetch or a body read is. By shape (`status`, `code`, `type`, `headers`,
 * `cause`, names), never by `instanceof`: an application may hold several copies of an SDK. A SluiceError passes through.
 *
 * What is recognised as nothing of a provider's or the network's is the caller's own fault: `invalid_request`, which is
 * local and never retried.
 */
export function classifyThrown(thrown: unknown, context: ThrownContext = {}): SluiceError {
  const links = chainOf(thrown);
  const ours = links.find(isBranded);
  if (ours !== undefined) return ours;
  const name = nameOf(thrown);
  const made = (code: ErrorCode, message: string, fields: SluiceErrorFields = {}): SluiceError => {
    const { model, status, requestId } = context;
    return new SluiceError(code, message, { model, status, requestId, cause: causeOf(thrown), ...fields });
  };
  if (isAbort(thrown, name)) return made('aborted', 'the call was aborted', { status: undefined });
  const answered = answeredLink(links);
  if (answered !== undefined) return fromAnswer(answered.link, answered.status, context);
  for (const link of links) {
    const code = wordsOf(link, 'code');
    if (code === 'UND_ERR_BODY_TIMEOUT') return made('stream_idle', 'the body stopped coming');
    if (code === 'UND_ERR_HEADERS_TIMEOUT' || /Timeout/i.test(nameOf(link)))
      return made('timeout', 'the request timed out');
  }
  for (const link of links) {
    const code = wordsOf(link, 'code');
    if (CERTIFICATE_CODES.test(code)) {
      return made('connection', `the server's certificate was refused: ${code}`, { retryable: false });
    }
    if (CONNECTION_CODES.test(code)) return made('connection', `the connection failed: ${code}`);
    if (nameOf(link) === 'HTTPParserError') return made('connection', 'the connection failed: no HTTP came');
  }
  // That the connection failed is also what an SDK says of a transport that told more, or that has a fault of its own.
  const inBand = links.map((link) => inBandError(link, context)).find((error) => error && error.code !== 'connection');
  if (inBand === undefined && links.some(saysConnection) && !links.some(isMistake))
    return made('connection', 'the connection failed');
  if (inBand !== undefined) return inBand;
  if (name === 'SyntaxError' && BODY_WORDS.test(wordsOf(thrown, 'message'))) {
    return made('upstream_body_invalid', 'the answer could not be parsed');
  }
  return made('invalid_request', `the call failed by itself: ${causeOf(links.find(isMistake) ?? thrown).name}`, {
    status: undefined,
  });
}

function isBranded(thrown: unknown): thrown is SluiceError {
  let branded = false;
  try {
    branded = isSluiceError(thrown);
  } catch {
    // What throws when it is read is none of ours.
  }
  return branded;
}

/** The answer that a thrown error was made from, in so far as it or a cause of it tells. */
export function answerBehind(thrown: unknown): { readonly status: number; readonly headers: HeaderReader } | undefined {
  const answered = answeredLink(chainOf(thrown));
  return answered && { status: answered.status, headers: headersOf(answered.link) };
}

function answeredLink(links: readonly unknown[]): { readonly link: unknown; readonly status: number } | undefined {
  for (const link of links) {
    const status = statusOf(link);
    if (status !== undefined) return { link, status };
  }
  return undefined;
}

/** What was thrown, its causes, and those that an AggregateError collected. */
function chainOf(thrown: unknown): readonly unknown[] {
  const links: unknown[] = [];
  const add = (link: unknown): void => {
    if (typeof link !== 'object' || link === null || links.length >= 12 || links.includes(link)) return;
    links.push(link);
    add(fieldOf(link, 'cause'));
    // An SDK turns an object that is no Error into one whose message is the object.
    add(unwrapBody(textOf(link, 'message')));
    const collected = fieldOf(link, 'errors');
    if (Array.isArray(collected)) collected.slice(0, 4).forEach(add);
  };
  add(thrown);
  return links;
}

function isAbort(thrown: unknown, name: string): boolean {
  const made = textOf(fieldOf(thrown, 'constructor'), 'name');
  return name === 'AbortError' || made === 'APIUserAbortError' || fieldOf(thrown, 'code') === 'ABORT_ERR';
}

/** No runtime reports a failed connection by one of these; a TypeError may be just that. */
function isMistake(link: unknown): boolean {
  return ['RangeError', 'ReferenceError', 'EvalError', 'URIError'].includes(nameOf(link));
}

function saysConnection(link: unknown): boolean {
  const name = nameOf(link);
  if (codeOfName(name) === 'connection' || codeOfName(wordsOf(link, 'code')) === 'connection') return true;
  // Only a bare TypeError of fetch, or an Error of a socket: another TypeError is a mistake in a program.
  const bare =
    name === 'TypeError' ||
    name === 'Error' ||
    name === 'SocketError' ||
    name === 'FetchError' ||
    name === 'NetworkError';
  return bare && CONNECTION_WORDS.test(wordsOf(link, 'message'));
}

function statusOf(thrown: unknown): number | undefined {
  const response = fieldOf(thrown, 'response');
  const metadata = fieldOf(thrown, '$metadata');
  const candidates = [
    fieldOf(thrown, 'status'),
    fieldOf(thrown, 'statusCode'),
    fieldOf(response, 'status'),
    fieldOf(metadata, 'httpStatusCode'),
  ];
  return candidates.find(
    (status): status is number => Number.isInteger(status) && Number(status) >= 300 && Number(status) <= 599,
  );
}

/** An SDK's error made from an answer: classified as that answer. */
function fromAnswer(thrown: unknown, status: number, context: ThrownContext): SluiceError {
  const response = fieldOf(thrown, 'response');
  const reader = headersOf(thrown);
  const inner = fieldOf(thrown, 'error');
  const { code, type } = { code: fieldOf(thrown, 'code'), type: fieldOf(thrown, 'type') };
  const own = { error: { message: textOf(thrown, 'message'), code, type: type ?? named(thrown) } };
  const body = inner ?? fieldOf(response, 'data') ?? fieldOf(thrown, 'responseBody') ?? fieldOf(thrown, 'body') ?? own;
  const id = textOf(thrown, 'requestID') ?? textOf(thrown, 'request_id') ?? textOf(thrown, 'requestId');
  return classifyResponse({
    status,
    headers: reader,
    body: inner === undefined || inner === null ? body : { error: inner },
    wallNowMs: context.wallNowMs ?? NaN,
    requestId: id ?? headerOf(reader, 'x-request-id') ?? context.requestId,
    model: context.model,
    cause: causeOf(thrown),
  });
}

function headersOf(thrown: unknown): HeaderReader {
  const own = fieldOf(thrown, 'headers') ?? fieldOf(thrown, 'responseHeaders');
  return headerReader(own ?? fieldOf(fieldOf(thrown, 'response'), 'headers'));
}

/** An SDK's error without a status: made from an error inside a stream, or known by its name alone. */
function inBandError(thrown: unknown, { model, requestId }: ThrownContext): SluiceError | undefined {
  const stream = { status: 0, model, requestId };
  const inner = fieldOf(thrown, 'error');
  if (typeof inner === 'object' && inner !== null) {
    return classifyErrorObject({ error: inner }, stream).with({ cause: causeOf(thrown) });
  }
  const names = [textOf(thrown, 'code'), textOf(thrown, 'type'), named(thrown)].filter((name) => name !== undefined);
  if (!names.some((name) => codeOfName(name) !== undefined)) return undefined;
  const [code, type] = names;
  const error = { code, type: type ?? code, message: textOf(thrown, 'message') };
  return classifyErrorObject({ error }, stream).with({ cause: causeOf(thrown) });
}

/** The class of an SDK's error says what it is, where it is none of the language's own. */
function named(thrown: unknown): string | undefined {
  const name = nameOf(thrown);
  return codeOfName(name) === undefined ? undefined : name;
}
