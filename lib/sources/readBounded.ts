import { startTimer } from '../core/runtime.ts';
import type { Runtime } from '../core/runtime.ts';

/** Cancels without waiting; what comes of it is nobody's concern any more. */
export function discard(body: { cancel(): Promise<void> } | null | undefined): undefined {
  if (body && typeof body.cancel === 'function') body.cancel().catch(() => {});
}

/** Reads text up to a size and a time, then cancels the rest. A body that breaks gives what came before. */
export async function readBounded(
  body: ReadableStream<Uint8Array> | null,
  maxBytes: number,
  maxMs: number,
  runtime: Runtime,
): Promise<string> {
  if (body === null || typeof body.getReader !== 'function') return '';
  const reader = body.getReader();
  // Cancelling settles the pending read as the end.
  const stop = startTimer(runtime, maxMs, () => discard(reader));
  const decoder = new TextDecoder();
  let text = '';
  let left = maxBytes;
  try {
    while (left > 0) {
      const { done, value } = await reader.read();
      if (done) break;
      const part = value.subarray(0, left);
      left -= part.length;
      text += decoder.decode(part, { stream: true });
    }
  } catch {
    // The status says enough.
  } finally {
    stop();
    discard(reader);
  }
  return text + decoder.decode();
}
