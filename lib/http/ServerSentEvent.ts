import { invalidOption } from '../core/errors.ts';

/** One event of an event stream, or a comment, or both. */
export interface ServerSentEvent {
  /** What a client that comes back names in `Last-Event-ID`. One line without NUL. */
  readonly id?: string | undefined;
  /** One line. Without it, clients hear a `message`. */
  readonly event?: string | undefined;
  /** May have several lines; their ends reach the client as LF. */
  readonly data?: string | undefined;
  /** How long a client waits before it comes back. Milliseconds, a whole number of 0 or more. */
  readonly retry?: number | undefined;
  /** For people and proxies: clients ignore it. */
  readonly comment?: string | undefined;
}

const LINE_END = /\r\n|\r|\n/;
const UNFIT = /[\0\r\n]/;

/**
 * An event as it goes over the wire. No field can end its line early or begin another event, whatever it holds.
 *
 * Source of the grammar: https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream
 *
 * @throws SluiceError `invalid_option` if `id` or `event` holds an end of line or NUL, or `retry` is no whole number.
 *
 * @example
 * ```ts
 * import { encodeServerSentEvent } from 'sluice/http';
 *
 * console.log(JSON.stringify(encodeServerSentEvent({ event: 'delta', data: 'one\ntwo' }))); // => "event: delta\ndata: one\ndata: two\n\n"
 * ```
 */
export function encodeServerSentEvent({ id, event, data, retry, comment }: ServerSentEvent): string {
  let text = comment === undefined ? '' : lines(': ', comment);
  if (event !== undefined) text += `event: ${oneLine('event', event)}\n`;
  if (id !== undefined) text += `id: ${oneLine('id', id)}\n`;
  if (retry !== undefined) text += `retry: ${wholeMs(retry)}\n`;
  if (data !== undefined) text += lines('data: ', data);
  return `${text}\n`;
}

function lines(field: string, value: string): string {
  if (!value.includes('\n') && !value.includes('\r')) return `${field}${value}\n`;
  return value
    .split(LINE_END)
    .map((line) => `${field}${line}\n`)
    .join('');
}

function oneLine(name: string, value: string): string {
  if (typeof value === 'string' && !UNFIT.test(value)) return value;
  throw invalidOption(name, 'one line without NUL', value);
}

function wholeMs(retry: number): number {
  if (Number.isSafeInteger(retry) && retry >= 0) return retry;
  throw invalidOption('retry', 'a whole number of 0 or more', retry);
}
