import type OpenAI from 'openai';
import { Observable } from 'rxjs';
import type { AttemptSource, WireEvent } from '../core/attempt.ts';
import { wholeNumber } from '../core/checks.ts';
import { invalidOption } from '../core/errors.ts';
import { systemRuntime } from '../core/runtime.ts';
import type { Runtime } from '../core/runtime.ts';
import { SOURCE_DEFAULTS } from './AttemptOptions.ts';
import { Exchange } from './Exchange.ts';

export interface OpenAITransportOptions {
  /** Largest event of a stream, or whole answer, in bytes. A larger one is `upstream_body_invalid`. */
  readonly maxEventBytes?: number | undefined;
  readonly runtime?: Runtime | undefined;
}

/**
 * Sends attempts through an OpenAI client and reads the raw answer. The client builds and sends the request (key, base
 * URL, headers, path) with its own retries off and its own time limit out of the way; every attempt has an
 * `AbortController` of its own, so nothing is left on a signal that lives longer.
 *
 * - **Unsubscribe:** aborts the request in the same tick. After `[DONE]`, or the last event of the Responses API, the
 *   body gets 25 ms to end by itself, so that its connection can be used again.
 * - **Error status:** at most 64 KiB of the body are read, for at most one second, and the rest is cancelled.
 * - **A whole JSON answer to a streamed chat request** is turned into one chunk; any other body that is no event stream is
 *   `upstream_body_invalid`.
 *
 * @throws SluiceError `invalid_option` if `client` is no OpenAI client, or an option is out of its range.
 */
export function openaiTransport(client: OpenAI, options: OpenAITransportOptions = {}): AttemptSource {
  const { runtime = systemRuntime } = options;
  checkClient(client);
  const maxEventBytes = wholeNumber('maxEventBytes', options.maxEventBytes ?? SOURCE_DEFAULTS.maxEventBytes);
  return clientSource(client, { maxEventBytes, runtime });
}

/** @throws SluiceError `invalid_option` if `client` is no OpenAI client. */
export function checkClient(client: OpenAI): void {
  if (typeof client?.chat?.completions?.create !== 'function') {
    throw invalidOption('client', 'an OpenAI client', client);
  }
}

/** {@link openaiTransport} of what has been checked. */
export function clientSource(
  client: OpenAI,
  settings: { readonly maxEventBytes: number; readonly runtime: Runtime },
): AttemptSource {
  // Hand-written: it owns an AbortController and a body reader, and outlives the subscription until both have settled.
  return (attempt) =>
    new Observable<WireEvent>((subscriber) => {
      const exchange = new Exchange(client, attempt, subscriber, settings);
      void exchange.run();
      return exchange;
    });
}
