import type { Demand } from '../core/attempt.ts';
import { SluiceError } from '../core/errors.ts';
import { startTimer } from '../core/runtime.ts';
import type { Cancel, Runtime } from '../core/runtime.ts';
import { utf8Length } from '../wire/utf8Length.ts';
import { merged } from './AnswerEvent.ts';
import type { AnswerEvent } from './AnswerEvent.ts';
import type { DeliveryReport, DeliverySettings } from './DeliveryOptions.ts';
import type { EventEncoding } from './EventEncoding.ts';
import { failureBody, httpFailure } from './httpFailure.ts';
import type { HttpFailure } from './httpFailure.ts';

/** Where a stream goes. None of these calls may call back before it returns. */
export interface Outlet {
  open(headers: Readonly<Record<string, string>>): void;
  /** @returns Whether there is room for more; if not, {@link Delivery.drained} follows. */
  write(text: string): boolean;
  /** All was written. */
  close(): void;
  /** The client is given up on. */
  cut(): void;
  /** Answers with this instead of a stream. Absent where a stream has begun whatever happens. */
  refuse?(failure: HttpFailure): void;
}

/** What an event takes up besides its text while it waits. */
const EVENT_BYTES = 64;
/** Bytes written at a time: a slow client must be seen to take some, or it would be taken for one that reads nothing. */
const WRITE_BYTES = 16 * 1024;

/**
 * Brings the events of one answer to one client, at the client's pace: what comes while its socket is full waits,
 * merged, and the provider's body is not read on beyond a bound.
 */
export class Delivery {
  readonly demand: Demand = { ready: () => this.#ready() };
  readonly #outlet: Outlet;
  readonly #encoding: EventEncoding;
  readonly #settings: DeliverySettings;
  readonly #runtime: Runtime;
  readonly #onEnd: (report: DeliveryReport) => void;
  #opened = false;
  #room = true;
  #pending: AnswerEvent[] = [];
  #pendingBytes = 0;
  /** Of the last event that waits. */
  #lastBytes = 0;
  /** The source has ended; what waits is still to be written. */
  #sourceEnd: 'done' | 'failed' | undefined;
  #failure: unknown;
  #over = false;
  #events = 0;
  #wroteAtMs: number;
  #fullAtMs = Infinity;
  #wake: { readonly promise: Promise<void>; readonly resolve: () => void } | undefined;
  #stopTimer: Cancel = () => {};

  /** `onEnd` hears once how it ended. */
  constructor(
    outlet: Outlet,
    encoding: EventEncoding,
    settings: DeliverySettings,
    onEnd: (report: DeliveryReport) => void,
  ) {
    this.#outlet = outlet;
    this.#encoding = encoding;
    this.#settings = settings;
    this.#runtime = settings.runtime;
    this.#onEnd = onEnd;
    this.#wroteAtMs = this.#runtime.clock.now();
    this.#watch();
  }

  next(event: AnswerEvent): void {
    if (this.#over) return;
    this.#hold(event);
    if (this.#room) this.#flush();
    else if (this.#pendingBytes > this.#settings.maxPendingBytes) this.#drop('bytes', this.#settings.maxPendingBytes);
  }

  complete(): void {
    this.#sourceEnd = 'done';
    this.#finish();
  }

  fail(error: unknown): void {
    if (this.#over) return;
    this.#sourceEnd = 'failed';
    this.#failure = error;
    const failure = httpFailure(error, this.#settings.messageOf);
    if (!this.#opened && this.#outlet.refuse !== undefined) {
      this.#outlet.refuse(failure);
      this.#end(failure.body === undefined ? 'done' : 'failed');
      return;
    }
    if (failure.body !== undefined) {
      this.next({ type: 'failure', data: failureBody(error, this.#settings.messageOf) });
    }
    this.#finish();
  }

  /** There is room again. */
  drained(): void {
    if (this.#over) return;
    this.#room = true;
    this.#fullAtMs = Infinity;
    this.#flush();
    if (!this.#pausing()) this.#resume();
    this.#finish();
  }

  /** Nothing can be written to the client. */
  broke(error: unknown): void {
    if (this.#over) return;
    this.#failure = error;
    this.#end('failed');
    this.#outlet.cut();
  }

  /** The client has gone. Nothing is written any more. */
  left(): void {
    this.#end('left');
  }

  #hold(event: AnswerEvent): void {
    const last = this.#pending.at(-1);
    const bytes = sizeOf(event);
    if (event.type === 'reset') {
      // What waits is of no use any more.
      this.#pending = [event];
      this.#pendingBytes = bytes + EVENT_BYTES;
      return;
    }
    const both = last && this.#lastBytes < WRITE_BYTES ? merged(last, event) : undefined;
    if (both) {
      this.#pending[this.#pending.length - 1] = both;
      this.#lastBytes += bytes;
      this.#pendingBytes += bytes;
    } else {
      this.#pending.push(event);
      this.#lastBytes = bytes;
      this.#pendingBytes += bytes + EVENT_BYTES;
    }
  }

  #flush(): void {
    if (this.#pending.length === 0) return;
    if (!this.#opened) this.#open();
    let at = 0;
    while (this.#room && at < this.#pending.length) {
      let text = '';
      while (text.length < WRITE_BYTES && at < this.#pending.length) {
        const event = this.#pending[at++] as AnswerEvent;
        this.#pendingBytes -= sizeOf(event) + EVENT_BYTES;
        text += this.#encoding.encode(event);
      }
      this.#write(text);
    }
    this.#events += at;
    this.#pending = at === this.#pending.length ? [] : this.#pending.slice(at);
  }

  #open(): void {
    this.#opened = true;
    this.#outlet.open(this.#encoding.headers);
    if (this.#encoding.start !== '') this.#write(this.#encoding.start);
    this.#stopTimer();
    this.#watch();
  }

  #write(text: string): void {
    if (text === '') return;
    const nowMs = this.#runtime.clock.now();
    this.#wroteAtMs = nowMs;
    this.#room = this.#outlet.write(text);
    if (!this.#room) this.#fullAtMs = Math.min(this.#fullAtMs, nowMs);
  }

  #finish(): void {
    if (this.#over || this.#sourceEnd === undefined || this.#pending.length > 0) return;
    if (!this.#opened) this.#open();
    this.#end(this.#sourceEnd);
    this.#outlet.close();
  }

  #drop(by: 'bytes' | 'time', limit: number): void {
    const what = by === 'bytes' ? `${limit} bytes wait for the client` : `the client took nothing for ${limit} ms`;
    this.#failure = new SluiceError('queue_full', `${what}, and it is not reading`, { limit });
    this.#end('dropped');
    this.#outlet.cut();
  }

  #end(outcome: DeliveryReport['outcome']): void {
    if (this.#over) return;
    this.#over = true;
    this.#stopTimer();
    this.#pending = [];
    this.#resume();
    this.#onEnd({ outcome, events: this.#events, error: this.#failure });
  }

  /** One timer for all that depends on time, so that an event costs none. */
  #watch(): void {
    const nowMs = this.#runtime.clock.now();
    const { heartbeatMs, maxStalledMs, openAfterMs } = this.#settings;
    if (nowMs - this.#fullAtMs >= maxStalledMs) {
      this.#drop('time', maxStalledMs);
      return;
    }
    const quietMs = nowMs - this.#wroteAtMs;
    if (!this.#opened && quietMs >= openAfterMs) {
      this.#open();
      return;
    }
    if (this.#opened && this.#room && quietMs >= heartbeatMs) this.#write(this.#encoding.heartbeat);
    const nextAtMs = this.#wroteAtMs + (this.#opened ? heartbeatMs : openAfterMs);
    const atMs = this.#room ? nextAtMs : this.#fullAtMs + maxStalledMs;
    // A client can stop reading at any moment: looked for at least this often.
    const waitMs = Math.min(Math.max(atMs - nowMs, 1), maxStalledMs / 2);
    this.#stopTimer = startTimer(this.#runtime, waitMs, () => this.#watch());
  }

  #ready(): Promise<void> | undefined {
    if (!this.#pausing()) return undefined;
    if (this.#wake === undefined) {
      let resolve = (): void => {};
      const promise = new Promise<void>((settle) => (resolve = settle));
      this.#wake = { promise, resolve };
    }
    return this.#wake.promise;
  }

  #pausing(): boolean {
    return !this.#over && !this.#room && this.#pendingBytes >= this.#settings.pauseBytes;
  }

  #resume(): void {
    this.#wake?.resolve();
    this.#wake = undefined;
  }
}

function sizeOf({ type, data }: AnswerEvent): number {
  if (type === 'delta' || type === 'reasoning' || type === 'refusal') return utf8Length(data.text);
  return type === 'tool_call' ? utf8Length(data.arguments) : EVENT_BYTES;
}
