import type { ServerResponse } from 'node:http';
import type { Subscription } from 'rxjs';
import type { Engine } from '../../client/Engine.ts';
import { dataFrame, DONE_FRAME, errorFrame, valueFrame } from '../../client/wire/frames.ts';
import { asWireData, wireCall } from '../../client/wire/wireCall.ts';
import type { WireData, WireHead } from '../../core/attempt.ts';
import { isSluiceError, SluiceError } from '../../core/errors.ts';
import { runAtPace } from '../../core/pace.ts';
import { isRestart } from '../../core/restart.ts';
import type { Restart } from '../../core/restart.ts';
import { startTimer } from '../../core/runtime.ts';
import type { Cancel } from '../../core/runtime.ts';
import { classifyThrown } from '../../wire/classify.ts';
import type { AskedCall, CallTerms } from './askedCall.ts';
import { Delivered } from './Delivered.ts';
import { EventReply } from './EventReply.ts';
import type { GatewaySettings } from './GatewayOptions.ts';
import { limitHeaders } from './limitHeaders.ts';
import { headerText, sendFailure, sendJson } from './replies.ts';
import type { Headers } from './replies.ts';
import { Resumption } from './Resumption.ts';

/** One call of a client, from its request to the end of its answer. */
export class GatewayCall {
  readonly #id: string;
  readonly #engine: Engine;
  readonly #response: ServerResponse;
  readonly #asked: AskedCall;
  readonly #terms: CallTerms;
  readonly #settings: GatewaySettings;
  /** Where the answer is streamed. */
  readonly #reply: EventReply | undefined;
  /** What the client has got, where an answer may be started over. */
  readonly #delivered: Delivered | undefined;
  #resumption: Resumption | undefined;
  #broke: Restart | undefined;
  /** Events of an answer that is delivered as a whole. */
  #kept: string[] = [];
  #keptBytes = 0;
  #attempts = 0;
  #model: string | undefined;
  #head: WireHead | undefined;
  #subscription: Subscription | undefined;
  /** Ends the call as one that has failed. */
  #fail: (failure: SluiceError) => void = () => {};
  #stopTimer: Cancel = () => {};
  #stopOpening: Cancel = () => {};
  #over = false;

  constructor(
    id: string,
    engine: Engine,
    response: ServerResponse,
    asked: AskedCall,
    terms: CallTerms,
    settings: GatewaySettings,
  ) {
    this.#id = id;
    this.#engine = engine;
    this.#response = response;
    this.#asked = asked;
    this.#terms = terms;
    this.#settings = settings;
    const { idleMs, heartbeatMs } = settings;
    const { stream } = asked;
    this.#reply = stream ? new EventReply(response, { idleMs, heartbeatMs, runtime: engine.runtime }) : undefined;
    const startsOver = stream && (terms.midStream === 'restart' || terms.midStream === 'continue');
    this.#delivered = startsOver ? new Delivered(asked.api) : undefined;
  }

  start(): void {
    const { runtime } = this.#engine;
    const { totalMs, openAfterMs } = this.#settings;
    const reply = this.#reply;
    if (reply) this.#stopOpening = startTimer(runtime, openAfterMs, () => reply.openEmpty(this.#headers()));
    this.#stopTimer = startTimer(runtime, totalMs, () => this.cut(tooLong(totalMs)));
    const pace = this.#terms.midStream === 'buffer' ? undefined : reply?.demand;
    this.#subscription = runAtPace(pace, () =>
      this.#call().subscribe({
        next: (emitted) => this.#next(emitted),
        error: (thrown: unknown) => this.#failed(this.#failure(thrown)),
        complete: () => this.#complete(),
      }),
    );
    if (this.#over) this.#subscription.unsubscribe();
  }

  /** The client is gone, or has its answer. */
  leave(): void {
    // A whole one is out before its call has ended, which it does by itself.
    if (this.#reply !== undefined || !this.#response.headersSent) this.#end();
  }

  /** Ends the call, which has not failed by itself. */
  cut(failure: SluiceError): void {
    if (this.#over) return;
    this.#fail(failure);
    this.#failed(failure);
  }

  /** Tells the client, in the way that is left. */
  #failed(failure: SluiceError): void {
    if (this.#over) return;
    this.#end();
    if (!this.#response.headersSent) sendFailure(this.#response, failure, this.#headers(failure.requestId));
    else this.#reply?.end(errorFrame(this.#asked.api, failure));
  }

  #call(): ReturnType<typeof wireCall> {
    const { api, stream, model, fields, bytes } = this.#asked;
    const { options, midStream } = this.#terms;
    return wireCall(this.#engine, {
      id: this.#id,
      api,
      stream,
      model,
      request: fields,
      bytes,
      options: {
        ...options,
        midStream: midStream === 'buffer' ? 'restart' : midStream,
        restarts: midStream !== 'fail',
      },
      onBegin: (fail) => (this.#fail = fail),
      onAttempt: (asked) => {
        this.#attempts++;
        this.#model = asked;
      },
      onHead: (head) => (this.#head = head),
    });
  }

  #next(emitted: WireData | Restart): void {
    if (this.#over) return;
    if (isRestart(emitted)) return this.#restart(emitted);
    const data = asWireData(emitted);
    if (!this.#asked.stream) this.#sendWhole(data);
    else if (this.#terms.midStream === 'buffer') this.#keep(dataFrame(this.#asked.api, data));
    else if (this.#resumption !== undefined) this.#resume(this.#resumption, data.value);
    else {
      this.#delivered?.note(data.value);
      this.#send(dataFrame(this.#asked.api, data));
    }
  }

  #restart(broke: Restart): void {
    this.#kept = [];
    this.#keptBytes = 0;
    this.#broke = broke;
    if (this.#delivered !== undefined) this.#resumption = new Resumption(this.#delivered);
  }

  #resume(resumption: Resumption, value: unknown): void {
    const rest = resumption.take(value);
    if (rest === undefined) return this.cut(this.#differs());
    for (const each of rest) {
      const joined = this.#delivered?.joined(each);
      this.#delivered?.note(joined);
      this.#send(valueFrame(this.#asked.api, joined));
    }
  }

  #keep(frame: string): void {
    const { maxBufferedBytes } = this.#settings;
    this.#kept.push(frame);
    this.#keptBytes += frame.length;
    if (this.#keptBytes > maxBufferedBytes) this.cut(tooLarge(maxBufferedBytes));
  }

  #send(frame: string): void {
    this.#open();
    this.#reply?.send(frame);
  }

  #open(): void {
    if (this.#response.headersSent) return;
    this.#stopOpening();
    this.#reply?.open(this.#headers());
  }

  #complete(): void {
    if (this.#over) return;
    if (this.#resumption?.caughtUp === false) return this.cut(this.#differs());
    this.#end();
    // Nothing at all, such as a lesser answer may be.
    if (this.#reply === undefined) return this.#sendWhole({ kind: 'data', value: null, event: undefined });
    this.#open();
    this.#reply.end(this.#kept.join('') + (this.#asked.api === 'chat' ? DONE_FRAME : ''));
  }

  /** At once: what else the end of a call brings with it, its client need not wait for. */
  #sendWhole({ text, value }: WireData): void {
    sendJson(this.#response, 200, text ?? JSON.stringify(value), this.#headers());
  }

  /** No more is heard of the call; it ends in this tick if it still runs. */
  #end(): void {
    if (this.#over) return;
    this.#over = true;
    this.#stopTimer();
    this.#stopOpening();
    this.#reply?.stop();
    this.#subscription?.unsubscribe();
  }

  #headers(requestId: string | undefined = this.#head?.requestId): Headers {
    const model = headerText(this.#model);
    return {
      'x-request-id': headerText(requestId) ?? this.#id,
      'x-sluice-attempts': String(this.#attempts),
      ...(model !== undefined && { 'x-sluice-model': model }),
      ...limitHeaders(this.#head?.hints),
    };
  }

  #failure(thrown: unknown): SluiceError {
    return isSluiceError(thrown) ? thrown : classifyThrown(thrown, { model: this.#asked.model });
  }

  #differs(): SluiceError {
    const { code = 'stream_truncated', model } = this.#broke ?? {};
    const message = 'the stream broke off, and the answer that was started over is another one';
    return new SluiceError(code, message, { model, while: 'streaming' });
  }
}

function tooLong(limitMs: number): SluiceError {
  return new SluiceError('timeout_deadline', `the gateway ends what takes longer than ${limitMs} ms`, {
    limit: limitMs,
    while: 'streaming',
  });
}

function tooLarge(limit: number): SluiceError {
  const message = `the answer is above the ${limit} bytes that the gateway keeps of a whole one`;
  return new SluiceError('upstream_body_invalid', message, { limit, while: 'streaming' });
}
