import { Pool } from 'undici';
import type { Way } from './gateways.ts';

const LF = 10;

/** What came of one request, by one clock. Milliseconds. */
export interface Taken {
  readonly status: number;
  readonly sentMs: number;
  readonly endMs: number;
  /** When each event of a stream was there: the whole of it. */
  readonly eventsMs: readonly number[];
}

/** Sends requests as cheaply as can be: the machine's cores are for those that are measured. */
export class HttpLoad {
  readonly #pool: Pool;
  readonly #headers: Readonly<Record<string, string>>;

  constructor({ origin, headers }: Way) {
    this.#pool = new Pool(origin, { connections: null, pipelining: 1, headersTimeout: 0, bodyTimeout: 0 });
    this.#headers = { 'content-type': 'application/json', authorization: 'Bearer none', ...headers };
  }

  ask(stream: boolean): Promise<Taken> {
    const body = JSON.stringify({ model: 'm', stream, messages: [{ role: 'user', content: 'How is the weather?' }] });
    const sentMs = performance.now();
    const eventsMs: number[] = [];
    let status = 0;
    let last = 0;
    return new Promise((resolve, reject) => {
      this.#pool.dispatch(
        { method: 'POST', path: '/v1/chat/completions', headers: this.#headers, body },
        {
          onRequestStart() {},
          onResponseStart(_, code) {
            status = code;
          },
          onResponseData(_, bytes) {
            if (!stream) return;
            const nowMs = performance.now();
            for (const byte of bytes) {
              if (byte === LF && last === LF) eventsMs.push(nowMs);
              last = byte;
            }
          },
          onResponseEnd: () => resolve({ status, sentMs, endMs: performance.now(), eventsMs }),
          onResponseError: (_, error) => reject(error),
        },
      );
    });
  }

  close(): Promise<void> {
    return this.#pool.destroy();
  }
}
