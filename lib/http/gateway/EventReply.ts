import type { ServerResponse } from 'node:http';
import type { Demand } from '../../core/attempt.ts';
import { startTimer } from '../../core/runtime.ts';
import type { Cancel, Runtime } from '../../core/runtime.ts';
import { HEARTBEAT } from '../EventEncoding.ts';
import type { Headers } from './replies.ts';

const EVENT_STREAM: Headers = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache, no-store, no-transform',
  'x-accel-buffering': 'no',
};

export interface EventReplyOptions {
  /** How long the client may read nothing. */
  readonly idleMs: number;
  /** A comment is sent after so long without an event. */
  readonly heartbeatMs: number;
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
  #wroteAtMs = 0;
  #stopHeart: Cancel = () => {};

  constructor(response: ServerResponse, options: EventReplyOptions) {
    this.#response = response;
    this.#options = options;
  }

  open(headers: Headers): void {
    this.#response.writeHead(200, { ...EVENT_STREAM, ...headers });
    this.#wroteAtMs = this.#nowMs;
    this.#watch();
  }

  /** Begins before there is anything to send. */
  openEmpty(headers: Headers): void {
    this.open(headers);
    this.#response.write(HEARTBEAT);
  }

  /** Sends `frame` together with what else is sent in this tick: one read of the provider's body, one write here. */
  send(frame: string): void {
    this.#pending += frame;
    if (this.#flushing) return;
    this.#flushing = true;
    queueMicrotask(() => this.#flush());
  }

  /** Nothing is sent by itself any more. */
  stop(): void {
    this.#stopHeart();
  }

  end(frame = ''): void {
    this.stop();
    const last = this.#pending + frame;
    this.#pending = '';
    this.#response.end(last);
  }

  #flush(): void {
    this.#flushing = false;
    const text = this.#pending;
    if (text === '' || this.#response.destroyed) return;
    this.#pending = '';
    this.#wroteAtMs = this.#nowMs;
    this.#response.write(text);
  }

  /** One timer for a stream, so that an event costs none. */
  #watch(): void {
    const { heartbeatMs, runtime } = this.#options;
    if (this.#response.destroyed) return;
    const nowMs = this.#nowMs;
    // To a client that does not read, comments would only pile up.
    if (nowMs - this.#wroteAtMs >= heartbeatMs) {
      this.#wroteAtMs = nowMs;
      if (!this.#response.writableNeedDrain) this.#response.write(HEARTBEAT);
    }
    this.#stopHeart = startTimer(runtime, this.#wroteAtMs + heartbeatMs - nowMs, () => this.#watch());
  }

  get #nowMs(): number {
    return this.#options.runtime.clock.now();
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
