import type { ServerResponse } from 'node:http';
import type { Demand } from '../../core/attempt.ts';
import { startTimer } from '../../core/runtime.ts';
import type { Cancel, Runtime } from '../../core/runtime.ts';
import { BodyWriter } from '../BodyWriter.ts';
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
  readonly #body: BodyWriter;
  #pending = '';
  #flushing = false;
  #room: { readonly promise: Promise<void>; readonly settle: () => void } | undefined;
  #wroteAtMs = 0;
  #stopHeart: Cancel = () => {};

  constructor(response: ServerResponse, options: EventReplyOptions) {
    this.#response = response;
    this.#options = options;
    this.#body = new BodyWriter(response, () => this.#room?.settle());
  }

  open(headers: Headers): void {
    this.#response.writeHead(200, { ...EVENT_STREAM, ...headers });
    this.#wroteAtMs = this.#nowMs;
    this.#watch();
  }

  /** Begins before there is anything to send. */
  openEmpty(headers: Headers): void {
    this.open(headers);
    this.#body.write(HEARTBEAT);
  }

  /** Sends `frame` together with what else is sent in this tick: one read of the provider's body, one write here. */
  send(frame: string): void {
    this.#pending += frame;
    if (this.#flushing) return;
    this.#flushing = true;
    queueMicrotask(this.#flushed);
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

  readonly #flushed = (): void => {
    this.#flushing = false;
    this.#flush();
  };

  #flush(): void {
    const text = this.#pending;
    if (text === '' || this.#response.destroyed) return;
    this.#pending = '';
    this.#wroteAtMs = this.#nowMs;
    this.#body.write(text);
  }

  /** One timer for a stream, so that an event costs none. */
  #watch(): void {
    const { heartbeatMs, runtime } = this.#options;
    if (this.#response.destroyed) return;
    const nowMs = this.#nowMs;
    // To a client that does not read, comments would only pile up.
    if (nowMs - this.#wroteAtMs >= heartbeatMs) {
      this.#wroteAtMs = nowMs;
      if (!this.#body.full) this.#body.write(HEARTBEAT);
    }
    this.#stopHeart = startTimer(runtime, this.#wroteAtMs + heartbeatMs - nowMs, () => this.#watch());
  }

  get #nowMs(): number {
    return this.#options.runtime.clock.now();
  }

  #ready(): Promise<void> | undefined {
    this.#flush();
    if (!this.#body.full || this.#response.destroyed) return undefined;
    return (this.#room ??= this.#wait()).promise;
  }

  /** Until the client has read, or is gone: after `idleMs` it is. */
  #wait(): { readonly promise: Promise<void>; readonly settle: () => void } {
    const response = this.#response;
    let resolve = (): void => {};
    const promise = new Promise<void>((settled) => (resolve = settled));
    const stop: Cancel = startTimer(this.#options.runtime, this.#options.idleMs, () => response.destroy());
    const settle = (): void => {
      stop();
      this.#room = undefined;
      response.off('close', settle);
      resolve();
    };
    response.on('close', settle);
    return { promise, settle };
  }
}
