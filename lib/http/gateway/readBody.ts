import type { IncomingMessage } from 'node:http';
import { startTimer } from '../../core/runtime.ts';
import type { Runtime } from '../../core/runtime.ts';

export interface ReadBodyOptions {
  readonly maxBytes: number;
  readonly timeoutMs: number;
  readonly runtime: Runtime;
}

/** The body of a request; or why there is none. */
export type BodyRead = Buffer | 'too large' | 'too slow' | 'gone';

const NO_BYTES = Buffer.alloc(0);
const ignore = (): void => {};

/** Calls `then` once, and not before it has returned. */
export function readBody(request: IncomingMessage, options: ReadBodyOptions, then: (read: BodyRead) => void): void {
  const { maxBytes } = options;
  // By then, and not a tick earlier, what came with the head has been parsed: mostly all of it, and there is nothing to
  // listen or wait for.
  setImmediate(() => {
    if (Number(request.headers['content-length']) > maxBytes) return then('too large');
    const untouched = request.readableFlowing === null && request.readableEncoding === null;
    if (!request.complete || !untouched) return readOn(request, options, then);
    const bytes = (request.read() as Buffer | null) ?? NO_BYTES;
    then(bytes.length > maxBytes ? 'too large' : bytes);
  });
}

function readOn(
  request: IncomingMessage,
  { maxBytes, timeoutMs, runtime }: ReadBodyOptions,
  then: (read: BodyRead) => void,
): void {
  if (request.destroyed) return then('gone');
  const parts: Buffer[] = [];
  let size = 0;
  const settle = (read: BodyRead): void => {
    stop();
    request.off('data', onData).off('end', onEnd).off('close', onGone).off('error', onGone);
    // What breaks off later is nobody's concern, but an error without a listener would end the process.
    request.on('error', ignore);
    then(read);
  };
  const onData = (part: Buffer): void => {
    size += part.length;
    if (size > maxBytes) settle('too large');
    else parts.push(part);
  };
  const onEnd = (): void => settle(parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts, size));
  const onGone = (): void => settle('gone');
  const stop = startTimer(runtime, timeoutMs, () => settle('too slow'));
  request.on('data', onData).on('end', onEnd).on('close', onGone).on('error', onGone);
}
