import type { ServerResponse } from 'node:http';
import type { Demand } from '../../core/attempt.ts';
import { startTimer } from '../../core/runtime.ts';
import type { Cancel, Runtime } from '../../core/runtime.ts';
import type { Headers } from './replies.ts';

const EVENT_STREAM: Headers = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache, no-store, no-transform',
  'x-accel-buffering': 'no',
};

export interface EventReplyOptions {
  /** How long the client may read nothing. */
  readonly idleMs: number;
  readonly runtime: Runtime;
}

/** An event stream to one client, at the pace that it reads at. */
export class EventReply {
  readonly demand: Demand = { ready: () => this.#ready() };
  readonly #response: ServerResponse;
  readonly #options: EventReplyOptions;
  #pending = '';
  #flushing = false;
  #room: Promise<void> | undefined;

  constructor(response: ServerResponse, options: EventReplyOptions) {
    this.#response = response;
    this.#options = options;
  }

  open(headers: Headers): void {
    this.#response.writeHead(200, { ...EVENT_STREAM, ...headers });
  }

  /** Sends `frame` together with what else is sent in this tick: one read of the provider's body, one write here. */
  send(frame: string): void {
    this.#pending += frame;
    if (this.#flushing) return;
    this.#flushing = true;
    queueMicrotask(() => this.#flush());
  }

  end(frame = ''): void {
    const last = this.#pending + frame;
    this.#pending = '';
    this.#response.end(last);
  }

  #flush(): void {
    this.#flushing = false;
    const text = this.#pending;
    if (text === '' || this.#response.destroyed) return;
    this.#pending = '';
    this.#response.write(text);
  }

  #ready(): Promise<void> | undefined {
    this.#flush();
    if (!this.#response.writableNeedDrain || this.#response.destroyed) return undefined;
    return (this.#room ??= this.#drained());
  }

  /** Until the client has read, or is gone: after `idleMs` it is. */
  #drained(): Promise<void> {
    const response = this.#response;
    return new Promise((resolve) => {
      const done = (): void => {
        stop();
        this.#room = undefined;
        response.off('drain', done).off('close', done);
        resolve();
      };
      const stop: Cancel = startTimer(this.#options.runtime, this.#options.idleMs, () => response.destroy());
      response.on('drain', done).on('close', done);
    });
  }
}
