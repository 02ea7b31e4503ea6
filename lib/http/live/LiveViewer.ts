import type { ServerResponse } from 'node:http';
import { encodeServerSentEvent } from '../ServerSentEvent.ts';

const LONGEST_LAG_MS = 30_000;

/** One open page. One that reads too slowly misses frames, and then gets everything anew; one that stops reading is dropped. */
export class LiveViewer {
  readonly #response: ServerResponse;
  #laggingSinceMs: number | undefined;

  constructor(response: ServerResponse) {
    this.#response = response;
    response.writeHead(200, {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store',
      'x-accel-buffering': 'no',
    });
    response.write(encodeServerSentEvent({ retry: 1_000 }));
  }

  hello(data: string): void {
    this.#write('hello', data);
  }

  /** `hello` is asked for only if frames were missed. */
  frame(nowMs: number, data: string, hello: () => string): void {
    if (this.#response.writableNeedDrain) {
      this.#laggingSinceMs ??= nowMs;
      if (nowMs - this.#laggingSinceMs > LONGEST_LAG_MS) this.#response.destroy();
    } else if (this.#laggingSinceMs === undefined) {
      this.#write('frame', data);
    } else {
      this.#laggingSinceMs = undefined;
      this.hello(hello());
    }
  }

  end(): void {
    this.#response.end();
  }

  #write(event: string, data: string): void {
    this.#response.write(encodeServerSentEvent({ event, data }));
  }
}
