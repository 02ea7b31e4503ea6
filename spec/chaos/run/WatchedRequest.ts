import { createParser } from 'eventsource-parser';
import type { EventSourceParser } from 'eventsource-parser';
import { contentOf } from './contentOf.ts';
import type { AttemptTrace } from './Fact.ts';
import type { StallingRuntime } from './StallingRuntime.ts';
import type { SourceWitness } from './watchedSource.ts';

const ENDS: ReadonlySet<unknown> = new Set(['response.completed', 'response.incomplete', 'response.failed', 'error']);

/**
 * One request of an SDK as it passes, and what it brings. What comes while the process stands still is passed on
 * afterwards. It is closed when its signal is aborted, and by the last event or the end of its body.
 */
export class WatchedRequest {
  readonly #trace: AttemptTrace;
  readonly #witness: SourceWitness;
  readonly #runtime: StallingRuntime;
  readonly #signals: AbortSignal[] = [];
  readonly #close = (): void => {
    if (this.#trace.closedMs !== undefined) return;
    for (const signal of this.#signals) signal.removeEventListener('abort', this.#close);
    this.#witness.closed(this.#trace);
  };

  constructor(trace: AttemptTrace, witness: SourceWitness, runtime: StallingRuntime) {
    this.#trace = trace;
    this.#witness = witness;
    this.#runtime = runtime;
  }

  closeBy(signal: AbortSignal | null | undefined): void {
    if (!signal) return;
    if (signal.aborted) return this.#close();
    this.#signals.push(signal);
    signal.addEventListener('abort', this.#close);
  }

  async answered(sending: Promise<Response>): Promise<Response> {
    try {
      const response = await sending;
      const { status, statusText, headers, body } = response;
      await this.#running();
      if (body === null) this.#close();
      return new Response(body && this.#watched(body, readerFor(headers, this.#trace, this.#close)), {
        status,
        statusText,
        headers,
      });
    } catch (error) {
      await this.#running();
      this.#close();
      throw error;
    }
  }

  #watched(body: ReadableStream<Uint8Array>, read: BodyReader): ReadableStream<Uint8Array> {
    const reader = body.getReader();
    return new ReadableStream<Uint8Array>(
      {
        pull: async (controller) => {
          try {
            const { done, value } = await reader.read();
            await this.#running();
            if (this.#trace.closedMs === undefined) read(value);
            if (!done) return controller.enqueue(value);
            this.#close();
            controller.close();
          } catch (error) {
            await this.#running();
            this.#close();
            controller.error(error);
          }
        },
        cancel: (reason) => {
          this.#close();
          return reader.cancel(reason);
        },
      },
      // Read when somebody reads: what is counted as come is then passed on in the same turn.
      { highWaterMark: 0 },
    );
  }

  #running(): Promise<void> | undefined {
    return this.#runtime.stalled ? new Promise((resolve) => void this.#runtime.whenRunning(resolve)) : undefined;
  }
}

/** Gets each piece of a body, and `undefined` at its end. */
type BodyReader = (bytes: Uint8Array | undefined) => void;

function readerFor(headers: Headers, trace: AttemptTrace, end: () => void): BodyReader {
  const decoder = new TextDecoder();
  const textOf = (bytes: Uint8Array | undefined): string => decoder.decode(bytes, { stream: bytes !== undefined });
  if (headers.get('content-type')?.includes('text/event-stream') !== true) {
    let whole = '';
    return (bytes) => {
      whole += textOf(bytes);
      if (bytes === undefined) trace.text += contentOf(jsonOf(whole));
    };
  }
  const parser: EventSourceParser = createParser({ onEvent: eventReader(trace, end) });
  return (bytes) => parser.feed(textOf(bytes));
}

function eventReader(trace: AttemptTrace, end: () => void): (event: { readonly data: string }) => void {
  let over = false;
  return ({ data }) => {
    if (over) return;
    if (data === '[DONE]') {
      over = true;
      return end();
    }
    const value = jsonOf(data);
    // Behind something that is no event, nothing is part of the answer.
    if (value === undefined) over = true;
    trace.text += contentOf(value);
    if (isLast(value)) end();
  };
}

/** Behind it a body may end by itself, so that its connection can be used again. */
function isLast(value: unknown): boolean {
  const { type, choices, usage } = Object(value) as Readonly<Record<string, unknown>>;
  return Array.isArray(choices) ? choices.length === 0 && Boolean(usage) : ENDS.has(type);
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text) ?? undefined;
  } catch {
    return undefined;
  }
}
