import type { IncomingMessage } from 'node:http';
import { startTimer } from '../../core/runtime.ts';
import type { Runtime } from '../../core/runtime.ts';

export interface ReadBodyOptions {
  readonly maxBytes: number;
  readonly timeoutMs: number;
  readonly runtime: Runtime;
}

/** The body of a request; or why there is none. Never rejects. */
export function readBody(
  request: IncomingMessage,
  { maxBytes, timeoutMs, runtime }: ReadBodyOptions,
): Promise<Buffer | 'too large' | 'too slow' | 'gone'> {
  return new Promise((resolve) => {
    if (Number(request.headers['content-length']) > maxBytes) return resolve('too large');
    const parts: Buffer[] = [];
    let size = 0;
    const settle = (result: Buffer | 'too large' | 'too slow' | 'gone'): void => {
      stop();
      request.off('data', onData).off('end', onEnd).off('close', onGone).off('error', onGone);
      // What breaks off later is nobody's concern, but an error without a listener would end the process.
      request.on('error', () => {});
      resolve(result);
    };
    const onData = (part: Buffer): void => {
      size += part.length;
      if (size > maxBytes) settle('too large');
      else parts.push(part);
    };
    const onEnd = (): void => settle(parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts, size));
    const onGone = (): void => settle('gone');
    const stop = startTimer(runtime, timeoutMs, () => settle('too slow'));
    if (request.destroyed) return settle('gone');
    request.on('data', onData).on('end', onEnd).on('close', onGone).on('error', onGone);
  });
}
